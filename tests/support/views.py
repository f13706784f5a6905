"""The bytes that an aggregator and its tellers hold, and a search in them for what members keep: vectors, weights,
votes.

A value is sought in the spellings in which programs of ours write numbers, if they have 7 bytes or more. So where
nothing was told a search finds something in less than one of a million runs.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from struct import pack
from tempfile import TemporaryDirectory

from anon.protocols.categories import label_category
from anon.protocols.contract import Record
from anon.protocols.sum.classifiers import CLASSIFY
from anon.protocols.sum.design import summed_of
from anon.protocols.sum.masks.masking import MODULUS
from anon.protocols.sum.parties import classifier_of
from anon.protocols.vectors.averaging import AveragedWeights
from anon.protocols.vectors.columns import CONSTANT
from anon.protocols.vectors.logistic import fit
from anon.protocols.vectors.transfer import TransferredVotes, public_rows
from anon.study.manifest import Manifest, Survey
from anon.vdaf.field import FIELD64, FIELD128
from anon.wire.cbor import encode

Needles = Mapping[str, bytes]
SHORTEST = 7
_SQLITE = b"SQLite format 3\0"


def of_integers(name: str, values: Sequence[int]) -> dict[str, bytes]:
    """A vector as masks, fields, CBOR, JSON and SQLite's columns spell it."""
    assert any(values), "a vector of zeros looks like padding"
    fields = {f"field of {one.size} bytes": one for one in (FIELD64, FIELD128)}
    spelled = {
        "big-endian": pack(f">{len(values)}Q", *(value % MODULUS for value in values)),
        "little-endian": pack(f"<{len(values)}Q", *(value % MODULUS for value in values)),
        **{spelling: one.encode([value % one.modulus for value in values]) for spelling, one in fields.items()},
        "CBOR": encode(list(values))[1:],
        "JSON": json.dumps(list(values))[1:-1].encode(),
        "JSON without spaces": json.dumps(list(values), separators=(",", ":"))[1:-1].encode(),
    }
    return {f"{name}, {spelling}": one for spelling, one in spelled.items() if len(one) >= SHORTEST}


def of_numbers(name: str, values: Sequence[float]) -> dict[str, bytes]:
    """Weights as machines and JSON spell them."""
    packed = {f"{name}, {order}d": pack(f"{order}{len(values)}d", *values) for order in "<>"}
    return packed | {f"{name}, JSON": json.dumps(list(values))[1:-1].encode()}


def of_votes(name: str, votes: Sequence[int]) -> dict[str, bytes]:
    """Votes of 0 or 1 as bytes, digits and bits; nothing of votes that are all alike, which look like padding."""
    if len({*votes}) == 1:
        return {}
    digits = "".join(map(str, votes))
    return {
        f"{name}, bytes": bytes(votes), f"{name}, digits": digits.encode(),
        f"{name}, bits": int(digits, 2).to_bytes(-(-len(votes) // 8), "big"),
    }  # fmt: skip


def kept(name: str, study: Manifest, survey: Survey, record: Record, given: bytes) -> dict[str, bytes]:
    """The weights, or the votes, from which a member makes its vector; nothing of other sums."""
    records = record.rows if study.records else (record,)
    labels, rows = [label_category(study.label, one.label) for one in records], [one.values for one in records]
    shape = summed_of(study, survey)
    if not isinstance(shape, AveragedWeights | TransferredVotes):
        return {}
    own = [shape.row({**row, CONSTANT: 1}) for row in rows]
    if isinstance(shape, AveragedWeights):
        return of_numbers(f"{name}'s weights", fit(own, labels, shape.strength, shape.fewest))
    return of_votes(f"{name}'s votes", CLASSIFY[classifier_of(survey)](own, labels, public_rows(shape, given)))


def held(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its name, free pages included, and every value in its databases: in its file a
    long value may be in pieces."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            place, content = str(path.relative_to(folder)), path.read_bytes()
            found[place] = content + b"\0" + os.fsencode(place)
            if content.startswith(_SQLITE):
                found |= {f"{place}: {name}": value for name, value in _values(path)}
    return found


def _values(path: Path) -> Iterator[tuple[str, bytes]]:
    """Of a copy, so that a program may have the database open."""
    with TemporaryDirectory() as folder, closing(sqlite3.connect(Path(folder) / "copy")) as store:
        with closing(sqlite3.connect(path, timeout=30)) as original:
            original.backup(store)
        for (table,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for number, row in enumerate(store.execute(f'SELECT * FROM "{table}"')):
                for place, value in enumerate(row):
                    yield f"{table} {number} {place}", value if isinstance(value, bytes) else str(value).encode()


def found(there: Mapping[str, bytes], needles: Needles) -> list[tuple[str, str]]:
    """The names of what was found, each with its place."""
    assert all(len(needle) >= SHORTEST for needle in needles.values())
    return [(name, place) for place, content in there.items() for name, needle in needles.items() if needle in content]
