"""All features and the label of a study, evaluated once, at one instant.

The result is a `Snapshot`: raw values that never leave the machine and are never printed. It is stored once; later
documents of the study (thresholds, edges) turn these same values into categories.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from attrs import field, frozen

from anon.encoding import decode, encode
from anon.errors import Malformed
from anon.sql import BOUNDS, Bounds, Tables, lint
from peer.data.sandbox import Missing, Outcome, Reason, Sandbox, opened, plain_tables_of

Value = float | str | None
"""A number, a text, or None where the query gave nothing usable."""

VERSION = 1
LONGEST_EVALUATION = 60.0
"""Seconds for all queries of a study together."""
LONGEST_TEXT = 1000
"""Characters of a text that is kept; a longer one is no category of any study and counts as nothing. So a snapshot's
size, and with it whether it can be stored, hardly depends on data."""


class Question(Protocol):
    """The label, or whatever else is asked by one query."""

    @property
    def query(self) -> str: ...


class Feature(Question, Protocol):
    """A feature as the study declares it."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...


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


@frozen
class Snapshot:
    """Raw values of one peer at one instant. Never shown by `repr`, never sent; only categories derive from it."""

    as_of: int
    values: Mapping[str, Value] = field(repr=False, converter=_fixed, validator=_are_values)
    label: Value = field(repr=False, validator=_is_value)

    def to_bytes(self) -> bytes:
        """Canonical CBOR, for this machine's own store."""
        return encode([VERSION, self.as_of, dict(self.values), self.label])

    @classmethod
    def from_bytes(cls, data_untrusted: bytes) -> Snapshot:
        """Read back what `to_bytes` wrote. Raises `Malformed` for anything else."""
        parts = decode(data_untrusted, "snapshot")
        if not isinstance(parts, list) or len(parts) != 4 or parts[0] != VERSION:
            raise Malformed(f"snapshot: expected four parts of version {VERSION}; restore the store from a backup")
        _version, as_of, values, label = parts
        if type(as_of) is not int or not isinstance(values, dict):
            raise Malformed("snapshot: expected an instant and a table of values; restore the store from a backup")
        return cls(as_of, values, label)


def snapshot(
    database: Path,
    features: Sequence[Feature],
    label: Question,
    as_of: int,
    *,
    tables: Tables | None = None,
    bounds: Bounds = BOUNDS,
    seconds: float = LONGEST_EVALUATION,
) -> Snapshot:
    """Evaluate every feature and the label in one read transaction at `as_of` (seconds since 1970 UTC).

    Total: there is a value, or None, for each feature, whatever the data, the file and the queries are; nothing that
    depends on them raises. How long it takes does depend on them, but it ends soon after `seconds`: what is not known
    by then counts as nothing. The data file is not changed. A categorical feature gives a text, or an integer written
    as text; a numeric one a number; every other type counts as nothing. The label keeps its type.
    Call it in a thread of its own when an event loop must go on.
    """
    with opened(database, tables, bounds, seconds) as sandbox:
        values = {feature.name: _feature_value(feature, _ask(sandbox, feature.query, as_of)) for feature in features}
        return Snapshot(as_of, values, _label_value(_ask(sandbox, label.query, as_of)))


def _ask(sandbox: Sandbox | None, query: str, as_of: int) -> Outcome:
    return Missing(Reason.NO_DATA) if sandbox is None else sandbox.scalar(query, as_of)


def _feature_value(feature: Feature, outcome: Outcome) -> Value:
    if isinstance(outcome, Missing) or _too_long(outcome):
        return None
    if feature.kind == "numeric":
        return None if isinstance(outcome, str) else float(outcome)
    return None if isinstance(outcome, float) else str(outcome)


def _label_value(outcome: Outcome) -> Value:
    if isinstance(outcome, Missing) or _too_long(outcome):
        return None
    return outcome if isinstance(outcome, str) else float(outcome)


def _too_long(outcome: Outcome) -> bool:
    return isinstance(outcome, str) and len(outcome) > LONGEST_TEXT


def check_queries(features: Sequence[Feature], label: Question, tables: Tables) -> None:
    """Lint every query of a study before enrolment. Raises `Refused` or `Malformed`, naming the feature."""
    for feature in features:
        lint(feature.query, tables, f"feature {feature.name}")
    lint(label.query, tables, "label")


@frozen
class Readiness:
    """What the owner's data lacks for a study. Shown to the owner alone; it never decides whether a peer sends."""

    missing_tables: tuple[str, ...]
    missing_columns: tuple[str, ...]
    """Each as table.column."""

    @property
    def complete(self) -> bool:
        """True when every declared table and column is there."""
        return not (self.missing_tables or self.missing_columns)


def readiness(database: Path, tables: Tables) -> Readiness:
    """Compare the study's declared tables with the data file. Never raises; no file is like an empty one."""
    present = plain_tables_of(database)
    return Readiness(
        tuple(table for table in tables if table not in present),
        tuple(
            f"{table}.{column}"
            for table, columns in tables.items()
            for column in columns
            if table in present and column not in present[table]
        ),
    )
