"""Features and a label evaluated in this process: for data that belong to whoever asks, such as a file of people.

A study's answers come from a child process instead (`peer.data.evaluate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from anon.queries.answers import LABEL, value_of
from anon.queries.lint import BOUNDS, Bounds, Tables
from anon.queries.sandbox import MissingValue, Outcome, Reason, Sandbox, opened
from peer.data.snapshot import Snapshot

LONGEST_EVALUATION = 60.0
"""Seconds for all queries of a study together."""


class QueriedValue(Protocol):
    """The label, or whatever else is asked by one query."""

    @property
    def query(self) -> str: ...


class QueriedFeature(QueriedValue, Protocol):
    """A feature as the study declares it."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...


def evaluate_here(
    database: Path,
    features: Sequence[QueriedFeature],
    label: QueriedValue,
    as_of: int,
    *,
    tables: Tables | None = None,
    bounds: Bounds = BOUNDS,
    seconds: float = LONGEST_EVALUATION,
) -> Snapshot:
    """Evaluate every feature and the label in one read transaction, here, at `as_of` (seconds since 1970 UTC).

    Total: there is a value, or None, for each feature, whatever the data, the file and the queries are; nothing that
    depends on them raises. How long it takes does depend on them, but it ends soon after `seconds`: what is not known
    by then counts as nothing. The data file is not changed. A categorical feature gives a text, or an integer written
    as text; a numeric one a number; every other type counts as nothing. The label keeps its type.
    Call it in a thread of its own when an event loop must go on.
    """
    with opened(database, tables, bounds, seconds) as sandbox:
        values = {feature.name: value_of(feature.kind, _ask(sandbox, feature.query, as_of)) for feature in features}
        return Snapshot(as_of, values, value_of(LABEL, _ask(sandbox, label.query, as_of)))


def _ask(sandbox: Sandbox | None, query: str, as_of: int) -> Outcome:
    return MissingValue(Reason.NO_DATA) if sandbox is None else sandbox.scalar(query, as_of)
