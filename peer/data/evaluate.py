"""A study's features and label, computed from the owner's tables in a child process (`anon.queries`).

Their answers are one message of fixed size (`anon.queries.answers`). It is stored as it is, and is read by whoever has
no keys (`peer.data.making`), or for the owner alone.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Protocol

from anon.protocols.categories import is_missing, is_missing_label
from anon.queries import process
from anon.queries.answers import LABEL, Question, Request, Value, nothing, parse_answers, texts_of
from anon.queries.process import Work
from anon.study.manifest import Manifest
from peer.data.snapshot import Snapshot
from peer.rules.checks import tables_of


class Evaluate(Protocol):
    """Has work done away from the keys in so many seconds, and returns its message when they are over, never before.

    A message that was not there then has another length than `work.size`.
    """

    def __call__(self, work: Work, seconds: float) -> Awaitable[bytes]: ...


LOOK_SECONDS = 20.0 if sys.platform == "win32" else 5.0
"""How long the owner's own values may take to be looked up, and records to be counted, before consent. On Windows each
look starts a program."""


def by_deadline(sleep: process.Sleep = asyncio.sleep) -> Evaluate:
    """In a child process, taken up at the deadline by this sleep."""

    async def evaluate(work: Work, seconds: float) -> bytes:
        return await process.by_deadline(work, seconds, sleep)

    return evaluate


def after_its_end(sleep: process.Sleep) -> Evaluate:
    """In a child process that may take all its seconds of real time; then on to the deadline by this sleep, of a clock
    that is moved. For simulations: from outside its end would be seen."""

    async def evaluate(work: Work, seconds: float) -> bytes:
        message = await asyncio.to_thread(process.in_a_child, work, seconds)
        await sleep(seconds)
        return message

    return evaluate


async def at_once(work: Work, seconds: float) -> bytes:
    """As soon as it is done, for clocks that are moved: queries in a child, whatever else in a thread. Its end would be
    seen from outside otherwise."""
    does = process.in_a_child if work.foreign else _here
    return await asyncio.to_thread(does, work, seconds)


def _here(work: Work, seconds: float) -> bytes:
    return work.here(seconds)


def evaluated(manifest: Manifest, data_path: Path, seconds: float, seed: bytes = b"") -> Snapshot:
    """The values for what stays on this machine: returns when they are known, after at most `seconds`."""
    return _snapshot(manifest, process.at_once(request_of(manifest, data_path, seed), seconds))


async def together(
    evaluate: Evaluate, allowed: Mapping[Manifest, tuple[float, bytes]], data_path: Path
) -> list[bytes]:
    """The answers of several studies, evaluated beside each other, each in its own seconds and with its own seed: over
    when the longest of these are."""
    asked = (answers_of(evaluate, manifest, data_path, seconds, seed) for manifest, (seconds, seed) in allowed.items())
    return await asyncio.gather(*asked)


async def answers_of(
    evaluate: Evaluate, manifest: Manifest, data_path: Path, seconds: float, seed: bytes = b""
) -> bytes:
    """A study's answers, after so many seconds; those of no data where none came. `seed`: of the draw that cuts too
    many records, of the study's secrets."""
    request = request_of(manifest, data_path, seed)
    message = await evaluate(process.queries(request), seconds)
    return message if len(message) == request.size else nothing(request)


def request_of(manifest: Manifest, data_path: Path, seed: bytes = b"") -> Request:
    """The child's part of a study: its queries, the tables that they read, and the texts that may be answered. Of many
    records, also how many there may be, and the seed of their draw."""
    label = Question(LABEL, manifest.label.query, texts_of((*manifest.label.positive, *manifest.label.negative)))
    features = (Question(feature.kind, feature.query, feature.categories) for feature in manifest.features)
    asked = Request(data_path.absolute(), tables_of(manifest), (*features, label), manifest.timetable.enrol_closes)
    return asked._replace(most=manifest.records.most, seed=seed.hex()) if manifest.records else asked


def records_in(snapshot: Snapshot) -> int | None:
    """How many records were found; None where the study has one of each member."""
    return None if snapshot.rows is None else len(snapshot.rows)


def uncounted(manifest: Manifest, snapshot: Snapshot) -> tuple[str, ...]:
    """The features, and the label, whose value counts as missing: for the owner alone. Of many records, those that none
    of them has."""
    records = snapshot.record.rows if manifest.records else (snapshot.record,)
    found = [
        feature.name
        for feature in manifest.features
        if all(is_missing(feature, record.values[feature.name]) for record in records)
    ]
    unlabelled = all(is_missing_label(manifest.label, record.label) for record in records)
    return (*found, *([manifest.label.name] if unlabelled else []))


def missing(manifest: Manifest) -> bytes:
    """The answers in which every value is missing, or without a record."""
    return nothing(request_of(manifest, Path()))


def snapshot_of(manifest: Manifest, message_untrusted: bytes) -> Snapshot:
    """The values in a message of answers. All are missing when a byte is not as it must be."""
    return _snapshot(manifest, parse_answers(request_of(manifest, Path()), message_untrusted))


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
