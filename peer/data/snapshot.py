"""A `Snapshot`: the raw values of all features and the label of a study, evaluated once, at one instant.

They never leave the machine and are never printed. A snapshot is stored once; later documents of the study (thresholds,
edges) turn these same values into categories.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs
from attrs import field, frozen

from anon.errors import Malformed
from anon.protocols.contract import Record
from anon.queries.answers import Value
from anon.wire.cbor import decode, encode

VERSION, VERSION_OF_MANY = 1, 2
_PREFIX = 4
"""Bytes of a length: the first is 0, with which no CBOR of a snapshot begins."""


def _is_value(_instance: object, attribute: Any, value: Any) -> None:
    if value is None or isinstance(value, str) or (isinstance(value, float) and math.isfinite(value)):
        return
    raise Malformed(f"snapshot: {attribute.name} holds something other than a finite number, a text or nothing")


def _are_values(instance: object, attribute: Any, values: Mapping[str, Value]) -> None:
    for name, value in values.items():
        if not isinstance(name, str):
            raise Malformed(f"snapshot: {attribute.name} holds a name that is no text")
        _is_value(instance, attribute, value)


def _fixed(values: Mapping[str, Value]) -> Mapping[str, Value]:
    return MappingProxyType(dict(values))


Row = tuple[Value, ...]
"""One of many records: the features' values in the order of their names, and the label's."""


@frozen
class Snapshot:
    """Raw values of one peer at one instant. Never shown by `repr`, never sent. Categories derive from it,
    and exact vectors in a protocol whose promise is central.

    `rows`: where the study has many records of each member, one for each; None where it has one. Values and label are
    missing then."""

    as_of: int
    values: Mapping[str, Value] = field(repr=False, converter=_fixed, validator=_are_values)
    label: Value = field(repr=False, validator=_is_value)
    rows: tuple[Row, ...] | None = field(default=None, repr=False)

    def __attrs_post_init__(self) -> None:
        for row in self.rows or ():
            if len(row) != len(self.values) + 1:
                raise Malformed("snapshot: a record of another length; restore the store from a backup")
            for value in row:
                _is_value(self, attrs.fields(Snapshot).rows, value)

    @property
    def record(self) -> Record:
        """The same as a protocol's part takes it."""
        names = sorted(self.values)
        rows = [Record(dict(zip(names, row, strict=False)), row[-1]) for row in self.rows or ()]
        return Record(self.values, self.label, rows)

    def to_bytes(self) -> bytes:
        """Canonical CBOR. It is as long as the values are: see `padded`."""
        if self.rows is not None:
            return encode([VERSION_OF_MANY, self.as_of, sorted(self.values), [list(row) for row in self.rows]])
        return encode([VERSION, self.as_of, dict(self.values), self.label])

    def padded(self, size: int) -> bytes:
        """For this machine's own store: its length, `to_bytes`, and zeros up to `size` (`evaluate.stored`)."""
        content = self.to_bytes()
        return len(content).to_bytes(_PREFIX, "big") + content + bytes(max(0, size - _PREFIX - len(content)))

    @classmethod
    def from_bytes(cls, data_untrusted: bytes) -> Snapshot:
        """Read back what `padded` wrote, or `to_bytes` for an earlier program. Raises `Malformed` for anything else."""
        parts = decode(_content(data_untrusted), "snapshot")
        if not isinstance(parts, list) or len(parts) != 4 or parts[0] not in (VERSION, VERSION_OF_MANY):
            raise Malformed(f"snapshot: expected four parts of version {VERSION}; restore the store from a backup")
        version, as_of, values, label = parts
        if version == VERSION_OF_MANY:
            return cls._of_many(as_of, values, label)
        if type(as_of) is not int or not isinstance(values, dict):
            raise Malformed("snapshot: expected an instant and a table of values; restore the store from a backup")
        return cls(as_of, values, label)

    @classmethod
    def _of_many(cls, as_of: Any, names: Any, rows: Any) -> Snapshot:
        lists = isinstance(names, list) and isinstance(rows, list) and all(isinstance(row, list) for row in rows)
        if type(as_of) is not int or not lists:
            raise Malformed("snapshot: expected names and a list of records; restore the store from a backup")
        return cls(as_of, dict.fromkeys(names), None, tuple(map(tuple, rows)))


def _content(stored: bytes) -> bytes:
    """The bytes that `padded` framed; an earlier program stored them without a frame, and they begin otherwise."""
    if stored[:1] != b"\0":
        return stored
    end = _PREFIX + int.from_bytes(stored[:_PREFIX], "big")
    if end > len(stored) or any(stored[end:]):
        raise Malformed("snapshot: wrong padding; restore the store from a backup")
    return stored[_PREFIX:end]
