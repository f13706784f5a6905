"""The effect of an import, done or to come, for a terminal. First rows are shown to the owner alone, and only by
`--preview`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from attrs import evolve
from rich.progress import Progress
from rich.table import Table

from anon.errors import Refused
from anon.kit.terminal.foreign import Foreign, inline
from anon.kit.terminal.printing import Terminal, styled
from anon.tables.columns import column_name
from anon.tables.numerals import Numerals
from anon.tables.streams import Cell
from peer.data.choices import Choices, Person
from peer.data.fitting import people_in
from peer.data.importing import ImportSummary, Mode, import_file
from peer.data.preview import Preview, PreviewTable
from peer.data.reading import counted
from peer.data.whose import people_of_file, values_of_file

WIDEST = 40
"""Characters of a cell that a preview shows."""
COLUMNS_ABREAST = 6


def choices_of(columns: Sequence[str], person: str | None, numbers: Sequence[str]) -> Choices | None:
    """The owner's word on a file from its options; None where nothing was said. Raises `Refused`.

    A column of the file may be named as it stands there, or as `--preview` shows it.
    """
    if not (columns or person or numbers):
        return None
    names = {column_name(original): name for name, original in map(_pair, columns)}
    read = {column_name(column): _numerals(how) for column, how in map(_pair, numbers)}
    return Choices(names, _person(person) if person else None, read)


def _person(text: str) -> Person:
    column, value = _pair(text)
    return Person(column_name(column), value)


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (sign and name.strip() and value.strip()):
        raise Refused("--column, --person and --numbers take NAME=VALUE, such as --column hours=stunden")
    return name.strip(), value.strip()


def yours(file: Path, table: str | None, choices: Choices | None, asks: bool) -> Choices | None:
    """The choices with whose rows are taken, where the file names several people: asked on a terminal.

    Raises `Refused` with the next step where nobody is there, or `asks` is not set, and as an import does.
    """
    named = people_of_file(file, table)
    if named is None:
        return choices
    column, listed = named.column, inline(named.listed)
    step = f"`--person {column}=YOU` takes the rows of one of them, `--all-rows` says that all rows are yours"
    refused = Refused(f"{column} names several people ({listed}); nothing was imported: {step}")
    if not (asks and sys.stdin.isatty()):
        raise refused
    console = Terminal(soft_wrap=True)
    console.print(f"{column} names several people ({listed}). Only your own rows are about you.")
    try:
        you = console.input("You, as it stands in the file (or * if all rows are yours): ").strip()
    except EOFError:
        you = ""
    if not you:
        raise refused
    return choices if you == "*" else evolve(choices or Choices(), person=Person(column, you))


def with_values(fault: str, file: Path, table: str | None, choices: Choices | None) -> str:
    """The fault, and the values that the column of people holds."""
    held = values_of_file(file, table, choices.person) if choices is not None and choices.person is not None else None
    return f"{fault}. It holds: {held.listed}" if held is not None else fault


def _numerals(how: str) -> Numerals:
    if how not in set(Numerals):
        raise Refused(f"--numbers: numbers are written {', '.join(Numerals)}")
    return Numerals(how)


def run_import(
    database: Path, file: Path, table: str | None, append: bool, choices: Choices | None = None
) -> ImportSummary:
    """Import with a count of the rows on stderr. Raises `Malformed` or `Refused`."""
    with Progress(console=Terminal(stderr=True), transient=True) as progress:
        task = progress.add_task("rows", total=None)
        mode: Mode = "append" if append else "replace"
        count = partial(progress.update, task)
        return import_file(database, file, table, mode, lambda rows: count(completed=rows), choices=choices)


def summary_json(summary: ImportSummary) -> dict[str, Any]:
    """The import's figures; nothing of the data."""
    return {
        "format": summary.format,
        "table": summary.table,
        "rows": summary.rows,
        "columns": summary.columns,
        "skipped": summary.skipped,
        "skipped_numbers": summary.skipped_lines,
        "skipped_unit": summary.unit,
        "reasons": summary.reasons,
        "emptied": summary.emptied,
        "notes": summary.notes,
    }


def show_summary(summary: ImportSummary) -> None:
    """The imported tables and rows, and the skipped records with the reason."""
    out = Terminal(soft_wrap=True)
    columns = ", ".join(summary.columns)
    out.print(f"{counted(summary.rows, 'row')} in table {summary.table} ({columns}), from {inline(summary.says)}")
    if summary.skipped:
        why = "; ".join(f"{count} {reason}" for reason, count in summary.reasons.items())
        first = ", ".join(map(str, summary.skipped_lines))
        where = f" (the first by number: {first})" if first else ""
        out.print(f"{counted(summary.skipped, summary.unit)} skipped: {why}{where}")
    if summary.emptied:
        out.print(f"{counted(summary.emptied, 'text')} left out: too long, or not text")
    for note in summary.notes:
        out.print(inline(note))


def preview_json(preview: Preview) -> dict[str, Any]:
    """The preview, first rows included: it is the owner who asked."""
    return {
        "format": preview.format,
        "says": preview.says,
        "tables": [_table_json(table) for table in preview.tables],
        "problems": preview.problems,
    }


def _table_json(table: PreviewTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "columns": [{"name": column.name, "kind": column.kind} for column in table.columns],
        "rows": table.rows,
        "count": table.count,
    }


def show_preview(preview: Preview) -> None:
    """Format, tables with their columns and first rows, and problems."""
    out = Terminal()
    out.print(f"This is {inline(preview.says)}.")
    for table in preview.tables:
        count = "" if table.count is None else f", {counted(table.count, 'row')}"
        out.print(styled("\n[bold]{name}[/]{count}", name=table.name, count=count))
        for column in table.columns:
            out.print(f"  {column.name}: {column.says}")
        if table.rows:
            out.print(_rows(table))
        if (people := people_in(table)) is not None:
            told = f"{people.column} names several people; take only yours: --person {people.column}=YOU"
            out.print(styled("[yellow]{told}[/]", told=told))
    for problem in preview.problems:
        out.print(styled("[yellow]{problem}[/]", problem=inline(problem)))
    out.print("\nNothing was imported; leave --preview out to import it.")


def _rows(table: PreviewTable) -> Table:
    shown = Table(*(column.name for column in table.columns[:COLUMNS_ABREAST]))
    for row in table.rows:
        shown.add_row(*(Foreign(_short(cell)) for cell in row[:COLUMNS_ABREAST]))
    return shown


def _short(cell: Cell) -> str:
    text = "" if cell is None else " ".join(str(cell)[: WIDEST + 1].splitlines())
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"
