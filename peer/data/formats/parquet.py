"""Apache Parquet, read in batches with pyarrow, which is an extra (`parquet`).

Nothing is imported until a Parquet file comes; a peer without pyarrow reads every other format. Texts stay in the
dictionaries that the file keeps them in, and a cell that is too long is never made: a file of 4 kB can name one text of
100 MB in each of its rows.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from anon.errors import Malformed, Refused, because
from anon.machine.extras import install
from anon.tables.streams import Cell, ImportLimits, Record
from anon.text.sentences import say
from anon.values import frozen
from peer.data.formats.json_text import cell_of
from peer.data.formats.parquet_pages import check_pages

MAGIC = b"PAR1"
BATCH = 256
LARGEST_FOOTER = 16 * 2**20
LARGEST_GROUP = 256 * 2**20
"""Bytes of one row group's column as it is held while it is read."""
AT_ONCE = 2 * 2**20
"""Characters of a batch's column, at least, up to which its rows need not be measured one by one."""


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
            raise Refused(
                say(
                    "the file has {found} columns, more than {most}; drop some",
                    found=len(names), most=self.limits.columns,
                )
            )
        if not names:
            raise Malformed(say("the Parquet file has no columns; write it again, or export it as CSV"))
        if len(set(names)) < len(names):
            raise Refused(say("two columns of the file have one name; rename one of them"))
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
                self.limits.look()
                for values in zip(*(self._values(column) for column in batch.columns), strict=True):
                    number += 1
                    yield number, dict(zip(names, map(_cell, values), strict=True))

    def _values(self, column: Any) -> list[Any]:
        """The column's values; a text longer than any cell may be stands for one that is."""
        if _least(column) <= AT_ONCE:
            return list(column.to_pylist())
        most, rows = self.limits.cell_bytes, (column.slice(index, 1) for index in range(len(column)))
        return ["x" * (most + 1) if _least(row) > most else row.to_pylist()[0] for row in rows]

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        reader = _reader()
        _check_footer(self.file, self.limits)
        try:
            # A file that is cut while it is mapped ends the process (SIGBUS).
            with reader.ParquetFile(self.file, memory_map=False, buffer_size=2**16) as table:
                leaves = [table.schema.column(index) for index in range(len(table.schema))]
                _check_groups(table.metadata)
                listed = frozenset(leaf.path for leaf in leaves if leaf.max_repetition_level)
                check_pages(self.file, table.metadata, listed, self.limits)
            texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
            with reader.ParquetFile(
                self.file, memory_map=False, buffer_size=2**16, read_dictionary=texts
            ) as table:
                yield table
        except (Malformed, Refused, GeneratorExit):
            raise
        except Exception as error:  # the library's text may quote the data: only its kind is kept
            raise Malformed(
                say(
                    "the Parquet file cannot be read{why}: it is damaged or unusual; write it again, or export it "
                    "as CSV",
                    why=because(error),
                )
            ) from None


def _reader() -> Any:
    try:
        return importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise Refused(
            say(
                "this is a Parquet file, which needs pyarrow: export it as CSV, or `{install}`",
                install=install("parquet"),
            )
        ) from None


def _check_footer(file: Path, limits: ImportLimits) -> None:
    """The footer is read into memory whole, so its length is looked at before."""
    size = file.stat().st_size
    if size > limits.file_bytes:
        raise Refused(
            say("the file is longer than {file_bytes} bytes; import it in parts", file_bytes=limits.file_bytes)
        )
    with file.open("rb") as stream:
        stream.seek(max(0, size - 8))
        end = stream.read(8)
    if len(end) < 8 or end[4:] != MAGIC or int.from_bytes(end[:4], "little") > min(size, LARGEST_FOOTER):
        raise Malformed(say("the Parquet file breaks off or is encrypted; write it again, or export it as CSV"))


def _least(column: Any) -> int:
    """Characters that these values take at least, found without making any of them."""
    arrow, compute = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.compute")
    kind = column.type
    if arrow.types.is_dictionary(kind):
        lengths = compute.binary_length(column.dictionary)
        return len(column) + (compute.sum(lengths.take(column.indices)).as_py() or 0)
    if arrow.types.is_map(kind):
        begins, ends = column.offsets[0].as_py(), column.offsets[len(column)].as_py()
        parts = (values.slice(begins, ends - begins) for values in (column.keys, column.items))
        return sum(map(_least, parts), len(column))
    if arrow.types.is_struct(kind):
        return sum(map(_least, column.flatten()), len(column))
    if arrow.types.is_nested(kind):
        return len(column) + _least(column.flatten())
    return len(column)


def _check_groups(metadata: Any) -> None:
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            if metadata.row_group(group).column(column).total_uncompressed_size > LARGEST_GROUP:
                raise Refused(
                    say(
                        "a row group holds more than {largest_group} bytes of a column; write smaller groups",
                        largest_group=LARGEST_GROUP,
                    )
                )


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
