"""Parquet's pages looked at before any is unpacked: where each lies, and how much it says that it holds.

The footer can name one part of the file again and again, and a page of some bytes can hold a value of gigabytes, or one
value a billion times. The decoder allocates what a page's header says, so these headers are read here (Apache Parquet
format, "Page header"; Thrift's compact protocol), and nothing else of a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from attrs import define

from anon.errors import Malformed, Refused
from anon.tables.streams import ImportLimits
from anon.text.sentences import say
from anon.values import frozen

MOST_CHUNKS = 200_000
"""Columns of all row groups together."""
LARGEST_HEADER = 2**20
MOST_LISTED = 16_000_000
"""Values of one column of lists in one row group: one row may hold all of them."""
_FIRST_READ = 4096
_PADDING = 100
"""Bytes by which old writers understate a column's length."""
_DATA, _DATA_2 = 0, 3
_PLACES = {_DATA: 5, _DATA_2: 8}
"""Of the structure in a page's header that says how many values it holds."""
_BROKEN = say("the Parquet file is damaged or was made to harm; write it again, or export it as CSV")


@frozen
class _Chunk:
    """One column of one row group."""

    begins: int
    length: int
    values: int
    listed: bool


def check_pages(file: Path, metadata: Any, listed: frozenset[str], limits: ImportLimits) -> None:
    """Raises `Malformed` or `Refused` unless all pages together can be unpacked within the limits.

    `listed` names the columns of which one row may hold many values.
    """
    if metadata.num_row_groups * metadata.num_columns > MOST_CHUNKS:
        raise Refused(
            say(
                "the Parquet file has more than {most_chunks} columns in its row groups; write larger groups",
                most_chunks=MOST_CHUNKS,
            )
        )
    chunks = list(_chunks(metadata, listed, limits))
    size = file.stat().st_size
    _check_places(chunks, size)
    most, unpacked = max(limits.ratio_from, limits.ratio * size), 0
    with file.open("rb") as stream:
        for chunk in chunks:
            limits.look()
            unpacked += _unpacked(stream, chunk, size, limits)
            if unpacked > most:
                raise Refused(
                    say(
                        "the Parquet file unpacks to more than {ratio} times its size; export it as CSV",
                        ratio=limits.ratio,
                    )
                )


def _chunks(metadata: Any, listed: frozenset[str], limits: ImportLimits) -> Iterator[_Chunk]:
    for number in range(metadata.num_row_groups):
        limits.look()
        group = metadata.row_group(number)
        for index in range(metadata.num_columns):
            column = group.column(index)
            begins, dictionary = column.data_page_offset, column.dictionary_page_offset
            if dictionary and dictionary < begins:
                begins = dictionary
            many, values = column.path_in_schema in listed, column.num_values
            if values < group.num_rows or (values > group.num_rows and not many):
                raise Malformed(_BROKEN)
            if many and values > MOST_LISTED:
                raise Refused(
                    say(
                        "a row group holds more than {most_listed} values of a list; write smaller groups",
                        most_listed=MOST_LISTED,
                    )
                )
            yield _Chunk(begins, column.total_compressed_size, values, many)


def _check_places(chunks: list[_Chunk], size: int) -> None:
    ends = 4
    for chunk in sorted(chunks, key=lambda chunk: chunk.begins):
        if chunk.values and (chunk.begins < ends or chunk.length <= 0 or chunk.begins + chunk.length > size):
            raise Refused(
                say(
                    "two parts of the Parquet file share the same bytes, or lie outside of it; write it again, or "
                    "export it as CSV"
                )
            )
        ends = max(ends, chunk.begins + chunk.length)


def _unpacked(stream: BinaryIO, chunk: _Chunk, size: int, limits: ImportLimits) -> int:
    """Bytes that the pages of a chunk say they unpack to."""
    position, ends = chunk.begins, min(chunk.begins + chunk.length + _PADDING, size)
    total = values = 0
    while values < chunk.values:
        limits.look()
        header, length = _header(stream, position)
        kind, unpacked, packed = (header.get(field, -1) for field in (1, 2, 3))
        position += length + packed
        if min(unpacked, packed) < 0 or position > ends:
            raise Malformed(_BROKEN)
        if kind in _PLACES:
            held = header.get(_PLACES[kind], {}).get(1, -1)
            if held < 0:
                raise Malformed(_BROKEN)
            values += held
        total += unpacked
    if values != chunk.values:
        raise Malformed(_BROKEN)
    return total


def _header(stream: BinaryIO, position: int) -> tuple[dict[int, Any], int]:
    """The header of the page at this place, and its length."""
    for most in (_FIRST_READ, LARGEST_HEADER):
        stream.seek(position)
        reader = _Compact(stream.read(most))
        try:
            return reader.structure(), reader.place
        except IndexError:
            continue
    raise Malformed(_BROKEN)


@define
class _Compact:
    """As much of Thrift's compact protocol as a page's header needs: integers and structures; the rest is passed over.

    Raises IndexError where the bytes end too early.
    """

    data: bytes
    place: int = 0

    def structure(self, depth: int = 0) -> dict[int, Any]:
        """The integers and structures of a structure, by their numbers."""
        fields: dict[int, Any] = {}
        number = 0
        while kind := self._byte():
            number = number + (kind >> 4) if kind >> 4 else self._signed()
            value = self._value(kind & 15, depth)
            if value is not None:
                fields[number] = value
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):
            return None
        if kind in (4, 5, 6):
            return self._signed()
        if kind in (3, 7):
            return self._pass(1 if kind == 3 else 8)
        if kind == 8:
            return self._pass(self._unsigned())
        if kind == 12 and depth < 4:
            return self.structure(depth + 1)
        raise Malformed(_BROKEN)

    def _pass(self, count: int) -> None:
        self.place += count
        if self.place > len(self.data):
            raise IndexError

    def _byte(self) -> int:
        self.place += 1
        return self.data[self.place - 1]

    def _unsigned(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            part = self._byte()
            value |= (part & 127) << shift
            if part < 128:
                return value
        raise Malformed(_BROKEN)

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
