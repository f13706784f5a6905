"""A study's features and label, computed from the owner's tables in a child process (`anon.queries`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from anon.protocols.categories import is_missing, is_missing_label
from anon.queries import process
from anon.queries.answers import LABEL, Question, Request, Value, texts_of
from anon.study.manifest import Manifest
from peer.data.snapshot import Snapshot
from peer.rules.checks import tables_of

Evaluate = Callable[[Manifest, Path, float], Awaitable[Snapshot]]
"""Evaluates a study over a data file in so many seconds, and returns when they are over, never before."""


LOOK_SECONDS = 5.0
"""How long the owner's own values may take to be looked up before consent."""
_FRAME, _NUMBER = 64, 9
"""Bytes of CBOR beside the values, and of the longest number or head of a text."""


def by_deadline(sleep: process.Sleep = asyncio.sleep) -> Evaluate:
    """In a child process, taken up at the deadline by this sleep."""

    async def evaluate(manifest: Manifest, data_path: Path, seconds: float) -> Snapshot:
        return _snapshot(manifest, await process.by_deadline(request_of(manifest, data_path), seconds, sleep))

    return evaluate


async def at_once(manifest: Manifest, data_path: Path, seconds: float) -> Snapshot:
    """As soon as the child has ended: for clocks that are moved. Its end would be seen from outside otherwise."""
    return await asyncio.to_thread(evaluated, manifest, data_path, seconds)


def evaluated(manifest: Manifest, data_path: Path, seconds: float) -> Snapshot:
    """The same for what stays on this machine: returns when the values are known, after at most `seconds`."""
    return _snapshot(manifest, process.at_once(request_of(manifest, data_path), seconds))


async def together(evaluate: Evaluate, allowed: Mapping[Manifest, float], data_path: Path) -> list[Snapshot]:
    """Several studies beside each other, each in its own seconds: over when the longest of these are."""
    return await asyncio.gather(*(evaluate(manifest, data_path, seconds) for manifest, seconds in allowed.items()))


def request_of(manifest: Manifest, data_path: Path) -> Request:
    """The child's part of a study: its queries, the tables that they read, and the texts that may be answered."""
    label = Question(LABEL, manifest.label.query, texts_of((*manifest.label.positive, *manifest.label.negative)))
    features = (Question(feature.kind, feature.query, feature.categories) for feature in manifest.features)
    return Request(data_path.absolute(), tables_of(manifest), (*features, label), manifest.timetable.enrol_closes)


def uncounted(manifest: Manifest, data_path: Path, seconds: float = LOOK_SECONDS) -> tuple[str, ...]:
    """The features, and the label, whose value on these tables would count as missing: for the owner alone."""
    snapshot = evaluated(manifest, data_path, seconds)
    found = [feature.name for feature in manifest.features if is_missing(feature, snapshot.values[feature.name])]
    return (*found, *([manifest.label.name] if is_missing_label(manifest.label, snapshot.label) else []))


def missing(manifest: Manifest) -> Snapshot:
    """The snapshot in which every value is missing."""
    return _snapshot(manifest, (None,) * (len(manifest.features) + 1))


def stored(manifest: Manifest, snapshot: Snapshot) -> bytes:
    """A snapshot for the store, as long for every record: on a disk with hardly any room left, a longer one would keep
    packets back that a shorter one lets go."""
    texts = [(feature.name, *feature.categories) for feature in manifest.features]
    texts.append(texts_of((*manifest.label.positive, *manifest.label.negative)))
    return snapshot.padded(_FRAME + sum(_longest(named) for named in texts))


def _longest(texts: Sequence[str]) -> int:
    """Bytes of a name and any of the values beside it."""
    return 2 * max((len(text.encode()) for text in texts), default=0) + 2 * _NUMBER


def _snapshot(manifest: Manifest, values: tuple[Value, ...]) -> Snapshot:
    *features, label = values
    named = {feature.name: value for feature, value in zip(manifest.features, features, strict=True)}
    return Snapshot(manifest.timetable.enrol_closes, named, label)
