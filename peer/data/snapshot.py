"""A `Snapshot`: the raw values of all features and the label of a study, evaluated once, at one instant.

They never leave the machine and are never printed. The message that they were read from is stored once
(`peer.data.evaluate`); later documents of the study (thresholds, edges) turn these same values into categories.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs
from attrs import field

from anon.errors import Malformed
from anon.protocols.contract import Record
from anon.queries.answers import Value
from anon.values import frozen


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
                raise Malformed("snapshot: a record of another length")
            for value in row:
                _is_value(self, attrs.fields(Snapshot).rows, value)

    @property
    def record(self) -> Record:
        """The same as a protocol's part takes it."""
        names = sorted(self.values)
        rows = [Record(dict(zip(names, row, strict=False)), row[-1]) for row in self.rows or ()]
        return Record(self.values, self.label, rows)
