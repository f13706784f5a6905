"""What the owner's data holds of what a study reads: for the owner's eyes alone. It never decides what is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from anon.study.parts import Table
from peer.data.features import readiness
from peer.data.sandbox import opened, plain_tables_of


@frozen
class OwnData:
    """Tables and columns (as table.column) that are not there, and the rows of those tables that are."""

    missing_tables: tuple[str, ...]
    missing_columns: tuple[str, ...]
    rows: Mapping[str, int]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to tell the owner, each with what to do; empty when there is something of everything."""
        found = [
            f"you have no table {name}: `anonml peer import FILE --table {name}`" for name in self.missing_tables
        ]
        if self.missing_columns:
            listed = ", ".join(self.missing_columns)
            found.append(f"your data lacks {listed}: import a file with them (`anonml peer import FILE --table TABLE`)")
        found += [
            f"your table {name} is empty: `anonml peer import FILE --table {name}`"
            for name, rows in self.rows.items()
            if rows == 0
        ]
        return tuple(found)


def own_data(database: Path, tables: Sequence[Table]) -> OwnData:
    """Look at the owner's data file. Never raises; no file is like an empty one."""
    ready = readiness(database, {table.name: table.columns for table in tables})
    present = plain_tables_of(database)
    counted = {table.name: _rows(database, table.name) for table in tables if table.name in present}
    return OwnData(ready.missing_tables, ready.missing_columns, counted)


def _rows(database: Path, table: str) -> int:
    with opened(database) as sandbox:
        counted = sandbox.scalar(f'SELECT count(*) FROM "{table}"', 0) if sandbox is not None else 0
    return counted if isinstance(counted, int) else 0
