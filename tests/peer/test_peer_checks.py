"""The traps on the peer's side: each flaw of a dishonest aggregator is one named case, and nothing is sent."""

import os
from pathlib import Path

import pytest
from attrs import evolve
from nacl.signing import SigningKey
from village import BINNED, DECLARED, Village, advance, peer

from anon.credential import generate_secret_key
from anon.documents import body_digest, encode_chain, parse_chain, sign_head
from anon.encoding import decode, encode
from anon.errors import Malformed, Refused, RejectedProof
from anon.messages import RosterEntry, encode_credentials, encode_roster, encode_seed, parse_roster
from anon.protocols.histogram import cuts
from anon.study.manifest import parse_manifest, study_id_of
from peer.app import PeerApp
from peer.checks import Equivocation, check_manifest, extend_chain
from peer.records import Status
from peer.session import State

# A point of order 3 on the curve, outside the prime-order subgroup: (0, 2), compressed.
ORDER_3 = bytes([0x80]) + bytes(47)


async def enrolled(tmp_path: Path, village: Village) -> PeerApp:
    """A peer that has enrolled, with the clock at closing."""
    app = peer(tmp_path, village)
    await app.join(village.invite, village.manifest.epsilon)
    await advance(app, village, village.manifest.timetable.enrol_closes - 1)
    village.crowd(5)
    village.clock.seconds = village.manifest.timetable.enrol_closes
    return app


async def stops(app: PeerApp, village: Village, said: str = "") -> None:
    assert await advance(app, village) is None
    (status,) = app.status()
    assert status.state is State.STOPPED
    assert said in status.reason
    assert village.sent("packets") == []
    assert (status.reserved, status.spent) == (0, 0)
    assert app.store.study(village.study).secrets is None


def publish_closing(village: Village, roster: bytes, signatures: list[bytes], value: bytes | None = None) -> None:
    village.publish("roster", roster)
    village.publish("seed", encode_seed(village.study, value or village.value))
    village.publish("credentials", encode_credentials(village.study, signatures))


def own_place(app: PeerApp, village: Village) -> int:
    from peer.secrets import StudySecrets

    stored = app.store.study(village.study).secrets
    key = bytes(StudySecrets.from_bytes(stored[1:]).signing_key.verify_key)
    return sorted(village.enrolments).index(key)


@pytest.mark.parametrize("field", ["contribution", "commitment"])
async def test_roster_with_a_changed_own_entry(tmp_path: Path, field: str) -> None:
    village = Village.found()
    app = await enrolled(tmp_path, village)
    key = sorted(village.enrolments)[own_place(app, village)]
    signatures = village.signatures(village.roster())
    changed = evolve(village.enrolments[key], **{field: bytes(len(getattr(village.enrolments[key], field)))})
    village.enrolments[key] = changed
    publish_closing(village, village.roster(), signatures)
    await stops(app, village, "another enrolment than the one sent")


async def test_roster_without_the_own_entry(tmp_path: Path) -> None:
    village = Village.found()
    app = await enrolled(tmp_path, village)
    del village.enrolments[sorted(village.enrolments)[own_place(app, village)]]
    village.close()
    await stops(app, village, "without this enrolment")


async def test_roster_smaller_than_the_owner_demands(tmp_path: Path) -> None:
    village = Village.found()
    app = peer(tmp_path, village)
    app.set_policy(evolve(app.policy(), minimum_cohort=50))
    await app.join(village.invite, village.manifest.epsilon)
    await advance(app, village, village.manifest.timetable.enrol_closes - 1)
    village.crowd(5)
    village.close()
    await stops(app, village, "at least 50")


async def test_seed_that_does_not_open_the_commitment(tmp_path: Path) -> None:
    village = Village.found()
    app = await enrolled(tmp_path, village)
    roster = village.roster()
    publish_closing(village, roster, village.signatures(roster), bytes(32))
    await stops(app, village, "commitment")


async def test_seed_revealed_before_the_roster_was_signed(tmp_path: Path) -> None:
    village = Village.found()
    app = await enrolled(tmp_path, village)
    roster = village.roster()
    village.publish("seed", encode_seed(village.study, village.value))
    village.publish("roster", roster)
    village.publish("credentials", encode_credentials(village.study, village.signatures(roster)))
    await stops(app, village, "before it signed the roster")


async def test_credential_under_another_key(tmp_path: Path) -> None:
    village = Village.found()
    app = await enrolled(tmp_path, village)
    roster = village.roster()
    publish_closing(village, roster, village.signatures(roster, generate_secret_key(os.urandom)))
    await stops(app, village)


async def test_credential_with_a_small_order_point(tmp_path: Path) -> None:
    from py_arkworks_bls12381 import G1Point

    village = Village.found()
    app = await enrolled(tmp_path, village)
    roster = village.roster()
    signatures = village.signatures(roster)
    place = own_place(app, village)
    marked = G1Point.from_compressed_bytes_unchecked(signatures[place][:48]) + G1Point.from_compressed_bytes_unchecked(
        ORDER_3
    )
    signatures[place] = bytes(marked.to_compressed_bytes()) + signatures[place][48:]
    publish_closing(village, roster, signatures)
    await stops(app, village, "subgroup")


async def test_credentials_of_two_members_exchanged(tmp_path: Path) -> None:
    village = Village.found()
    app = await enrolled(tmp_path, village)
    roster = village.roster()
    publish_closing(village, roster, village.signatures(roster)[::-1])
    await stops(app, village)


async def test_credentials_for_another_roster(tmp_path: Path) -> None:
    """A header over another roster would put the peer alone into a group of one."""
    village = Village.found()
    app = await enrolled(tmp_path, village)
    roster = village.roster()
    honest = village.enrolments
    village.enrolments = dict(honest)
    village.crowd(1)
    other = dict(zip(sorted(village.enrolments), village.signatures(village.roster()), strict=True))
    village.enrolments = honest
    publish_closing(village, roster, [other[key] for key in sorted(honest)])
    await stops(app, village)


# Manifest and invite


def changed(village: Village, **changes: object) -> bytes:
    """The manifest's bytes with changed fields, around its constructor's checks."""
    plain = decode(village.manifest.to_bytes())
    plain.update(changes)
    return encode(plain)


async def test_manifest_with_a_changed_epsilon_is_not_the_invited_study(tmp_path: Path) -> None:
    village = Village.found()
    body = changed(village, epsilon=village.manifest.epsilon + 1)
    village.chain, village.bodies = [], []
    village.publish("manifest", body)
    with pytest.raises(Malformed, match="not the study of the invite"):
        await peer(tmp_path, village).look(village.invite)
    assert village.posts == []


def test_manifest_that_declares_less_than_it_costs() -> None:
    village = Village.found()
    body = changed(village, epsilon=village.manifest.epsilon - 1)
    invite = evolve(village.invite, study=parse_manifest(body).study_id)
    with pytest.raises(Malformed, match="declares epsilon"):
        check_manifest(body, invite)


def test_manifest_with_a_survey_that_costs_more_than_it_says() -> None:
    village = Village.found()
    surveys = decode(village.manifest.to_bytes())["surveys"]
    surveys[0]["epsilon"] //= 2
    with pytest.raises(Malformed, match="below the recomputed"):
        body = changed(village, surveys=surveys)
        check_manifest(body, evolve(village.invite, study=study_id_of(body)))


def test_manifest_that_names_another_aggregator() -> None:
    village = Village.found()
    body = changed(village, aggregator_key=bytes(SigningKey.generate().verify_key))
    invite = evolve(village.invite, study=parse_manifest(body).study_id)
    with pytest.raises(Malformed, match="another aggregator key"):
        check_manifest(body, invite)


@pytest.mark.parametrize("query", ["DELETE FROM person", "SELECT load_extension('x')", "SELECT name FROM friends"])
def test_manifest_whose_query_may_not_run(query: str) -> None:
    village = Village.found()
    label = decode(village.manifest.to_bytes())["label"] | {"query": query}
    body = changed(village, label=label)
    invite = evolve(village.invite, study=parse_manifest(body).study_id)
    with pytest.raises((Refused, Malformed), match="label"):
        check_manifest(body, invite)


async def test_manifest_signed_by_another_key_than_pinned(tmp_path: Path) -> None:
    village = Village.found()
    invite = evolve(village.invite, key=bytes(SigningKey.generate().verify_key))
    with pytest.raises(RejectedProof):
        await peer(tmp_path, village).look(invite)


# Chains


def fork(village: Village, number: int, body: bytes = b"another") -> list:
    """The chain with another document from `number` on."""
    head = village.chain[number].head
    before = village.chain[:number]
    return [*before, sign_head(village.key, village.study, before, head.kind, head.part, body)]


def test_two_heads_with_one_number_are_evidence_that_verifies() -> None:
    village = Village.found()
    village.crowd(3)
    village.close()
    with pytest.raises(Equivocation) as caught:
        extend_chain(village.chain, fork(village, 2))
    pair = decode(caught.value.evidence())
    heads = [decode(head) for head, _signature in pair]
    assert heads[0][1] == heads[1][1] == 2
    assert heads[0] != heads[1]


def test_a_shorter_chain_is_no_news_and_no_evidence() -> None:
    village = Village.found()
    village.crowd(3)
    village.close()
    assert extend_chain(village.chain, village.chain[:2]) == tuple(village.chain)


def test_one_document_published_twice() -> None:
    village = Village.found()
    village.crowd(3)
    village.close()
    village.publish("roster", village.roster())
    with pytest.raises(Refused, match="twice"):
        extend_chain((), village.chain)


@pytest.mark.parametrize("flaw", ["signature", "link", "number", "study"])
def test_a_forged_chain_is_not_believed(flaw: str) -> None:
    village = Village.found()
    village.crowd(3)
    village.close()
    key, last = village.key, village.chain[-1].head
    if flaw == "signature":
        village.chain[-1] = evolve(village.chain[-1], signature=bytes(64))
    else:
        field = {"link": "previous", "number": "number", "study": "study"}[flaw]
        value = last.number + 1 if flaw == "number" else bytes(32)
        from anon import labels
        from anon.documents import SignedHead
        from anon.encoding import sha256

        head = evolve(last, **{field: value})
        village.chain[-1] = SignedHead(head, key.sign(sha256(labels.HEAD, head.to_bytes())).signature)
    with pytest.raises((Malformed, RejectedProof)):
        parse_chain(encode_chain(village.chain), bytes(key.verify_key), village.study)


async def test_a_second_story_before_sending_stops_everything_and_is_kept(tmp_path: Path) -> None:
    village = Village.found()
    app = await enrolled(tmp_path, village)
    village.close()
    await advance(app, village, village.manifest.timetable.settled - 1)
    (status,) = app.status()
    assert [slot.status for slot in status.slots] == [Status.QUEUED]
    village.chain = fork(village, 1, village.roster() + b"x")
    assert await advance(app, village) is None
    (status,) = app.status()
    assert status.state is State.STOPPED
    assert "two different documents" in status.reason
    assert village.sent("packets") == []
    assert [slot.status for slot in status.slots] == [Status.STOPPED]
    assert status.spent > 0  # journalled: the charge stays
    ((study, what, proof),) = app.evidence()
    assert (study, what) == (village.study, "check-failed")
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
    village = Village.found(BINNED)
    with pytest.raises(Malformed, match="edges"):
        cuts.parse(village.manifest, ("edges", 0), encode([1, village.study, edges]))


def test_the_roster_helpers_agree_with_the_wire() -> None:
    village = Village.found(DECLARED)
    village.crowd(4)
    entries = parse_roster(village.roster(), village.study)
    assert encode_roster(village.study, entries) == village.roster()
    assert isinstance(entries[0], RosterEntry)
    assert body_digest(village.roster()) != body_digest(b"")
