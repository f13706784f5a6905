"""The traps on the peer's side: each flaw of a dishonest aggregator is one named case, and nothing is sent."""

import os
from pathlib import Path

import pytest
from attrs import evolve
from nacl.signing import SigningKey

from anon.credential import generate_secret_key
from anon.errors import Malformed, Refused, RejectedProof
from anon.protocols.histogram import thresholds as cuts
from anon.study.manifest import study_id_of
from anon.transparency.documents import body_digest, encode_chain, parse_chain, sign_head
from anon.wire.cbor import decode, encode
from anon.wire.messages import RosterEntry, encode_seed
from peer.app import PeerApp
from peer.rules.checks import Equivocation, check_manifest, extend_chain
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from tests.support.documents import credentials_body, read_roster, roster_body
from tests.support.fake_aggregator import BINNED, DECLARED, FakeAggregator, advance, peer, stored, until_closed
from tests.support.protocols import PROTOCOLS, parse_manifest

# A point of order 3 on the curve, outside the prime-order subgroup: (0, 2), compressed.
ORDER_3 = bytes([0x80]) + bytes(47)


async def enrolled(tmp_path: Path, aggregator: FakeAggregator) -> PeerApp:
    """A peer that has enrolled, with the clock at closing."""
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await advance(app, aggregator, aggregator.manifest.timetable.enrol_closes - 1)
    aggregator.crowd(5)
    aggregator.clock.seconds = aggregator.manifest.timetable.enrol_closes
    return app


async def stops(app: PeerApp, aggregator: FakeAggregator, said: str = "") -> None:
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert status.state is State.STOPPED
    assert said in status.reason
    assert aggregator.sent("packets") == []
    assert (status.reserved, status.spent) == (0, 0)
    assert stored(app, aggregator.study, "secrets") is None


def publish_closing(
    aggregator: FakeAggregator, roster: bytes, signatures: list[bytes], value: bytes | None = None
) -> None:
    aggregator.publish("roster", roster)
    aggregator.publish("seed", encode_seed(aggregator.study, value or aggregator.value))
    aggregator.publish("credentials", credentials_body(aggregator.study, signatures))


def own_place(app: PeerApp, aggregator: FakeAggregator) -> int:
    from peer.rules.study_secrets import StudySecrets

    stored = app.store.study(aggregator.study).secrets
    key = bytes(StudySecrets.from_bytes(stored[1:]).signing_key.verify_key)
    return sorted(aggregator.enrolments).index(key)


@pytest.mark.parametrize("field", ["contribution", "commitment"])
async def test_roster_with_a_changed_own_entry(tmp_path: Path, field: str) -> None:
    aggregator = FakeAggregator.with_study()
    app = await enrolled(tmp_path, aggregator)
    key = sorted(aggregator.enrolments)[own_place(app, aggregator)]
    signatures = aggregator.signatures(aggregator.roster())
    changed = evolve(aggregator.enrolments[key], **{field: bytes(len(getattr(aggregator.enrolments[key], field)))})
    aggregator.enrolments[key] = changed
    publish_closing(aggregator, aggregator.roster(), signatures)
    await stops(app, aggregator, "another enrolment than the one sent")


async def test_roster_without_the_own_entry(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await enrolled(tmp_path, aggregator)
    del aggregator.enrolments[sorted(aggregator.enrolments)[own_place(app, aggregator)]]
    aggregator.close()
    await stops(app, aggregator, "without this enrolment")


async def test_roster_smaller_than_the_owner_demands(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    app.set_policy(evolve(app.policy(), minimum_cohort=50))
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator)
    await stops(app, aggregator, "at least 50")


async def test_seed_that_does_not_open_the_commitment(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await enrolled(tmp_path, aggregator)
    roster = aggregator.roster()
    publish_closing(aggregator, roster, aggregator.signatures(roster), bytes(32))
    await stops(app, aggregator, "commitment")


async def test_seed_revealed_before_the_roster_was_signed(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await enrolled(tmp_path, aggregator)
    roster = aggregator.roster()
    aggregator.publish("seed", encode_seed(aggregator.study, aggregator.value))
    aggregator.publish("roster", roster)
    aggregator.publish("credentials", credentials_body(aggregator.study, aggregator.signatures(roster)))
    await stops(app, aggregator, "before it signed the roster")


async def test_credential_under_another_key(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await enrolled(tmp_path, aggregator)
    roster = aggregator.roster()
    publish_closing(aggregator, roster, aggregator.signatures(roster, generate_secret_key(os.urandom)))
    await stops(app, aggregator)


async def test_credential_with_a_small_order_point(tmp_path: Path) -> None:
    from py_arkworks_bls12381 import G1Point

    aggregator = FakeAggregator.with_study()
    app = await enrolled(tmp_path, aggregator)
    roster = aggregator.roster()
    signatures = aggregator.signatures(roster)
    place = own_place(app, aggregator)
    marked = G1Point.from_compressed_bytes_unchecked(signatures[place][:48]) + G1Point.from_compressed_bytes_unchecked(
        ORDER_3
    )
    signatures[place] = bytes(marked.to_compressed_bytes()) + signatures[place][48:]
    publish_closing(aggregator, roster, signatures)
    await stops(app, aggregator, f"credential of entry {place} of 6")


async def test_credentials_of_two_members_exchanged(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await enrolled(tmp_path, aggregator)
    roster = aggregator.roster()
    publish_closing(aggregator, roster, aggregator.signatures(roster)[::-1])
    await stops(app, aggregator)


async def test_credentials_for_another_roster(tmp_path: Path) -> None:
    """A header over another roster would put the peer alone into a group of one."""
    aggregator = FakeAggregator.with_study()
    app = await enrolled(tmp_path, aggregator)
    roster = aggregator.roster()
    honest = aggregator.enrolments
    aggregator.enrolments = dict(honest)
    aggregator.crowd(1)
    other = dict(zip(sorted(aggregator.enrolments), aggregator.signatures(aggregator.roster()), strict=True))
    aggregator.enrolments = honest
    publish_closing(aggregator, roster, [other[key] for key in sorted(honest)])
    await stops(app, aggregator)


# Manifest and invite


def changed(aggregator: FakeAggregator, **changes: object) -> bytes:
    """The manifest's bytes with changed fields, around its constructor's checks."""
    plain = decode(aggregator.manifest.to_bytes())
    plain.update(changes)
    return encode(plain)


async def test_manifest_with_a_changed_epsilon_is_not_the_invited_study(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    body = changed(aggregator, epsilon=aggregator.manifest.epsilon + 1)
    aggregator.chain, aggregator.bodies = [], []
    aggregator.publish("manifest", body)
    with pytest.raises(Malformed, match="not the study of the invite"):
        await peer(tmp_path, aggregator).look(aggregator.invite)
    assert aggregator.posts == []


def test_manifest_that_declares_less_than_it_costs() -> None:
    aggregator = FakeAggregator.with_study()
    body = changed(aggregator, epsilon=aggregator.manifest.epsilon - 1)
    invite = evolve(aggregator.invite, study=parse_manifest(body).study_id)
    with pytest.raises(Malformed, match="declares epsilon"):
        check_manifest(body, invite, PROTOCOLS)


def test_manifest_with_a_survey_that_costs_more_than_it_says() -> None:
    aggregator = FakeAggregator.with_study()
    surveys = decode(aggregator.manifest.to_bytes())["surveys"]
    surveys[0]["epsilon"] //= 2
    with pytest.raises(Malformed, match="below the recomputed"):
        body = changed(aggregator, surveys=surveys)
        check_manifest(body, evolve(aggregator.invite, study=study_id_of(body)), PROTOCOLS)


def test_manifest_that_names_another_aggregator() -> None:
    aggregator = FakeAggregator.with_study()
    body = changed(aggregator, aggregator_key=bytes(SigningKey.generate().verify_key))
    invite = evolve(aggregator.invite, study=parse_manifest(body).study_id)
    with pytest.raises(Malformed, match="another aggregator key"):
        check_manifest(body, invite, PROTOCOLS)


@pytest.mark.parametrize("query", ["DELETE FROM person", "SELECT load_extension('x')", "SELECT name FROM friends"])
def test_manifest_whose_query_may_not_run(query: str) -> None:
    aggregator = FakeAggregator.with_study()
    label = decode(aggregator.manifest.to_bytes())["label"] | {"query": query}
    body = changed(aggregator, label=label)
    invite = evolve(aggregator.invite, study=parse_manifest(body).study_id)
    with pytest.raises((Refused, Malformed), match="label"):
        check_manifest(body, invite, PROTOCOLS)


async def test_manifest_signed_by_another_key_than_pinned(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    invite = evolve(aggregator.invite, key=bytes(SigningKey.generate().verify_key))
    with pytest.raises(RejectedProof):
        await peer(tmp_path, aggregator).look(invite)


# Chains


def fork(aggregator: FakeAggregator, number: int, body: bytes = b"another") -> list:
    """The chain with another document from `number` on."""
    head = aggregator.chain[number].head
    before = aggregator.chain[:number]
    return [*before, sign_head(aggregator.key, aggregator.study, before, head.kind, head.part, body)]


def test_two_heads_with_one_number_are_evidence_that_verifies() -> None:
    aggregator = FakeAggregator.with_study()
    aggregator.crowd(3)
    aggregator.close()
    with pytest.raises(Equivocation) as caught:
        extend_chain(aggregator.chain, fork(aggregator, 2))
    pair = decode(caught.value.evidence())
    heads = [decode(head) for head, _signature in pair]
    assert heads[0][1] == heads[1][1] == 2
    assert heads[0] != heads[1]


def test_a_shorter_chain_is_no_news_and_no_evidence() -> None:
    aggregator = FakeAggregator.with_study()
    aggregator.crowd(3)
    aggregator.close()
    assert extend_chain(aggregator.chain, aggregator.chain[:2]) == tuple(aggregator.chain)


def test_one_document_published_twice() -> None:
    aggregator = FakeAggregator.with_study()
    aggregator.crowd(3)
    aggregator.close()
    aggregator.publish("roster", aggregator.roster())
    with pytest.raises(Refused, match="twice"):
        extend_chain((), aggregator.chain)


@pytest.mark.parametrize("flaw", ["signature", "link", "number", "study"])
def test_a_forged_chain_is_not_believed(flaw: str) -> None:
    aggregator = FakeAggregator.with_study()
    aggregator.crowd(3)
    aggregator.close()
    key, last = aggregator.key, aggregator.chain[-1].head
    if flaw == "signature":
        aggregator.chain[-1] = evolve(aggregator.chain[-1], signature=bytes(64))
    else:
        field = {"link": "previous", "number": "number", "study": "study"}[flaw]
        value = last.number + 1 if flaw == "number" else bytes(32)
        from anon.crypto import labels
        from anon.transparency.documents import SignedHead
        from anon.wire.cbor import sha256

        head = evolve(last, **{field: value})
        aggregator.chain[-1] = SignedHead(head, key.sign(sha256(labels.HEAD, head.to_bytes())).signature)
    with pytest.raises((Malformed, RejectedProof)):
        parse_chain(encode_chain(aggregator.chain), bytes(key.verify_key), aggregator.study)


async def test_a_second_story_before_sending_stops_everything_and_is_kept(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await enrolled(tmp_path, aggregator)
    aggregator.close()
    await advance(app, aggregator, aggregator.manifest.timetable.settled - 1)
    (status,) = app.status()
    assert [slot.status for slot in status.slots] == [Status.QUEUED]
    aggregator.chain = fork(aggregator, 1, aggregator.roster() + b"x")
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert status.state is State.STOPPED
    assert "two different documents" in status.reason
    assert aggregator.sent("packets") == []
    assert [slot.status for slot in status.slots] == [Status.STOPPED]
    assert status.spent > 0  # journalled: the charge stays
    ((study, what, proof),) = app.evidence()
    assert (study, what) == (aggregator.study, "check-failed")
    assert len(decode(proof)) == 2


# Edges


@pytest.mark.parametrize(
    "edges",
    [
        {},
        {"cups": [10, [1] * 16]},
        {"age": [10, [1] * 15]},
        {"age": [10, [11] + [0] * 15]},
        {"age": [-1, [0] * 16]},
        {"age": [10, [1.5] * 16]},
        {"age": 7},
    ],
    ids=["none", "another-feature", "too-few", "more-than-asked", "negative", "fractions", "no-pair"],
)
async def test_edges_that_cannot_be_stop_the_study(tmp_path: Path, edges: dict) -> None:
    aggregator = FakeAggregator.with_study(BINNED)
    with pytest.raises(Malformed, match="edges"):
        cuts.parse(aggregator.manifest, ("edges", 0), encode([1, aggregator.study, edges]))


def test_the_roster_helpers_agree_with_the_wire() -> None:
    aggregator = FakeAggregator.with_study(DECLARED)
    aggregator.crowd(4)
    entries = read_roster(aggregator.roster(), aggregator.study)
    assert roster_body(aggregator.study, entries) == aggregator.roster()
    assert isinstance(entries[0], RosterEntry)
    assert body_digest(aggregator.roster()) != body_digest(b"")
