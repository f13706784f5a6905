"""Documents that are one long list of byte strings (roster, credentials, transcripts), read where they lie.

Decoding a body would build tens of bytes for each of its own. Here nothing is built but the row that is asked for, and
time is linear in the rows. A list has one spelling, the canonical one of `anon.wire.cbor`; any other is `Malformed`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

from attrs import field

from anon.errors import Malformed
from anon.values import frozen
from anon.wire.cbor import encode

_BYTES, _LIST = 2, 4
"""Major types, RFC 8949, section 3."""
_LENGTHS = {24: 1, 25: 2, 26: 4, 27: 8}
"""Bytes of the argument that follows a head, by its additional information."""

Row = tuple[bytes, ...]


@frozen(eq=False)
class FixedRows(Sequence[Row]):
    """Rows whose byte strings have the same lengths. Holds the body and nothing else."""

    _body: bytes = field(repr=False)
    _start: int
    _stride: int
    _spans: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return (len(self._body) - self._start) // self._stride

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        """The byte strings of a row, copied out of the body."""
        if isinstance(index, slice):
            return [self[index] for index in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        start = self._start + index % len(self) * self._stride
        return tuple(self._body[start + low : start + high] for low, high in self._spans)

    def column(self, number: int) -> Iterator[bytes]:
        """The byte strings at one place of every row."""
        low, high = self._spans[number]
        starts = range(self._start, len(self._body), self._stride)
        return (self._body[start + low : start + high] for start in starts)


def list_length(count: int, each: int) -> int:
    """Bytes of a list of so many items of so many bytes each."""
    return len(encode(count)) + count * each


def fixed_rows(
    body_untrusted: bytes, heading: Sequence[Any], sizes: Sequence[int], what: str, bare: bool = False
) -> FixedRows:
    """The rows of `[*heading, [row, ...]]`, each a list of byte strings of these sizes, or when `bare` one byte string.

    Raises `Malformed`.
    """
    count, start = _opened(body_untrusted, heading, what)
    row = encode(bytes(sizes[0])) if bare else encode([bytes(size) for size in sizes])
    if len(body_untrusted) - start != count * len(row):
        raise Malformed(f"{what}: expected {count} rows of {len(row)} bytes each")
    spans, between = _laid_out(row, sizes)
    for index in between:  # a whole column at once: the rows' heads are the same bytes in every row
        if body_untrusted[start + index :: len(row)] != row[index : index + 1] * count:
            raise Malformed(f"{what}: expected rows of byte strings of {', '.join(map(str, sizes))} bytes")
    return FixedRows(body_untrusted, start, len(row), spans)


def byte_strings(body_untrusted: bytes, heading: Sequence[Any], what: str) -> Iterator[bytes]:
    """The byte strings of `[*heading, [string, ...]]`, of whatever lengths, one after the other.

    Raises `Malformed`, when it comes to what is none.
    """
    count, position = _opened(body_untrusted, heading, what)
    head, length = b"", 0  # of the last item: most are as long as the one before
    for _ in range(count):
        start = position + len(head)
        if not head or body_untrusted[position:start] != head:
            length, start = _head(body_untrusted, position, _BYTES, what)
            head = body_untrusted[position:start]
        position = start + length
        if position > len(body_untrusted):
            break
        yield body_untrusted[start:position]
    if position != len(body_untrusted):
        raise Malformed(f"{what}: expected {count} byte strings and nothing else")


def _opened(body_untrusted: bytes, heading: Sequence[Any], what: str) -> tuple[int, int]:
    """How many items the list has, and where the first begins."""
    opening = encode([*heading, 0])[:-1]
    if not body_untrusted.startswith(opening):
        raise Malformed(f"{what}: for another study or version; expected {len(heading) + 1} fields")
    return _head(body_untrusted, len(opening), _LIST, what)


def _head(body_untrusted: bytes, position: int, major: int, what: str) -> tuple[int, int]:
    """The argument of the item at this place, and where its content begins; shortest spelling only."""
    first = body_untrusted[position] if position < len(body_untrusted) else -1
    digits = _LENGTHS.get(first & 31, 0)
    end = position + 1 + digits
    argument = int.from_bytes(body_untrusted[position + 1 : end], "big") if digits else first & 31
    # The encoder's own length of an argument decides which spelling is the shortest.
    if first >> 5 != major or len(encode(argument)) != 1 + digits or end > len(body_untrusted):
        raise Malformed(f"{what}: expected a {'list' if major == _LIST else 'byte string'} in its one spelling")
    return argument, end


def _laid_out(row: bytes, sizes: Sequence[int]) -> tuple[tuple[tuple[int, int], ...], list[int]]:
    """Where a row's byte strings lie, and the places between them."""
    spans: list[tuple[int, int]] = []
    position = len(row) - sum(len(encode(bytes(size))) for size in sizes)
    for size in sizes:
        position += len(encode(bytes(size)))
        spans.append((position - size, position))
    inside = {index for low, high in spans for index in range(low, high)}
    return tuple(spans), [index for index in range(len(row)) if index not in inside]
