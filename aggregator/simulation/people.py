"""The people of a simulation: every feature's and the label's value, found by the study's own queries.

A person's tables hold that person's rows only, as on a peer, and each query runs once per person. Data here is the
staff's own (last year's, public or synthetic); a peer's never comes near this module.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path

import numpy as np
from attrs import Factory, field, frozen
from numpy.typing import NDArray

from aggregator.simulation import csv_file
from anon.errors import Malformed
from anon.protocols.histogram.categories import Value, label_category
from anon.sql import BOUNDS, lint
from anon.sql_functions import register
from anon.study.parts import Label
from anon.study.proposal import Proposal

Cell = csv_file.Cell
Rows = Sequence[Mapping[str, Cell]]


@frozen(eq=False)
class Column:
    """One feature of all people: the different values, and for each person the index of theirs. Shape (people,).

    `numbers`: the values as numbers, not-a-number where one is none.
    """

    values: tuple[Value, ...]
    index: NDArray[np.int64]
    numbers: NDArray[np.float64] = field(default=Factory(lambda self: _numbers(self.values), True), repr=False)

    def take(self, chosen: NDArray[np.int64]) -> Column:
        """The same feature of the chosen people."""
        return Column(self.values, self.index[chosen], self.numbers)


def _numbers(values: Iterable[Value]) -> NDArray[np.float64]:
    numeric = (float(one) if isinstance(one, (int, float)) and not isinstance(one, bool) else np.nan for one in values)
    return np.array([one if isfinite(one) else np.nan for one in numeric], dtype=np.float64)


@frozen(eq=False)
class People:
    """Columns by feature name, and labels 0 or 1 of shape (people,)."""

    columns: Mapping[str, Column]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, chosen: NDArray[np.int64]) -> People:
        """The chosen people, by position."""
        columns = {name: column.take(chosen) for name, column in self.columns.items()}
        return People(columns, self.labels[chosen])


def people_from_values(label: Label, records: Iterable[tuple[Mapping[str, Value], Value]]) -> People:
    """People from records of (value by feature name, label value). Raises `Malformed` without any record."""
    found = list(records)
    if not found:
        raise Malformed("data: expected at least one person")
    columns = {name: _column([values[name] for values, _ in found]) for name in found[0][0]}
    return People(columns, np.array([label_category(label, value) for _, value in found], dtype=np.int64))


def people_from_rows(
    proposal: Proposal, rows: Iterable[Mapping[str, Cell]], person: str | None = None, as_of: int = 0
) -> People:
    """Run the study's queries for each person: each row is one, or each different value of column `person` is.

    The study must read exactly one table. Raises `Malformed` for missing columns and for queries that do not compile.
    """
    if len(proposal.tables) != 1:
        raise Malformed(f"data: a CSV file is one table, but the study reads {len(proposal.tables)}")
    return people_from_values(proposal.label, _evaluate(proposal, _grouped(rows, person), as_of))


def people_from_csv(proposal: Proposal, path: Path, person: str | None = None, as_of: int = 0) -> People:
    """`people_from_rows` of a CSV file (or .csv.gz) with a header; names and types are read as the importer does.

    Raises `Malformed` when the file cannot be read.
    """
    columns = csv_file.read_columns(path)
    cells = list(columns.values())
    return people_from_rows(proposal, (dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True)),
                            person, as_of)


def _grouped(rows: Iterable[Mapping[str, Cell]], person: str | None) -> Iterator[Rows]:
    if person is None:
        yield from ([row] for row in rows)
        return
    groups: dict[Cell, list[Mapping[str, Cell]]] = {}
    for row in rows:
        if person not in row:
            raise Malformed(f"data: expected a column {person}, which tells people apart")
        groups.setdefault(row[person], []).append(row)
    yield from groups.values()


def _evaluate(
    proposal: Proposal, groups: Iterable[Rows], as_of: int
) -> Iterator[tuple[dict[str, Value], Value]]:
    table = proposal.tables[0]
    declared = {table.name: table.columns}
    queries = [(one.name, one.kind, one.query.strip().rstrip(";")) for one in proposal.features]
    for name, _, query in queries:
        lint(query, declared, name)
    label = proposal.label.query.strip().rstrip(";")
    lint(label, declared, proposal.label.name)
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        register(connection, lambda units: None, BOUNDS.bytes_of_value)
        connection.execute(f'CREATE TABLE "{table.name}" ({", ".join(table.columns)})')
        insertion = f'INSERT INTO "{table.name}" VALUES ({", ".join("?" * len(table.columns))})'
        for rows in groups:
            connection.execute(f'DELETE FROM "{table.name}"')
            connection.executemany(insertion, [_cells(row, table.columns) for row in rows])
            values = {name: _value(_scalar(connection, query, as_of), kind) for name, kind, query in queries}
            found = _scalar(connection, label, as_of)
            yield values, found if isinstance(found, str) or found is None else float(found)
    finally:
        connection.close()


def _cells(row: Mapping[str, Cell], columns: Sequence[str]) -> list[Cell]:
    absent = [column for column in columns if column not in row]
    if absent:
        raise Malformed(f"data: the study reads the columns {', '.join(absent)}, which the file does not have")
    return [row[column] for column in columns]


def _scalar(connection: sqlite3.Connection, query: str, as_of: int) -> Cell:
    """The one value of the one row; anything else, an error included, is missing (design section 3, step 6)."""
    try:
        rows = connection.execute(query, {"as_of": as_of}).fetchmany(2)
    except (sqlite3.Error, ArithmeticError, ValueError):
        return None
    if len(rows) != 1 or len(rows[0]) != 1 or not isinstance(rows[0][0], (int, float, str)):
        return None
    value: Cell = rows[0][0]
    return value


def _value(found: Cell, kind: str) -> Value:
    if found is None:
        return None
    if kind == "numeric":
        return None if isinstance(found, str) else float(found)
    return None if isinstance(found, float) else str(found)


def _column(values: list[Value]) -> Column:
    places: dict[Value, int] = {}
    index = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.int64)
    return Column(tuple(places), index)
