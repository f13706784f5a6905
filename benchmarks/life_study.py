"""The study of `benchmarks.life`, and a driver that speaks with its aggregator in place of the members."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from attrs import define, field, frozen

from anon.study.manifest import Manifest
from anon.transparency.buckets import parse_bucket_document
from anon.transparency.documents import SignedHead, body_digest, find, parse_chain
from anon.wire.messages import credential_header, parse_credentials, parse_roster, parse_seed, study_seed
from benchmarks.life_http import Connection, post_all
from benchmarks.life_members import keys_of, parts_of, read_parts
from benchmarks.life_program import FileClock

AGAIN = 10
"""Of so many packets one is sent twice."""
AT_ONCE = 512
"""Connections of the driver: two of the aggregator's batches."""
PATIENCE = 4 * 3600.0
STUDY = """
version = 1
title = "A study of many"
purpose = "To see a whole study."
contact = "nobody@example.org"
[tables]
person = ["age", "sex", "income"]
[label]
name = "income"
description = "Whether you earn a lot"
query = "SELECT income FROM person"
positive = ["high"]
negative = ["low"]
missing = "negative"
[[features]]
name = "age"
kind = "numeric"
description = "Your age"
query = "SELECT age FROM person"
range = [17, 90]
cuts = [30, 45, 60]
missing = "own"
[[features]]
name = "sex"
kind = "categorical"
description = "Your sex"
query = "SELECT sex FROM person"
categories = ["Female", "Male"]
missing = "Male"
[design]
kind = "one-packet"
epsilon = 2.0
[schedule]
enrol = "4d"
settle = "1d"
collect = "4d"
[cohort]
minimum = 20
maximum = {members}
admission = "open"
"""


@frozen
class Issued:
    """The values that a token is made from beside a member's own secrets."""

    header: bytes
    seed: bytes
    signatures: dict[bytes, bytes]
    """By the member's key."""


@define
class Life:
    """One study under way."""

    folder: Path
    members: int
    real: int
    clock: FileClock
    manifest: Manifest
    port: int = 0
    words: dict[str, Counter[str]] = field(factory=dict)

    @property
    def home(self) -> Path:
        """The aggregator's."""
        return self.folder / "aggregator"

    @property
    def made(self) -> Path:
        """The folder of what the driver makes."""
        return self.folder / "made"

    @property
    def parts(self) -> list[int]:
        """Synthetic members, in parts."""
        return parts_of(self.members - self.real)

    def path(self, what: str) -> str:
        """Of the study, over HTTP."""
        return f"/v1/{self.manifest.study_id.hex()}/{what}"

    async def enrol(self) -> None:
        """Every synthetic member."""
        bodies = read_parts(self.made, "enrolments", self.parts)
        self.words["enrolments"] = await post_all(self.port, self.path("enrol"), bodies, AT_ONCE)

    async def send(self) -> None:
        """Every synthetic packet, some of them twice."""
        bodies = read_parts(self.made, "packets", self.parts)
        self.words["packets"] = await post_all(
            self.port, self.path("packets"), bodies, AT_ONCE, lambda number: number % AGAIN == 0
        )

    def work_on(self, manifest: bytes, issued: Issued) -> list[tuple[object, ...]]:
        """For each part of the packets what is needed to make it, with the credentials of its members."""
        given: list[tuple[object, ...]] = []
        for number in range(len(self.parts)):
            keys = keys_of(self.made, number)
            own = {key: issued.signatures[key] for key in keys}
            given.append((self.made, number, manifest, issued.header, issued.seed, own))
        return given

    async def published(self, kind: str) -> tuple[SignedHead, ...]:
        """Wait for a document of this kind; all heads."""
        with closing(Connection(self.port)) as connection:
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline:
                heads = await connection.get(self.path("heads"))
                signed = parse_chain(heads, self.manifest.aggregator_key, self.manifest.study_id)
                if find(signed, kind) is not None:
                    return signed
                await asyncio.sleep(0.1)
        raise RuntimeError(f"no {kind} was published")

    async def issued(self, heads: Sequence[SignedHead]) -> Issued:
        """The credentials of everybody, with what a token is made from."""
        with closing(Connection(self.port)) as connection:

            async def body(kind: str) -> tuple[int, bytes]:
                head = find(heads, kind)
                if head is None:
                    raise RuntimeError(f"no {kind} was published")
                return head.number, await connection.get(self.path(f"documents/{head.number}"))

            async def contents(kind: str) -> list[bytes]:
                number, whole = await body(kind)
                buckets = parse_bucket_document(whole, self.manifest.study_id, kind, 0).buckets
                return [await connection.get(self.path(f"contents/{number}/{bucket}")) for bucket in range(buckets)]

            study, roster = self.manifest.study_id, (await body("roster"))[1]
            value = parse_seed((await body("seed"))[1], study, self.manifest.seed_commitment)
            signatures: dict[bytes, bytes] = {}
            for entries, issued in zip(await contents("roster"), await contents("credentials"), strict=True):
                keys = [entry.key for entry in parse_roster(entries, study)]
                signatures |= zip(keys, parse_credentials(issued, study, len(keys)), strict=True)
        seed = study_seed(self.manifest.to_bytes(), roster, value)
        return Issued(credential_header(study, body_digest(roster)), seed, signatures)
