"""Apache Parquet, read in batches with pyarrow, which is an extra (`parquet`).

Nothing is imported until a Parquet file comes; a peer without pyarrow reads every other format.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from attrs import frozen

from anon.errors import Malformed, Refused
from anon.extras import install
from peer.data.files import Cell, ImportLimits, Record
from peer.data.formats.json_text import cell_of

MAGIC = b"PAR1"
BATCH = 256
LARGEST_FOOTER = 16 * 2**20
LARGEST_GROUP = 256 * 2**20
"""Bytes of one row group's column as it is held while it is read."""


@frozen
class ParquetSource:
    """The rows of one file, numbered from 1. Lists and structures become JSON text, times ISO 8601."""

    file: Path
    limits: ImportLimits
    typed: bool = True
    unit: str = "row"

    def keys(self) -> Sequence[str]:
        """The columns of the file's schema."""
        with self._opened() as table:
            names = [str(name).replace("\0", "") for name in table.schema_arrow.names]
        if len(names) > self.limits.columns:
            raise Refused(f"the file has {len(names)} columns, more than {self.limits.columns}; drop some")
        if len(set(names)) < len(names):
            raise Refused("two columns of the file have one name; rename one of them")
        return names

    def count(self) -> int:
        """Rows, by the file's own word."""
        with self._opened() as table:
            return int(table.metadata.num_rows)

    def records(self) -> Iterator[Record]:
        """Every row. Raises `Malformed` when the file turns out to be damaged."""
        names, number = self.keys(), 0
        with self._opened() as table:
            for batch in table.iter_batches(batch_size=BATCH, use_threads=False):
                for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    number += 1
                    yield number, dict(zip(names, map(_cell, values), strict=True))

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        reader = _reader()
        _check_footer(self.file, self.limits)
        try:
            with reader.ParquetFile(self.file, memory_map=False, buffer_size=2**16) as table:
                _check_groups(table.metadata)
                yield table
        except (Malformed, Refused, GeneratorExit):
            raise
        except Exception as error:  # the library's text may quote the data: only its kind is kept
            raise Malformed(
                f"the Parquet file cannot be read ({type(error).__name__}): it is damaged or unusual; write it again, "
                "or export it as CSV"
            ) from None


def _reader() -> Any:
    try:
        return importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise Refused(
            f"this is a Parquet file, which needs pyarrow: export it as CSV, or `{install('parquet')}`"
        ) from None


def _check_footer(file: Path, limits: ImportLimits) -> None:
    """The footer is read into memory whole, so its length is looked at before."""
    size = file.stat().st_size
    if size > limits.file_bytes:
        raise Refused(f"the file is longer than {limits.file_bytes} bytes; import it in parts")
    with file.open("rb") as stream:
        stream.seek(max(0, size - 8))
        end = stream.read(8)
    if len(end) < 8 or end[4:] != MAGIC or int.from_bytes(end[:4], "little") > min(size, LARGEST_FOOTER):
        raise Malformed("the Parquet file breaks off or is encrypted; write it again, or export it as CSV")


def _check_groups(metadata: Any) -> None:
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            if metadata.row_group(group).column(column).total_uncompressed_size > LARGEST_GROUP:
                raise Refused(f"a row group holds more than {LARGEST_GROUP} bytes of a column; write smaller groups")


def _cell(value: Any) -> Cell:
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict | list | tuple):
        try:
            return cell_of(value)
        except (TypeError, ValueError):
            return None
    return cell_of(value)
