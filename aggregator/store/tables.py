"""The shape that the aggregator's tables share: a row belongs to a study, and no row has a number."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, LargeBinary, MetaData, Table

BY_STUDY = "LIST (study)"
"""On PostgreSQL each study has a part of a table for itself, so that it can be rewritten and dropped alone."""


def study_table(tables: MetaData, name: str, *columns: Column[Any], partitioned: bool = True) -> Table:
    """A table keyed by the study, then by the key columns among these. No row tells when it came."""
    options: dict[str, Any] = {"postgresql_partition_by": BY_STUDY} if partitioned else {}
    return Table(name, tables, key_column("study", 32), *columns, sqlite_with_rowid=False, **options)


def key_column(name: str, size: int) -> Column[bytes]:
    """A part of a table's key: bytes of this length."""
    return Column(name, LargeBinary(size), primary_key=True)


def bytes_column(name: str, size: int | None = None) -> Column[bytes]:
    """Bytes that each row has, of this length if all have one."""
    return Column(name, LargeBinary(size), nullable=False)
