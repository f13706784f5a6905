"""A study's features and label, computed from the owner's tables in a child process (`anon.queries`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from attrs import evolve

from anon.protocols.categories import is_missing, is_missing_label
from anon.queries import process
from anon.queries.answers import LABEL, Question, Request, Value, texts_of
from anon.study.manifest import Manifest
from peer.data.snapshot import Snapshot
from peer.rules.checks import tables_of


class Evaluate(Protocol):
    """Evaluates a study over a data file in so many seconds, and returns when they are over, never before. `seed`: of
    the draw that cuts too many records, of the study's secrets."""

    def __call__(
        self, manifest: Manifest, data_path: Path, seconds: float, seed: bytes = b""
    ) -> Awaitable[Snapshot]: ...


LOOK_SECONDS = 5.0
"""How long the owner's own values may take to be looked up before consent."""
_FRAME, _NUMBER = 64, 9
"""Bytes of CBOR beside the values, and of the longest number or head of a text."""


def by_deadline(sleep: process.Sleep = asyncio.sleep) -> Evaluate:
    """In a child process, taken up at the deadline by this sleep."""

    async def evaluate(manifest: Manifest, data_path: Path, seconds: float, seed: bytes = b"") -> Snapshot:
        return _snapshot(manifest, await process.by_deadline(request_of(manifest, data_path, seed), seconds, sleep))

    return evaluate


async def at_once(manifest: Manifest, data_path: Path, seconds: float, seed: bytes = b"") -> Snapshot:
    """As soon as the child has ended: for clocks that are moved. Its end would be seen from outside otherwise."""
    return await asyncio.to_thread(evaluated, manifest, data_path, seconds, seed)


def evaluated(manifest: Manifest, data_path: Path, seconds: float, seed: bytes = b"") -> Snapshot:
    """The same for what stays on this machine: returns when the values are known, after at most `seconds`."""
    return _snapshot(manifest, process.at_once(request_of(manifest, data_path, seed), seconds))


async def together(
    evaluate: Evaluate, allowed: Mapping[Manifest, tuple[float, bytes]], data_path: Path
) -> list[Snapshot]:
    """Several studies beside each other, each in its own seconds and with its own seed: over when the longest of these
    are."""
    asked = (evaluate(manifest, data_path, seconds, seed) for manifest, (seconds, seed) in allowed.items())
    return await asyncio.gather(*asked)


def request_of(manifest: Manifest, data_path: Path, seed: bytes = b"") -> Request:
    """The child's part of a study: its queries, the tables that they read, and the texts that may be answered. Of many
    records, also how many there may be, and the seed of their draw."""
    label = Question(LABEL, manifest.label.query, texts_of((*manifest.label.positive, *manifest.label.negative)))
    features = (Question(feature.kind, feature.query, feature.categories) for feature in manifest.features)
    asked = Request(data_path.absolute(), tables_of(manifest), (*features, label), manifest.timetable.enrol_closes)
    return evolve(asked, most=manifest.records.most, seed=seed.hex()) if manifest.records else asked


def uncounted(manifest: Manifest, data_path: Path, seconds: float = LOOK_SECONDS) -> tuple[str, ...]:
    """The features, and the label, whose value on these tables would count as missing: for the owner alone. Of many
    records, those that none of them has."""
    snapshot = evaluated(manifest, data_path, seconds).record
    records = snapshot.rows if manifest.records else (snapshot,)
    found = [
        feature.name
        for feature in manifest.features
        if all(is_missing(feature, record.values[feature.name]) for record in records)
    ]
    unlabelled = all(is_missing_label(manifest.label, record.label) for record in records)
    return (*found, *([manifest.label.name] if unlabelled else []))


def missing(manifest: Manifest) -> Snapshot:
    """The snapshot in which every value is missing, or without a record."""
    return _snapshot(manifest, () if manifest.records else (None,) * (len(manifest.features) + 1))


def stored(manifest: Manifest, snapshot: Snapshot) -> bytes:
    """A snapshot for the store, as long for every record: on a disk with hardly any room left, a longer one would keep
    packets back that a shorter one lets go."""
    texts = [(feature.name, *feature.categories) for feature in manifest.features]
    texts.append(texts_of((*manifest.label.positive, *manifest.label.negative)))
    if manifest.records is None:
        return snapshot.padded(_FRAME + sum(_longest(named) for named in texts))
    names = sum(_longest([feature.name]) for feature in manifest.features)
    return snapshot.padded(_FRAME + names + manifest.records.most * (_NUMBER + sum(_longest(named) for named in texts)))


def _longest(texts: Sequence[str]) -> int:
    """Bytes of a name and any of the values beside it."""
    return 2 * max((len(text.encode()) for text in texts), default=0) + 2 * _NUMBER


def _snapshot(manifest: Manifest, values: tuple[Value, ...]) -> Snapshot:
    if manifest.records is not None:
        return _of_many(manifest, values)
    *features, label = values
    named = {feature.name: value for feature, value in zip(manifest.features, features, strict=True)}
    return Snapshot(manifest.timetable.enrol_closes, named, label)


def _of_many(manifest: Manifest, values: tuple[Value, ...]) -> Snapshot:
    """The records of the answers, which come one record after the other, the label last."""
    names, each = [feature.name for feature in manifest.features], len(manifest.features) + 1
    order = [names.index(name) for name in sorted(names)]
    found = (values[at : at + each] for at in range(0, len(values), each))
    rows = tuple((*(record[place] for place in order), record[-1]) for record in found)
    return Snapshot(manifest.timetable.enrol_closes, dict.fromkeys(names), None, rows)
