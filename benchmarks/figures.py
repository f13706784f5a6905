"""How a benchmark shows and keeps its figures."""

from __future__ import annotations

import json
import platform
from pathlib import Path

Figure = dict[str, str | int | float | bool | None]
"""One row of a benchmark's table."""

OUT = Path(__file__).resolve().parent / "out"


def publish(name: str, rows: list[Figure], about: Figure) -> None:
    """Print the rows as a table and write them, with what they are about, to benchmarks/out/<name>.json."""
    _print_table(rows)
    for key, value in about.items():
        print(f"{key}: {value}")
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    OUT.mkdir(exist_ok=True)
    (OUT / f"{name}.json").write_text(json.dumps({"name": name, **about, **machine, "rows": rows}, indent=2) + "\n")


def _print_table(rows: list[Figure]) -> None:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [columns] + [[_text(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    for line in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def _text(value: str | float | bool | None) -> str:
    return "" if value is None else str(value)
