"""An aggregator that aims: its victim's credential is good, everybody else's is garbage, and it tells one story to
all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from nacl.signing import SigningKey

from aggregator.audit import audit_documents, export
from anon.protocols.posts import sealed_enrolment
from anon.transparency.bucket_evidence import BadBucket
from anon.transparency.buckets import parse_bucket_document
from anon.transparency.closing import CLOSING, Bodies, Closing, read_closing
from anon.transparency.documents import encode_chain, sign_head
from anon.transparency.equivocation import parse_evidence
from anon.transparency.proves import ProvesNothing
from anon.wire.cbor import decode, encode
from anon.wire.messages import encode_seed
from peer.app import PeerApp
from peer.rules.lifecycle import State
from peer.rules.study_secrets import StudySecrets
from peer.run.equivocations import kept
from peer.store.records import OpenStudy
from tests.support import world
from tests.support.clock import Clock
from tests.support.documents import credentials_body
from tests.support.fake_aggregator import FakeAggregator, advance, peer, reopened, stored

ROSTER, PEERS = 30, 5


def key_of(app: PeerApp, aggregator: FakeAggregator) -> bytes:
    study = app.store.study(aggregator.study)
    assert isinstance(study, OpenStudy)
    return bytes(StudySecrets.from_bytes(study.secrets[1:]).signing_key.verify_key)


def close_with(aggregator: FakeAggregator, bad: list[int], garbage: str) -> None:
    """Roster, seed, and credentials of which those at the places `bad` are garbage."""
    roster = aggregator.roster()
    signatures = aggregator.signatures(roster)
    spoiled = list(signatures)
    for place in bad:
        good = signatures[place]
        spoiled[place] = {
            "of another": signatures[place - 1],
            "no point": bytes(48) + good[48:],
            "no scalar": good[:48] + bytes(32),
            "another exponent": good[:-1] + bytes([good[-1] ^ 1]),
        }[garbage]
    aggregator.publish("roster", roster)
    aggregator.publish("seed", encode_seed(aggregator.study, aggregator.value))
    aggregator.publish("credentials", credentials_body(aggregator.study, spoiled))


async def joined(tmp_path: Path, aggregator: FakeAggregator, count: int) -> list[PeerApp]:
    """So many peers that enrolled, among a crowd; the clock at closing."""
    peers = [peer(tmp_path / str(number), aggregator) for number in range(count)]
    for app in peers:
        await app.join(aggregator.invite, aggregator.manifest.epsilon)
        await advance(app, aggregator, aggregator.manifest.timetable.enrol_closes - 1)
        aggregator.clock.seconds = aggregator.manifest.timetable.enrol_closes - 1800
    aggregator.crowd(ROSTER - count)
    aggregator.clock.seconds = aggregator.manifest.timetable.enrol_closes
    return peers


@pytest.mark.slow
@pytest.mark.parametrize("garbage", ["of another", "no point"])
async def test_a_good_credential_for_the_victim_alone_stops_all_and_is_proven(
    tmp_path: Path, garbage: str, command
) -> None:
    """30 in the roster, five of them real, four of these with bad credentials: on the code before, the fifth sent."""
    aggregator = FakeAggregator.with_study()
    peers = await joined(tmp_path, aggregator, PEERS)
    order = sorted(aggregator.enrolments)
    places = [order.index(key_of(app, aggregator)) for app in peers]
    close_with(aggregator, places[1:], garbage)

    for app in peers:
        aggregator.clock.seconds = aggregator.manifest.timetable.enrol_closes
        await advance(app, aggregator, aggregator.manifest.timetable.ends)
    assert aggregator.sent("packets") == []
    for app in peers:
        (status,) = app.status()
        assert status.state is State.STOPPED
        assert "credential of entry" in status.reason
        assert (status.reserved, status.spent, status.slots) == (0, 0, ())
        assert stored(app, aggregator.study, "secrets") is None

    proofs = [one.to_bytes() for app in peers for one in kept(app.store)]
    assert len(proofs) == PEERS
    assert len(set(proofs)) == 1, "all show the same, so it does not tell who shows it"
    proof = parse_evidence(proofs[0], bytes(aggregator.key.verify_key))
    assert isinstance(proof, BadBucket)
    assert proof.place == min(places[1:])
    assert f"entry {proof.place} of {ROSTER} (key {order[proof.place].hex()[:16]}" in proof.fault

    bodies = dict(enumerate(aggregator.bodies))
    result = audit_documents(encode_chain(aggregator.chain), bodies, contents=aggregator.content)
    assert [(one.document, one.fault[:3]) for one in result.findings] == [("credentials 0", "bad")]
    named = ", ".join(map(str, sorted(places[1:])))
    assert f"for {named}:" in result.findings[0].fault

    file = tmp_path / "proof"
    file.write_bytes(proofs[0])
    assert command.anonml("evidence", "check", file, "--invite", aggregator.invite.link()).code == 0
    shown = command.anonml("evidence", "check", file, "--json").json
    assert (shown["proves"], shown["entry"], shown["bucket"]) == ("bad-bucket", proof.place, 0)
    directory = tmp_path / "exported"
    export(aggregator.manifest, aggregator.chain, dict(enumerate(aggregator.bodies)), directory)
    assert command.anonml("aggregator", "audit", directory).code != 0


@pytest.mark.slow
async def test_the_evidence_is_still_there_after_a_restart_and_is_exported(tmp_path: Path, command) -> None:
    aggregator = FakeAggregator.with_study()
    (app,) = await joined(tmp_path, aggregator, 1)
    close_with(aggregator, [3, 4], "another exponent")
    await advance(app, aggregator)
    app.close()
    again = reopened(app._home, aggregator)
    assert isinstance(kept(again.store)[0], BadBucket)
    again.close()
    out = tmp_path / "proof"
    done = command.anonml("peer", "evidence", "--home", app._home.path, "--export", out)
    assert done.code == 0
    assert "credential" in done.out
    assert command.anonml("evidence", "check", out).code == 0


# Documents that prove nothing


@pytest.fixture(scope="module")
def aggregator() -> FakeAggregator:
    found = FakeAggregator.with_study()
    found.crowd(6)
    close_with(found, [2], "of another")
    return found


def file_of(aggregator: FakeAggregator, place: int = 2, **changed: object) -> bytes:
    from anon.crypto import labels

    closing = {"roster": aggregator.bodies[1], "seed": aggregator.bodies[2], "credentials": aggregator.bodies[3]}
    opened = [
        [parse_bucket_document(closing[kind], aggregator.study, kind, 0).body, []] for kind in ("roster", "credentials")
    ]
    parts = {
        "label": labels.BAD_BUCKET,
        "manifest": aggregator.bodies[0],
        "heads": encode_chain(aggregator.chain[:4]),
        "bodies": [changed.pop(kind, body) for kind, body in closing.items()],
        "bucket": 0,
        "opened": opened,
        "place": place,
    }
    return encode(list((parts | changed).values()))


def refused(data: bytes) -> None:
    with pytest.raises(ProvesNothing):
        parse_evidence(data)


def test_the_file_proves_what_it_says(aggregator: FakeAggregator) -> None:
    found = parse_evidence(file_of(aggregator))
    assert isinstance(found, BadBucket)
    assert (found.place, found.bucket, found.number) == (2, 0, 3) and "entry 2 of 6" in found.fault
    assert found.to_bytes() == file_of(aggregator)


@pytest.mark.parametrize("place", [0, 1, 3, 5, 6, -1, True, 2.0, "2"])
def test_a_good_credential_or_none_proves_nothing(aggregator: FakeAggregator, place) -> None:
    refused(file_of(aggregator, place))


@pytest.mark.slow
def test_one_flipped_bit_proves_nothing(aggregator: FakeAggregator) -> None:
    """A byte in every 40, and every byte of the last 200."""
    proof = file_of(aggregator)
    for byte in {*range(0, len(proof), 40), *range(len(proof) - 200, len(proof))}:
        flipped = bytearray(proof)
        flipped[byte] ^= 1 << byte % 8
        refused(bytes(flipped))


def test_documents_that_the_aggregator_never_signed_together_prove_nothing(aggregator: FakeAggregator) -> None:
    """Credentials of an invented document, of another chain, or heads that do not end with them."""
    other = FakeAggregator.with_study()
    other.crowd(6)
    close_with(other, [2], "of another")
    refused(file_of(aggregator, credentials=other.bodies[3]))
    refused(file_of(aggregator, roster=other.bodies[1]))
    refused(file_of(aggregator, manifest=other.bodies[0]))
    refused(file_of(aggregator, heads=encode_chain(other.chain[:4])))
    refused(file_of(aggregator, heads=encode_chain(aggregator.chain[:3])))
    refused(file_of(aggregator, heads=encode_chain([*aggregator.chain[:4], *aggregator.chain[:1]])))
    forged = aggregator.chain[:3]
    stranger = SigningKey.generate()
    spoiled = credentials_body(aggregator.study, [bytes(80)] * 6)
    head = sign_head(stranger, aggregator.study, forged, "credentials", 0, spoiled)
    refused(file_of(aggregator, heads=encode_chain([*forged, head]), credentials=spoiled))


def test_an_honest_list_cannot_be_made_into_a_proof() -> None:
    honest = FakeAggregator.with_study()
    honest.crowd(4)
    honest.close()
    for place in range(4):
        refused(file_of(honest, place))
    assert decode(file_of(honest))[-1] == 2


# Samples of a large list


def closing_of(aggregator: FakeAggregator) -> Closing:
    documents = read_closing(aggregator.bodies[0], aggregator.manifest, Bodies(*aggregator.bodies[1:4]))
    return documents.closing(0, documents.roster.body, documents.credentials.body)


def test_a_sample_finds_what_is_bad_in_it_and_names_the_own_only_if_no_other_is() -> None:
    aggregator = FakeAggregator.with_study()
    aggregator.crowd(12)
    close_with(aggregator, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], "no point")  # all but 11
    closing = closing_of(aggregator)
    for own in (0, 5, 11):
        named = {closing.bad_seen_by(own, os.urandom, limit=4) for _ in range(20)}
        assert None not in named, "of four others at least three are bad"
        assert own not in named
        assert len(named) > 1, "samples differ (all 20 name one place: under 1e-9)"
    assert closing.bad_seen_by(11, os.urandom, limit=12) == 0, "who checks all names the first"


@pytest.mark.slow
def test_a_sample_always_holds_the_own() -> None:
    aggregator = FakeAggregator.with_study()
    aggregator.crowd(12)
    close_with(aggregator, [7], "of another")
    closing = closing_of(aggregator)
    assert all(closing.bad_seen_by(7, os.urandom, limit=2) == 7 for _ in range(10))
    seen = [closing.bad_seen_by(3, os.urandom, limit=4) for _ in range(120)]
    assert set(seen) == {None, 7}
    assert 15 <= seen.count(7) <= 75  # binomial(120, 4/11), mean 44, deviation 5.3: false alarm under 1e-7


@pytest.mark.slow
async def test_a_peer_that_samples_stops_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anon.transparency.closing.MOST_CHECKED", 8)
    aggregator = FakeAggregator.with_study()
    peers = await joined(tmp_path, aggregator, 2)
    order = sorted(aggregator.enrolments)
    places = [order.index(key_of(app, aggregator)) for app in peers]
    close_with(aggregator, [place for place in range(ROSTER) if place != places[0]], "of another")
    for app, own_place in zip(peers, places, strict=True):
        aggregator.clock.seconds = aggregator.manifest.timetable.enrol_closes
        assert await advance(app, aggregator) is None
        (proof,) = kept(app.store)
        assert isinstance(proof, BadBucket)
        assert proof.place != own_place
    assert aggregator.sent("packets") == []


@pytest.mark.slow
async def test_the_list_of_a_real_aggregator_is_good_after_repeated_refused_and_withdrawn_enrolments(
    tmp_path: Path,
) -> None:
    clock = Clock()
    async with world.make_app(tmp_path / "home", clock) as app:
        running = await world.begin(app, clock, world.study_text())
        members = await running.enrol(5)
        live, (again, leaver) = running.live, members[:2]
        assert await live.enrol(again.sealed_enrolment()) == "accepted"
        stranger = world.FakePeer(live.manifest, again.code)
        assert await live.enrol(stranger.sealed_enrolment()) == "invite-spent"
        spoiled = world.FakePeer(live.manifest, running.invites[10].code)
        proof = bytearray(spoiled.secrets.commitment_with_proof)
        proof[-1] ^= 1
        posted = sealed_enrolment(live.manifest, spoiled.enrolment(bytes(proof)))
        assert await live.enrol(posted) == "rejected-proof"
        assert await live.withdraw(leaver.sealed_withdrawal()) == "withdrawn"
        await running.close_enrolment([one for one in members if one is not leaver])
        bodies = await world.published(live)
        documents = read_closing(
            live.manifest.to_bytes(), live.manifest, Bodies(*(bodies[kind, 0] for kind in CLOSING))
        )
        (closing,) = documents.everybody(())
        assert len(closing.entries) == 4
        assert closing.bad_credentials(os.urandom) == []
        assert all(closing.bad_seen_by(own, os.urandom, limit=2) is None for own in range(4))
