"""A signed document of 64 MiB once cost a peer minutes and gigabytes on the loop that times its packets."""

from __future__ import annotations

import asyncio
import os
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from attrs import define, evolve

from anon.crypto.labels import HEAD
from anon.errors import Malformed
from anon.protocols.kinds import LONGEST_MANIFEST
from anon.protocols.sizes import longest_body, most_documents
from anon.transparency import buckets
from anon.transparency.bucketed import body_bytes, whole_bytes
from anon.transparency.buckets import document_over
from anon.transparency.documents import MAX_BODY, SignedHead, body_digest
from anon.transparency.merkle import leaf_hash
from anon.wire.cbor import decode, encode, sha256
from anon.wire.messages import (
    RosterEntry,
    encode_credentials,
    encode_roster,
    encode_seed,
    parse_credentials,
    parse_roster,
)
from peer.app import PeerApp
from peer.rules.checks import check_sizes
from peer.rules.consent import objections
from peer.rules.distrust import Distrust
from peer.rules.lifecycle import State
from peer.run.exchanges import MOST_WASTED
from tests.support.documents import credentials_body, roster_body
from tests.support.fake_aggregator import DECLARED, PAPER, FakeAggregator, advance, peer
from tests.support.protocols import parse_manifest

pytestmark = pytest.mark.slow

MANY = 100_000
LONGEST_HOLD = 0.1
"""Seconds of this process's own time: what other programs do on the machine does not count."""


@define
class Liar(FakeAggregator):
    """Signs what it likes about bodies that it may never have."""

    def claim(self, kind: str, length: int, part: int = 0, body: bytes = b"") -> None:
        self.publish(kind, body, part)
        head = evolve(self.chain[-1].head, length=length)
        self.chain[-1] = SignedHead(head, self.key.sign(sha256(HEAD, head.to_bytes())).signature)


async def enrolled(tmp_path: Path, aggregator: FakeAggregator) -> PeerApp:
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    aggregator.crowd(4)
    await advance(app, aggregator, aggregator.manifest.timetable.enrol_closes)
    aggregator.clock.seconds = aggregator.manifest.timetable.enrol_closes + 1.0
    aggregator.gets.clear()
    return app


async def longest_hold(work: Callable[[], Awaitable[object]]) -> float:
    """How long at most nothing else could run while this worked."""
    holds = [0.0]

    async def watch() -> None:
        while True:
            before = time.process_time()
            await asyncio.sleep(0.001)
            holds.append(time.process_time() - before)

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0.01)
    await work()
    await asyncio.sleep(0.01)
    watching.cancel()
    return max(holds)


@pytest.mark.parametrize("kind", ["roster", "seed", "credentials", "transcript", "thresholds", "model"])
async def test_a_head_that_claims_more_than_the_study_can_have_stops_it_unfetched(tmp_path: Path, kind: str) -> None:
    aggregator = Liar.with_study(DECLARED)
    app = await enrolled(tmp_path, aggregator)
    part = 1 if kind == "thresholds" else 0
    aggregator.claim(kind, longest_body(aggregator.manifest, kind, part) + 1, part)
    await advance(app, aggregator)
    [status] = app.status()
    assert status.state is State.STOPPED
    assert kind in status.reason
    assert status.reserved == 0
    assert [what for what, _at in aggregator.gets] == ["heads/closing"]
    app.close()


async def test_more_documents_than_the_study_can_have_stop_it(tmp_path: Path) -> None:
    aggregator = Liar.with_study(DECLARED)
    app = await enrolled(tmp_path, aggregator)
    for part in range(most_documents(aggregator.manifest)):
        aggregator.claim("transcript", 0, part)
    await advance(app, aggregator)
    assert app.status()[0].state is State.STOPPED
    assert [what for what, _at in aggregator.gets] == ["heads/closing"]
    app.close()


async def test_a_manifest_longer_than_any_study_is_not_fetched(tmp_path: Path) -> None:
    aggregator = Liar.with_study(DECLARED)
    aggregator.chain.clear()
    aggregator.bodies.clear()
    aggregator.claim("manifest", LONGEST_MANIFEST + 1)
    app = peer(tmp_path, aggregator)
    with pytest.raises(Distrust, match="manifest"):
        await app.look(aggregator.invite)
    assert [what for what, _at in aggregator.gets] == ["heads/opening"]
    app.close()


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """One bucket holds all, however many there are."""
    monkeypatch.setattr(buckets, "THRESHOLD", 2**40)


def full_roster(aggregator: FakeAggregator, people: int) -> bytes:
    """One with the enrolled peer, and as many more as make it the longest that is allowed."""
    real = [RosterEntry(e.key, e.contribution, e.commitment[:48]) for e in aggregator.enrolments.values()]
    made = [RosterEntry(os.urandom(32), os.urandom(32), os.urandom(48)) for _ in range(people - len(real))]
    return roster_body(aggregator.study, [*real, *made])


def lists_for_a_roster(aggregator: FakeAggregator, people: int) -> bytes:
    """As long as the longest roster, and nothing but empty lists in its one bucket."""
    opening = encode([1, aggregator.study, []])[:-1]
    count = body_bytes("roster", 0, people) - len(opening) - 5
    body = opening + b"\x9a" + count.to_bytes(4, "big") + b"\x80" * count
    return document_over(aggregator.study, "roster", 0, people, [leaf_hash(body)], body).to_bytes()


@pytest.mark.timed
@pytest.mark.parametrize("roster", [full_roster, lists_for_a_roster])
async def test_the_longest_roster_never_holds_the_loop(
    tmp_path: Path, whole: None, roster: Callable[[FakeAggregator, int], bytes]
) -> None:
    """Its body and those of seed and credentials are read to the end; a packet of another study could leave
    meanwhile."""
    aggregator = FakeAggregator.with_study(DECLARED)
    app = await enrolled(tmp_path, aggregator)
    body = roster(aggregator, MANY)
    assert len(body) == longest_body(aggregator.manifest, "roster")
    aggregator.publish("roster", body)
    aggregator.publish("seed", encode_seed(aggregator.study, aggregator.value))
    aggregator.publish("credentials", credentials_body(aggregator.study, [os.urandom(80)] * (MANY - 1)))
    held = await longest_hold(lambda: advance(app, aggregator))
    assert app.status()[0].state is State.STOPPED  # one credential is missing
    assert held < LONGEST_HOLD
    app.close()


async def test_bodies_that_never_match_stop_the_study_that_pays_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("peer.run.exchanges.MOST_WASTED", 10_000)
    assert MOST_WASTED >= MAX_BODY
    aggregator = Liar.with_study(DECLARED)
    app = await enrolled(tmp_path, aggregator)
    long = whole_bytes("roster", 0, 30)
    aggregator.claim("roster", long, body=bytes(long))
    aggregator.claim("seed", 70)
    aggregator.claim("credentials", 2_400)
    aggregator.bodies[1] = (bytes(reversed(range(250))) * 16)[:long]
    await advance(app, aggregator)
    [status] = app.status()
    assert status.state is State.STOPPED
    assert "did not match" in status.reason
    assert sum(what == "heads/closing" for what, _at in aggregator.gets) == 3
    app.close()


def peak(work: Callable[[], object]) -> int:
    """The bytes that work needs at most: the least of three times, since other threads' memory counts as well."""
    return min(_traced(work) for _ in range(3))


def _traced(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_reading_long_documents_takes_less_memory_than_they_are_long() -> None:
    """Their bodies apart."""
    study, people = bytes(32), 20_000
    roster = encode_roster(study, [RosterEntry(os.urandom(32), bytes(32), bytes(48)) for _ in range(people)])
    credentials = encode_credentials(study, [bytes(80)] * people)
    assert peak(lambda: parse_roster(roster, study)) < len(roster)
    assert peak(lambda: parse_credentials(credentials, study, people)) < len(credentials)
    assert peak(lambda: body_digest(roster)) < 10_000


@pytest.mark.parametrize(
    "item", [b"\x80", b"\xa0", b"\x81\x80", b"\x82\x80\x00"], ids=["list", "map", "nested", "pair"]
)
def test_hardly_anything_but_lists_is_refused_before_it_is_built(item: bytes) -> None:
    count = 300_000
    bomb = b"\x9a" + count.to_bytes(4, "big") + item * count

    def refused() -> None:
        with pytest.raises(Malformed, match="lists"):
            decode(bomb)

    assert peak(refused) < 100_000


def test_documents_of_another_study_or_spelling_are_no_rows() -> None:
    study = bytes(32)
    entry = [RosterEntry(bytes([1]) * 32, bytes(32), bytes(48))]
    good = encode_roster(study, entry)
    assert len(parse_roster(good, study)) == 1
    opening = good.index(b"\x81\x83")
    longer_spelling = good[:opening] + b"\x98\x01" + good[opening + 1 :]
    for wrong in (good[:-1], good + b"\x00", longer_spelling, good.replace(b"\x58\x30", b"\x58\x2f"), b"", good[:5]):
        with pytest.raises(Malformed):
            parse_roster(wrong, study)
    with pytest.raises(Malformed):
        parse_roster(good, bytes([7]) * 32)


def test_a_study_that_is_honest_is_within_its_sizes() -> None:
    aggregator = FakeAggregator.with_study(DECLARED)
    aggregator.crowd(5)
    aggregator.close()
    aggregator.transcribe()
    assert check_sizes(aggregator.manifest, aggregator.chain) == tuple(aggregator.chain)


def test_a_cohort_of_any_size_is_borne(tmp_path: Path) -> None:
    for text in (DECLARED, PAPER, DECLARED.replace("minimum = 3", "minimum = 3\nmaximum = 1000000")):
        aggregator = FakeAggregator.with_study(text)
        app = peer(tmp_path, aggregator)
        assert aggregator.manifest.cohort.maximum >= MANY
        assert objections(aggregator.manifest, app.policy(), app.budget(), aggregator.clock()) == ()
        app.close()


@pytest.mark.parametrize("name", ["features", "surveys", "slots", "tables"])
def test_a_manifest_of_faults_costs_no_more_than_one_of_twenty(name: str) -> None:
    """A fault took kilobytes, and a byte was enough for it: 1 MiB made 1.5 GiB, and a message of 45 MB."""
    plain = decode(FakeAggregator.with_study(DECLARED).manifest.to_bytes())
    body = encode({**plain, name: [0] * 100_000})
    assert len(body) < LONGEST_MANIFEST
    said: list[str] = []

    def refused() -> None:
        with pytest.raises(Malformed) as caught:
            parse_manifest(body)
        said.append(str(caught.value))

    assert peak(refused) < 30 * len(body)
    assert len(said[0]) < 5_000
