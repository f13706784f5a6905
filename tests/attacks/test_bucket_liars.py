"""An aggregator that lies in buckets: each lie stops a peer, or is never believed, at the rate that is computed; and
its evidence holds for a third party that has the file alone."""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from pathlib import Path

import pytest
from attrs import evolve

from anon.kit.terminal.equivocation import evidence_lines
from anon.route import Response
from anon.transparency import buckets
from anon.transparency.bucket_evidence import BadBucket, bad_bucket_of, bucket_fault
from anon.transparency.bucketed import InBuckets, hashed_body, roster_in_buckets
from anon.transparency.buckets import Bucket, bucket_of, decoys, document_over
from anon.transparency.equivocation import parse_evidence
from anon.transparency.merkle import leaf_hash
from anon.transparency.proves import ProvesNothing
from anon.wire.cbor import decode, encode
from anon.wire.messages import RosterEntry, encode_seed
from peer.app import PeerApp
from peer.rules.bucket_checks import demand_full
from peer.rules.distrust import Distrust
from peer.rules.lifecycle import State
from peer.rules.study_secrets import StudySecrets
from peer.run.equivocations import kept
from tests.networks.liar_chances import least_likely
from tests.support.fake_aggregator import FakeAggregator, advance, peer

LEVEL = 0.001
Change = Callable[[InBuckets, int, bytes], bytes]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets of two in place of 256."""
    monkeypatch.setattr(buckets, "THRESHOLD", 8)
    monkeypatch.setattr(buckets, "MEAN", 2)
    monkeypatch.setattr(buckets, "LEAST", 0)


def spoilt(made: InBuckets, change: Change) -> InBuckets:
    """The same document over other contents, under a root that fits them."""
    document = made.document
    contents = [change(made, number, content) for number, content in enumerate(made.contents)]
    place = document.study, document.kind, document.part
    bodies = [hashed_body(*place, content) for content in contents]
    leaves = list(map(leaf_hash, bodies))
    return evolve(
        made, document=document_over(*place, document.count, leaves, bodies[0]), contents=contents, leaves=leaves
    )


def unsorted(made: InBuckets, _number: int, content: bytes) -> bytes:
    version, study, entries = decode(content)
    return encode([version, study, entries[::-1] if len(entries) > 1 else [*entries, *entries] or 7])


def elsewhere(made: InBuckets, number: int, content: bytes) -> bytes:
    """An entry of the next bucket in each."""
    version, study, entries = decode(content)
    strays = decode(made.contents[(number + 1) % len(made.contents)])[2]
    return encode([version, study, sorted([*entries, *strays[:1]])]) if strays else encode([version, study, 7])


def emptied(_made: InBuckets, _number: int, content: bytes) -> bytes:
    return encode([*decode(content)[:2], []])


def one_less(_made: InBuckets, _number: int, content: bytes) -> bytes:
    *heading, signatures = decode(content)
    return encode([*heading, signatures[1:] or [bytes(80)]])


def garbage(_made: InBuckets, _number: int, content: bytes) -> bytes:
    *heading, signatures = decode(content)
    return encode([*heading, [one[:-1] + bytes([one[-1] ^ 1]) for one in signatures]])


async def closed(
    folder: Path, roster: Change | None = None, credentials: Change | None = None
) -> tuple[FakeAggregator, PeerApp]:
    """A study of 16 in eight buckets, with these lies, at the closing of enrolment."""
    aggregator = FakeAggregator.with_study()
    app = peer(folder, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    closes = aggregator.manifest.timetable.enrol_closes
    await advance(app, aggregator, closes - 1)
    aggregator.crowd(15)
    aggregator.clock.seconds = closes
    made = roster_in_buckets(aggregator.study, aggregator.entries)
    made = made if roster is None else spoilt(made, roster)
    aggregator.publish_buckets(made)
    aggregator.publish("seed", encode_seed(aggregator.study, aggregator.value))
    issued = aggregator.credentials_by_bucket(aggregator.signatures(made.document.to_bytes()))
    aggregator.publish_buckets(issued if credentials is None else spoilt(issued, credentials))
    return aggregator, app


async def live(app: PeerApp, aggregator: FakeAggregator) -> State:
    """To the end of the windows; the state then."""
    await advance(app, aggregator, max(survey.window.closes for survey in aggregator.manifest.surveys) + 1)
    return app.status()[0].state


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lie", "about"), [(unsorted, "roster"), (elsewhere, "roster"), (one_less, "credentials"), (garbage, "credentials")]
)
async def test_a_bucket_that_no_honest_one_signs_stops_the_peer_with_evidence(
    tmp_path: Path, lie: Change, about: str
) -> None:
    aggregator, app = await closed(tmp_path, **{about: lie})
    assert await live(app, aggregator) is State.STOPPED
    assert not aggregator.sent("packets")
    (proof,) = kept(app.store)
    assert isinstance(proof, BadBucket) and proof.chain[-1].head.kind == about
    file = proof.to_bytes()
    again = parse_evidence(file, bytes(aggregator.key.verify_key))
    assert isinstance(again, BadBucket) and again.fault == proof.fault
    assert any(proof.fault in line for line in evidence_lines(again))
    for place in range(0, len(file), 211):  # a forged or damaged file proves nothing
        with pytest.raises(ProvesNothing):
            parse_evidence(file[:place] + bytes([file[place] ^ 1]) + file[place + 1 :])
    with pytest.raises(ProvesNothing, match="another aggregator"):
        parse_evidence(file, bytes(32))


async def test_bad_credentials_in_the_decoys_alone_stop_the_peer_with_evidence(tmp_path: Path) -> None:
    """With its own bucket as it should be, the peer would be the only one who can send."""
    aggregator, app = await closed(tmp_path)
    secrets = StudySecrets.from_bytes(app.store.study(aggregator.study).secrets[1:])
    issued = aggregator.made[3]
    own = bucket_of(bytes(secrets.signing_key.verify_key), issued.document.bits)
    del aggregator.chain[3:], aggregator.bodies[3:]
    aggregator.publish_buckets(
        spoilt(issued, lambda made, number, content: content if number == own else garbage(made, number, content))
    )
    assert await live(app, aggregator) is State.STOPPED
    assert not aggregator.sent("packets")
    (proof,) = kept(app.store)
    assert isinstance(proof, BadBucket) and proof.bucket != own


@pytest.mark.slow
async def test_an_honest_aggregator_cannot_be_accused(tmp_path: Path) -> None:
    aggregator, _app = await closed(tmp_path)
    roster, credentials = aggregator.made[1], aggregator.made[3]
    for number in range(8):
        pair = (roster.bucket(number), credentials.bucket(number))
        with pytest.raises(ProvesNothing):
            bad_bucket_of(aggregator.manifest, aggregator.chain, [aggregator.bodies[1]], number, pair[:1])
        for place in range(-1, roster.entries[number] + 1):
            with pytest.raises(ProvesNothing):
                bad_bucket_of(aggregator.manifest, aggregator.chain, aggregator.bodies[1:], number, pair, place)
        invented = Bucket(encode([1, aggregator.study, 5]), pair[0].path)
        with pytest.raises(ProvesNothing, match="does not lead"):
            bad_bucket_of(aggregator.manifest, aggregator.chain, [aggregator.bodies[1]], number, (invented,))


async def test_who_is_left_out_sends_nothing(tmp_path: Path) -> None:
    aggregator, app = await closed(tmp_path, roster=emptied, credentials=emptied)
    assert await live(app, aggregator) is State.STOPPED
    assert not aggregator.sent("packets")


async def test_another_bucket_is_never_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aggregator, app = await closed(tmp_path)
    honest = aggregator.bucket
    monkeypatch.setattr(FakeAggregator, "bucket", lambda _self, number, bucket: honest(number, (bucket + 1) % 8))
    assert await live(app, aggregator) is State.ABANDONED
    assert not aggregator.sent("packets")


async def test_a_bucket_that_differs_per_request_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under one root there is one bucket: another one costs a fetch, and tells the liar nothing."""
    aggregator, app = await closed(tmp_path)
    honest, asked = aggregator.bucket, list[tuple[int, int]]()

    def every_second(_self: FakeAggregator, number: int, bucket: int) -> Response:
        asked.append((number, bucket))
        answer = honest(number, bucket)
        return answer if asked.count((number, bucket)) % 2 == 0 else Response(200, answer.body[:-1] + b"?")

    monkeypatch.setattr(FakeAggregator, "bucket", every_second)
    await live(app, aggregator)
    assert len(aggregator.sent("packets")) == 1
    assert len({bucket for number, bucket in asked if number == 1}) == 3


async def test_another_root_per_request_is_two_heads_of_one_number(tmp_path: Path) -> None:
    aggregator, app = await closed(tmp_path)
    honest = list(aggregator.chain)
    await live_until_sending(app, aggregator)
    del aggregator.chain[3:], aggregator.bodies[3:]
    issued = aggregator.credentials_by_bucket(aggregator.signatures(aggregator.bodies[1]))
    aggregator.publish_buckets(spoilt(issued, garbage))
    assert honest[3].head.digest != aggregator.chain[3].head.digest
    assert await live(app, aggregator) is State.STOPPED
    assert not aggregator.sent("packets")
    (proof,) = kept(app.store)
    assert parse_evidence(proof.to_bytes()).number == 3


async def live_until_sending(app: PeerApp, aggregator: FakeAggregator) -> None:
    while app.store.state(aggregator.study) is not State.CHECKED:
        aggregator.clock.seconds = max(aggregator.clock(), await app.step(aggregator.study) or 0)


async def test_digests_that_are_none_are_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aggregator, app = await closed(tmp_path)
    await live(app, aggregator)
    aggregator.transcribe()
    made = aggregator.made[len(aggregator.chain) - 1]
    del aggregator.chain[-1], aggregator.bodies[-1]
    monkeypatch.setattr(
        "anon.transparency.bucketed.digests_of", lambda *_: encode([1, aggregator.study, 0, ["no digest"]])
    )
    aggregator.publish_buckets(spoilt(made, lambda _made, _number, content: content))
    assert await advance(app, aggregator) is None
    (proof,) = kept(app.store)
    assert isinstance(proof, BadBucket) and proof.chain[-1].head.kind == "transcript"
    assert isinstance(parse_evidence(proof.to_bytes()), BadBucket)


@pytest.mark.parametrize(("packets", "believed"), [(16, True), (17, False), (32, False)])
async def test_a_transcript_of_more_packets_than_members_is_not_looked_into(
    tmp_path: Path, packets: int, believed: bool
) -> None:
    """Sixteen members enrolled. With more packets a transcript could have finer buckets than the roster, down to one
    for each tag: whoever fetched that would be known by it."""
    aggregator, app = await closed(tmp_path)
    await live(app, aggregator)
    ((slot, _tag), packet), = aggregator.accepted.items()
    for number in range(packets - 1):
        token = bytes([number]) + packet.token[1:]
        aggregator.accepted[slot, token[:48]] = evolve(packet, token=token)
    aggregator.transcribe()
    aggregator.gets.clear()
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    looked_into = any(what.startswith("buckets/4/") for what, _at in aggregator.gets)
    assert (status.state, looked_into) == ((State.FINISHED if believed else State.STOPPED), believed)
    assert believed or f"{packets} packets" in status.reason
    assert [what for what, _at in aggregator.gets if not what.startswith("buckets/")] == ["heads/transcripts"]


async def test_a_long_document_among_the_short_ones_is_not_fetched(tmp_path: Path) -> None:
    """An aggregator that signs its report before the transcripts makes no peer fetch it."""
    aggregator, app = await closed(tmp_path)
    await live(app, aggregator)
    aggregator.publish("report", bytes(2**20))
    aggregator.transcribe()
    aggregator.gets.clear()
    assert await advance(app, aggregator) is None
    assert not any(what.startswith("documents/") for what, _at in aggregator.gets)
    assert app.status()[0].state is State.FINISHED


# Rates: lies in some buckets, seen by a peer that draws two decoys. Exact two-sided binomial tests at level 0.001.


def entries_of(count: int) -> list[RosterEntry]:
    return [RosterEntry(number.to_bytes(32, "big"), bytes(32), bytes(48)) for number in range(count)]


def unseen(liar_tells: int, buckets_in_all: int) -> float:
    """The probability that both decoys are honest ones, where the own bucket is."""
    return comb(buckets_in_all - 1 - liar_tells, 2) / comb(buckets_in_all - 1, 2)


@pytest.mark.parametrize("bad", [1, 2, 4])
def test_lies_in_some_buckets_are_caught_at_the_computed_rate(bad: int) -> None:
    made = roster_in_buckets(bytes(32), entries_of(16))
    whole = spoilt(made, unsorted)
    contents = [
        whole.contents[number] if number >= 8 - bad else content for number, content in enumerate(made.contents)
    ]
    own, trials = 0, 400
    caught = 0
    for trial in range(trials):
        seed = trial.to_bytes(32, "big")
        seen = (own, *decoys(seed, b"members", own, made.document.bits))
        caught += any(bucket_fault(made.document, number, contents[number]) for number in seen)
    assert least_likely(caught, trials, 1 - unseen(bad, 8)) >= LEVEL


@pytest.mark.parametrize("filled", [0.5, 0.9])
def test_an_invented_size_is_caught_at_the_computed_rate(filled: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signed for a million: 2,048 buckets, of which only a share holds as many as are demanded."""
    monkeypatch.setattr(buckets, "MEAN", 256)
    monkeypatch.setattr(buckets, "LEAST", 180)
    document = document_over(bytes(32), "roster", 0, 10**6, [bytes(32)] * 2048, b"")
    full = round(2048 * filled)
    caught, trials = 0, 400
    for trial in range(trials):
        seen = (0, *decoys(trial.to_bytes(32, "big"), b"members", 0, document.bits))
        try:
            for number in seen:
                demand_full(document, 180 if number < full else 3)
        except Distrust:
            caught += 1
    assert least_likely(caught, trials, 1 - unseen(2048 - full, 2048)) >= LEVEL
    assert 1 - unseen(2048 - full, 2048) == pytest.approx(1 - filled**2, abs=0.01)


@pytest.mark.parametrize("count", [7, 10**6, 2**32 - 1])
async def test_no_bucket_is_fetched_of_a_size_that_cannot_be(tmp_path: Path, count: int) -> None:
    """So many bits would name the member who asks."""
    aggregator, app = await closed(tmp_path)
    for number in (1, 3):
        body = evolve(aggregator.made[number].document, count=count).to_bytes()
        aggregator.bodies[number] = body
    bodies, aggregator.bodies, kinds = (
        aggregator.bodies,
        aggregator.bodies[:1],
        [one.head.kind for one in aggregator.chain],
    )
    del aggregator.chain[1:]
    for kind, body in zip(kinds[1:], bodies[1:], strict=True):
        aggregator.publish(kind, body)
    assert await live(app, aggregator) is State.STOPPED
    assert not aggregator.sent("packets")
    assert not [what for what, _at in aggregator.gets if what.startswith("buckets/")]


async def test_a_bucket_below_the_least_stops_the_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aggregator, app = await closed(tmp_path)
    monkeypatch.setattr(buckets, "LEAST", 1 + max(aggregator.made[1].entries))
    assert await live(app, aggregator) is State.STOPPED
    assert not aggregator.sent("packets") and not kept(app.store)
    assert "at least" in app.status()[0].reason
