"""Every trap of relaying, verifying, listing and adding up: each is refused, nothing of it is counted, no sum leaks."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from attrs import evolve

from anon.credential import generate_secret_key, public_key
from anon.crypto.nacl import SigningKey
from anon.errors import Conflict, Malformed, Refused, RejectedProof
from anon.sharing.arrangement import Arrangement
from anon.sharing.sealed_shares import sealed_shares
from anon.sharing.statements import (
    AcceptedList,
    Disagreed,
    ListSignature,
    VerifierShares,
    check_countersignatures,
    parse_disagreement,
    parse_list,
    parse_verifier_shares,
)
from anon.teller.session import Teller
from anon.transparency.closing import CLOSING, Bodies
from anon.transparency.documents import SignedHead, encode_chain, sign_head
from anon.vdaf.binding import sharing_nonce
from anon.wire.messages import encode_seed
from anon.wire.packets import Occasion, Packet, seal_shares
from tests.anon.vdaf.parties import LyingBlocks
from tests.support.documents import credentials_body
from tests.support.fake_aggregator import PAPER, FakeAggregator
from tests.support.tellers import (
    LENGTHS,
    MANIFEST,
    PLACES,
    Member,
    World,
    a_sum,
    enrolled,
    expected,
    held_tags,
    make_world,
    ready_world,
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Two slots; the tests admit packets and sign no list."""
    return ready_world(tmp_path_factory.mktemp("tellers"), sums=[a_sum(0, 0), a_sum(0, 1)], text=PAPER, members=5)


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def resealed(
    world: World, measurement: list[int], change: Callable[[list[bytes]], list[bytes]]
) -> Callable[[Packet], Packet]:
    """A sender's packet whose input shares are changed before they are sealed."""

    def changed(packet: Packet) -> Packet:
        arrangement = world.arrangement
        prio3 = arrangement.prio3(arrangement.sum_of(packet.occasion))
        sharing = prio3.shard(
            arrangement.context(packet.occasion),
            measurement,
            sharing_nonce(packet.tag),
            os.urandom(prio3.randomness_size),
        )
        shares = change(list(sharing.input_shares))
        keys = [teller.sealing_key for teller in arrangement.tellers]
        return evolve(
            packet, report=sharing.public_share, shares=seal_shares(packet.occasion, packet.tag, shares, keys)
        )

    return changed


def counted(world: World, packets: list[Packet], number: int = 0) -> frozenset[bytes]:
    return world.settle(world.admit(packets, number), number) & {packet.tag for packet in packets}


# A sender that lies


@pytest.mark.slow
@pytest.mark.parametrize(("teller", "place"), [(0, 3), (0, 200), (0, -1), (1, 0), (1, 40)], ids=str)
def test_a_changed_bit_in_a_share_is_not_counted(tmp_path: Path, teller: int, place: int) -> None:
    """Vector, proof and blind of the leader; seed and blind of the helper."""
    world = ready_world(tmp_path)

    def change(shares: list[bytes]) -> list[bytes]:
        shares[teller] = flipped(shares[teller], place % len(shares[teller]))
        return shares

    bad = world.members[0].packet(world.arrangement, world.occasion(), PLACES[0], resealed(world, PLACES[0], change))
    packets = [bad, *world.packets()[1:]]
    assert counted(world, packets) == {packet.tag for packet in packets[1:]}


@pytest.mark.parametrize("place", [0, 32], ids=["leader's part", "helper's part"])
def test_a_changed_bit_in_the_joint_randomness_is_not_counted(tmp_path: Path, place: int) -> None:
    world = ready_world(tmp_path)
    bad = world.members[0].packet(
        world.arrangement,
        world.occasion(),
        PLACES[0],
        lambda packet: evolve(packet, report=flipped(packet.report, place)),
    )
    packets = [bad, *world.packets()[1:]]
    assert counted(world, packets) == {packet.tag for packet in packets[1:]}


@pytest.mark.slow
@pytest.mark.parametrize(
    "vector",
    [[1, 1, 1, 0, 0], [0, 0, 1, 0, 0], [5, -4, 1, 0, 0], [1, 0, 0, 0, 1 << 64]],
    ids=["two ones", "no one", "out of range", "large"],
)
def test_a_vector_that_is_not_valid_is_not_counted(tmp_path: Path, vector: list[int]) -> None:
    world = ready_world(tmp_path)
    asked = world.arrangement.sums[0]
    prio3 = replace(world.arrangement.prio3(asked), circuit=LyingBlocks(LENGTHS, asked.parameters[0]))
    occasion, member = world.occasion(), world.members[0]

    def change(packet: Packet) -> Packet:
        sharing = prio3.shard(
            world.arrangement.context(occasion), vector, sharing_nonce(packet.tag), os.urandom(prio3.randomness_size)
        )
        keys = [teller.sealing_key for teller in world.arrangement.tellers]
        return evolve(
            packet, report=sharing.public_share, shares=seal_shares(occasion, packet.tag, sharing.input_shares, keys)
        )

    packets = [member.packet(world.arrangement, occasion, PLACES[0], change), *world.packets()[1:]]
    assert counted(world, packets) == {packet.tag for packet in packets[1:]}


def test_a_packet_without_a_member_s_token_is_refused(world: World) -> None:
    stranger = ready_members(1, world)[0]
    forged = [
        stranger.packet(world.arrangement, world.occasion(), PLACES[0]),
        evolve(good := world.packets()[0], token=flipped(good.token, 100)),
        evolve(good, token=good.tag + bytes(len(good.token) - 48)),
    ]
    for packet in forged:
        admitted = world.tellers[0].admit(world.occasion(), [packet.relayed(0).to_bytes()])
        assert sum(admitted.refused.values()) == 1
        assert said(world, admitted.statement) == {}


def ready_members(count: int, world: World) -> list[Member]:
    """Members of another roster under the same issuer's key: an earlier story of the same aggregator."""
    honest = world.aggregator
    other = FakeAggregator(honest.manifest, honest.key, honest.sealing, honest.issuer, honest.value, honest.clock)
    other.publish("manifest", honest.manifest.to_bytes())
    return enrolled(other, max(count, 3))[:count]


def said(world: World, statement: bytes, teller: int = 0, number: int = 0) -> dict[bytes, bytes]:
    return dict(parse_verifier_shares(statement, world.occasion(number), teller, world.arrangement).shares)


def test_one_tag_is_counted_once(world: World) -> None:
    """A member sends two packets of one occasion, each with a good token. One of them holds the tag."""
    member = world.members[0]
    two = [member.packet(world.arrangement, world.occasion(1), PLACES[place]) for place in (0, 1)]
    assert two[0].tag == two[1].tag
    items = [packet.relayed(0).to_bytes() for packet in two]
    admitted = world.tellers[0].admit(world.occasion(1), items)
    assert admitted.refused == {"tag-spent": 1} and len(said(world, admitted.statement, 0, 1)) == 1
    again = [world.tellers[0].admit(world.occasion(1), [item]) for item in items]
    assert sorted(dict(one.refused).get("tag-spent", 0) for one in again) == [0, 1]
    assert {one.statement for one in again} >= {admitted.statement}


def test_a_forged_packet_does_not_take_a_member_s_place(tmp_path: Path) -> None:
    world = ready_world(tmp_path)
    good = world.packets()[0]
    forged = [evolve(good, token=good.tag + os.urandom(len(good.token) - 48)) for _ in range(8)]
    items = [packet.relayed(0).to_bytes() for packet in (*forged, good)]
    admitted = world.tellers[0].admit(world.occasion(), items)
    assert sum(admitted.refused.values()) == 8
    assert said(world, admitted.statement).keys() == {good.tag}


# An aggregator that lies


def multiplied(world: World, number: int, other: int) -> Packet:
    """A member's shares under the token of another member, whom the aggregator invented."""
    victim = world.members[1].packet(world.arrangement, world.occasion(number), PLACES[1])
    return world.members[other].packet(
        world.arrangement,
        world.occasion(number),
        PLACES[0],
        lambda packet: evolve(packet, report=victim.report, shares=victim.shares),
    )


def test_a_share_that_is_sent_again_under_another_tag_is_refused(world: World) -> None:
    packet = multiplied(world, 0, 2)
    for teller in (0, 1):
        admitted = world.tellers[teller].admit(world.occasion(), [packet.relayed(teller).to_bytes()])
        assert admitted.refused == {"rejected-proof": 1}


def test_a_share_of_another_slot_is_refused(world: World) -> None:
    member = world.members[3]
    first = member.packet(world.arrangement, world.occasion(0), PLACES[0])
    moved = member.packet(
        world.arrangement, world.occasion(1), PLACES[0], lambda packet: evolve(packet, shares=first.shares)
    )
    admitted = world.tellers[0].admit(world.occasion(1), [moved.relayed(0).to_bytes()])
    assert admitted.refused == {"rejected-proof": 1}


def test_a_packet_of_another_slot_or_teller_is_refused(world: World) -> None:
    packet = world.packets()[0]
    for number, teller in ((1, 0), (0, 1)):
        admitted = world.tellers[0].admit(world.occasion(number), [packet.relayed(teller).to_bytes()])
        assert admitted.refused == {"malformed": 1}


def test_a_share_of_another_study_is_refused(tmp_path: Path, world: World) -> None:
    """Of the same tellers' keys even: only the study differs."""
    member, occasion = world.members[4], world.occasion(0)
    elsewhere = Occasion(bytes(32), occasion.round, occasion.slot)

    def from_elsewhere(packet: Packet) -> Packet:
        report, shares = sealed_shares(world.arrangement, elsewhere, PLACES[0], packet.tag, os.urandom)
        return evolve(packet, report=report, shares=shares)

    packet = member.packet(world.arrangement, occasion, PLACES[0], from_elsewhere)
    admitted = world.tellers[0].admit(occasion, [packet.relayed(0).to_bytes()])
    assert admitted.refused == {"rejected-proof": 1}


def test_a_share_that_is_exchanged_on_the_way_is_refused(world: World) -> None:
    one, other = world.packets()[:2]
    relayed = evolve(one.relayed(0), share=other.shares[0])
    assert world.tellers[0].admit(world.occasion(), [relayed.to_bytes()]).refused == {"malformed": 1}
    redigested = evolve(relayed, digests=(other.digests[0], one.digests[1]))
    assert world.tellers[0].admit(world.occasion(), [redigested.to_bytes()]).refused == {"rejected-proof": 1}


def test_nothing_is_taken_before_key_and_roster_are_there(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    packet = world.packets()[0].relayed(0).to_bytes()
    with pytest.raises(Refused, match="countersign"):
        world.tellers[0].admit(world.occasion(), [packet])
    for teller in world.tellers:
        teller.countersign(world.study, world.arrangement.to_bytes(), MANIFEST)
    with pytest.raises(Refused, match="roster"):
        world.tellers[0].admit(world.occasion(), [packet])
    world.tellers[0].take_roll(world.study, *world.closing())
    with pytest.raises(Refused, match="verification key"):
        world.tellers[0].admit(world.occasion(), [packet])
    world.join_up()
    assert world.tellers[0].admit(world.occasion(), [packet]).refused == {}


# Keys


def test_a_part_of_the_key_that_was_not_committed_to_is_refused(tmp_path: Path) -> None:
    """By whoever sends it: a fellow that waited for the other's part, or the aggregator."""
    from anon.crypto import labels
    from anon.crypto.sealing import seal
    from anon.wire.cbor import encode

    world = make_world(tmp_path)
    for teller in world.tellers:
        teller.countersign(world.study, world.arrangement.to_bytes(), MANIFEST)
    info = encode([labels.KEY_SHARE, 2, world.study, 1, 0])
    key = world.arrangement.tellers[0].sealing_key
    for part in (os.urandom(32), b"", os.urandom(33)):
        with pytest.raises(RejectedProof):
            world.tellers[0].take_key_share(world.study, 1, seal(part, key, info))
    good = world.tellers[1].key_shares(world.study)[0]
    for sender in (0, 2, -1):
        with pytest.raises(Malformed):
            world.tellers[0].take_key_share(world.study, sender, good)
    with pytest.raises(RejectedProof):
        world.tellers[1].take_key_share(world.study, 0, good)


def test_an_offer_serves_one_study(tmp_path: Path) -> None:
    world = ready_world(tmp_path)
    teller, arrangement = world.tellers[0], world.arrangement
    with pytest.raises(Conflict, match="another study"):
        teller.countersign(bytes(32), arrangement.to_bytes(), MANIFEST)
    with pytest.raises(Conflict):
        teller.countersign(world.study, evolve(arrangement, minimum=2).to_bytes(), MANIFEST)
    changed = evolve(arrangement, tellers=(evolve(arrangement.tellers[0], name="renamed"), arrangement.tellers[1]))
    with pytest.raises(Refused, match="none of the study's tellers is this one"):
        Teller(SigningKey.generate(), world.journals[0], os.urandom).countersign(
            world.study, changed.to_bytes(), MANIFEST
        )


def test_a_countersignature_of_another_study_or_teller_is_refused(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    statements = [teller.countersign(world.study, world.arrangement.to_bytes(), MANIFEST) for teller in world.tellers]
    other: Arrangement = evolve(world.arrangement, minimum=2)
    for study, arrangement, given in [
        (bytes(32), world.arrangement, statements),
        (world.study, other, statements),
        (world.study, world.arrangement, statements[::-1]),
        (world.study, world.arrangement, [statements[0]] * 2),
        (world.study, world.arrangement, [statements[0], flipped(statements[1], len(statements[1]) - 1)]),
    ]:
        with pytest.raises(RejectedProof):
            check_countersignatures(study, arrangement, given)
    with pytest.raises(Malformed):
        check_countersignatures(world.study, world.arrangement, statements[:1])


# The roster


def rerolled(world: World, change: Callable[[World], tuple[bytes, bytes, Bodies]]) -> None:
    world.tellers[0].take_roll(world.study, *change(world))


def test_a_second_roster_is_refused(tmp_path: Path) -> None:
    world = ready_world(tmp_path)
    first = world.closing()
    world.aggregator.chain, world.aggregator.bodies = world.aggregator.chain[:1], world.aggregator.bodies[:1]
    world.aggregator.crowd(2)
    world.aggregator.close()
    with pytest.raises(Conflict, match="second roster"):
        rerolled(world, World.closing)
    world.tellers[0].take_roll(world.study, *first)


def test_a_roster_that_is_not_signed_or_another_study_s_is_refused(tmp_path: Path) -> None:
    world, other = make_world(tmp_path / "one"), make_world(tmp_path / "other", another=1)
    for teller in world.tellers:
        teller.countersign(world.study, world.arrangement.to_bytes(), MANIFEST)
    manifest, heads, bodies = world.closing()
    bad = [
        (manifest, heads, evolve(bodies, roster=other.closing()[2].roster)),
        (manifest, heads, evolve(bodies, credentials=flipped(bodies.credentials, len(bodies.credentials) - 3))),
        (manifest, encode_chain(world.aggregator.chain[:3]), bodies),
        (manifest, other.closing()[1], bodies),
        other.closing(),
    ]
    for one in bad:
        with pytest.raises((Malformed, RejectedProof)):
            world.tellers[0].take_roll(world.study, *one)
    world.tellers[0].take_roll(world.study, manifest, heads, bodies)


def test_another_manifest_under_signed_heads_of_this_study_is_refused(tmp_path: Path) -> None:
    """An aggregator that keeps its key and puts another manifest's roster and issuing key under heads of this study."""
    world, other = make_world(tmp_path / "one"), make_world(tmp_path / "other", another=1)
    for teller in world.tellers:
        teller.countersign(world.study, world.arrangement.to_bytes(), MANIFEST)
    manifest = evolve(other.aggregator.manifest, aggregator_key=world.aggregator.manifest.aggregator_key)
    twin = FakeAggregator(
        manifest,
        world.aggregator.key,
        other.aggregator.sealing,
        other.aggregator.issuer,
        other.aggregator.value,
        other.aggregator.clock,
    )
    twin.publish("manifest", manifest.to_bytes())
    enrolled(twin, 4)
    chain: list[SignedHead] = []
    for kind, body in zip(("manifest", *CLOSING), twin.bodies, strict=True):
        chain.append(sign_head(world.aggregator.key, world.study, chain, kind, 0, body))
    with pytest.raises(Malformed, match="another study"):
        world.tellers[0].take_roll(world.study, manifest.to_bytes(), encode_chain(chain), Bodies(*twin.bodies[1:]))


def test_a_roster_below_the_minimum_or_with_a_bad_credential_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="4 members, and the study needs 5"):
        ready_world(tmp_path / "small", minimum=5)
    world = make_world(tmp_path / "bad")
    for teller in world.tellers:
        teller.countersign(world.study, world.arrangement.to_bytes(), MANIFEST)
    aggregator = world.aggregator
    roster, signatures = aggregator.bodies[1], aggregator.signatures(aggregator.bodies[1])
    forged = aggregator.signatures(roster, generate_secret_key(os.urandom))
    aggregator.chain, aggregator.bodies = aggregator.chain[:1], aggregator.bodies[:1]
    aggregator.publish("roster", roster)
    aggregator.publish("seed", encode_seed(world.study, aggregator.value))
    aggregator.publish("credentials", credentials_body(world.study, [forged[0], *signatures[1:]]))
    with pytest.raises(Refused, match="credentials"):
        rerolled(world, World.closing)


# A fellow that lies


def test_a_second_verifier_share_of_one_packet_is_refused(tmp_path: Path) -> None:
    """A dishonest fellow tries shares until one passes, or learns from which pass."""
    world = ready_world(tmp_path)
    packets = world.packets()
    statements = world.admit(packets)
    honest = said(world, statements[1], 1)
    lying = dict(honest) | {packets[0].tag: flipped(honest[packets[0].tag], 0)}
    sign = VerifierShares(world.occasion(), 1, lying).sign
    assert packets[0].tag not in world.tellers[0].settle(world.occasion(), [sign(world.tellers[1]._key)])
    with pytest.raises(Conflict, match="second verifier share"):
        world.tellers[0].settle(world.occasion(), [statements[1]])
    assert packets[0].tag not in world.journals[0].accepted(world.occasion())


@pytest.mark.parametrize("silent", [1, 2])
def test_a_packet_that_one_of_three_tellers_leaves_out_waits_and_the_others_are_settled(
    tmp_path: Path, silent: int
) -> None:
    world = ready_world(tmp_path, tellers=3)
    packets = world.packets()
    statements = world.admit(packets)
    fewer = {tag: share for tag, share in said(world, statements[silent], silent).items() if tag != packets[0].tag}
    statements[silent] = VerifierShares(world.occasion(), silent, fewer).sign(world.tellers[silent]._key)
    settled = world.tellers[0].settle(world.occasion(), statements[1:])
    assert settled == {packet.tag for packet in packets[1:]}
    assert world.tellers[0].settle(world.occasion(), world.admit(packets)[1:]) == {packet.tag for packet in packets}


def test_verifier_shares_of_nobody_or_for_another_sum_are_refused(world: World) -> None:
    packets = world.packets()[3:]
    statements = world.admit(packets)
    for bad in (
        statements[0],
        flipped(statements[1], len(statements[1]) - 1),
        VerifierShares(world.occasion(), 1, {}).sign(SigningKey.generate()),
    ):
        with pytest.raises(RejectedProof):
            world.tellers[0].settle(world.occasion(), [bad])
    for given in ([], statements):
        with pytest.raises(Malformed):
            world.tellers[0].settle(world.occasion(), given)
    with pytest.raises(Malformed):
        world.tellers[0].settle(
            world.occasion(), [VerifierShares(world.occasion(1), 1, {}).sign(world.tellers[1]._key)]
        )


# The list


def listed(tmp_path: Path, **asked: object) -> tuple[World, list[Packet], frozenset[bytes]]:
    world = ready_world(tmp_path, **asked)
    packets = world.packets()
    return world, packets, world.settle(world.admit(packets))


def test_a_second_list_is_refused(tmp_path: Path) -> None:
    """The difference of two sums would be one person, under half the noise."""
    world, packets, accepted = listed(tmp_path)
    first, second = (world.list_of(tags) for tags in (accepted, accepted - {packets[0].tag}))
    world.signatures(first)
    with pytest.raises(Conflict, match="second list"):
        world.tellers[0].sign_list(world.occasion(), second)
    world.restart(0)
    with pytest.raises(Conflict, match="second list"):
        world.tellers[0].sign_list(world.occasion(), second)
    world.noisy(world.signatures(first))
    with pytest.raises(Conflict, match="second list"):
        world.tellers[0].sign_list(world.occasion(), second)


def test_a_list_with_a_tag_that_was_not_accepted_is_refused(tmp_path: Path) -> None:
    world, _, accepted = listed(tmp_path)
    with pytest.raises(Refused, match="not accepted"):
        world.signatures(world.list_of(accepted | {bytes(48)}))


def test_a_list_below_the_minimum_is_refused(tmp_path: Path) -> None:
    """Also when peers fell away between closing and summing."""
    world, packets, accepted = listed(tmp_path)
    few = frozenset([packet.tag for packet in packets[:2]])
    with pytest.raises(Refused, match="2 tags, expected 3 to 4"):
        world.signatures(world.list_of(few))
    with pytest.raises(Refused, match="no list"):
        world.noisy([b"", b""])
    world.signatures(world.list_of(accepted))


def test_a_list_with_more_tags_than_members_is_refused(tmp_path: Path) -> None:
    """An aggregator that issued itself credentials beside the roster."""
    from anon.credential import PublicKey, blind_sign, commit, finalize, signer_nym_entropy
    from anon.transparency.documents import body_digest
    from anon.wire.messages import credential_header

    world = ready_world(tmp_path)
    header = credential_header(world.study, body_digest(world.aggregator.bodies[1]))
    issuer, key = world.aggregator.issuer, PublicKey(public_key(world.aggregator.issuer))  # type: ignore[arg-type]
    secrets, entropy = commit(1, os.urandom), signer_nym_entropy(bytes(32), bytes(32))
    signature = blind_sign(issuer, key, secrets.commitment_with_proof, header, entropy, 1)  # type: ignore[arg-type]
    minted = Member(finalize(key, header, signature, entropy, secrets))
    packets = [*world.packets(), minted.packet(world.arrangement, world.occasion(), PLACES[4])]
    accepted = world.settle(world.admit(packets))
    assert len(accepted) == 5
    with pytest.raises(Refused, match="5 tags, expected 3 to 4"):
        world.signatures(world.list_of(accepted))


@pytest.mark.parametrize(
    "spell", [lambda tags: tags[::-1], lambda tags: (*tags, tags[-1]), lambda tags: (tags[0], *tags)]
)
def test_a_list_that_is_not_sorted_or_has_a_tag_twice_is_refused(
    tmp_path: Path, spell: Callable[[tuple[bytes, ...]], tuple[bytes, ...]]
) -> None:
    world, _, accepted = listed(tmp_path)
    body = AcceptedList(world.occasion(), spell(tuple(sorted(accepted)))).to_bytes()
    with pytest.raises(Malformed, match="sorted"):
        world.signatures(body)


def test_nothing_is_taken_once_the_list_is_signed(tmp_path: Path) -> None:
    world = ready_world(tmp_path)
    packets = world.packets()
    statements = world.admit(packets[:3])
    world.signatures(world.list_of(world.settle(statements)))
    with pytest.raises(Conflict, match="closed"):
        world.admit(packets)
    with pytest.raises(Conflict, match="closed"):
        world.settle(statements)


def test_no_noisy_share_leaves_before_all_signed_one_list(tmp_path: Path) -> None:
    world, _, accepted = listed(tmp_path)
    signatures = world.signatures(world.list_of(accepted))
    for given in ([], [signatures[0]]):
        with pytest.raises(Refused, match="missing"):
            world.tellers[0].add_noise(world.occasion(), given)
    with pytest.raises(RejectedProof):
        world.tellers[0].add_noise(world.occasion(), [flipped(signatures[1], len(signatures[1]) - 1)])
    elsewhere = ListSignature(Occasion(world.study, 5, 0), 1, bytes(32)).sign(world.tellers[1]._key)
    with pytest.raises(Malformed):
        world.tellers[0].add_noise(world.occasion(), [elsewhere])
    assert world.journals[0].end(world.occasion()).noisy is None


def agreeing(world: World, number: int) -> bytes:
    """The fellow's signature of this teller's own list: it signed both."""
    body = world.journals[number].end(world.occasion()).list
    assert body is not None
    digest = parse_list(body, world.occasion()).digest()
    return ListSignature(world.occasion(), 1 - number, digest).sign(world.tellers[1 - number]._key)


def test_tellers_that_disagree_stop_the_sum_with_evidence(tmp_path: Path) -> None:
    """An aggregator that shows each teller another list."""
    world, packets, accepted = listed(tmp_path)
    one = world.tellers[0].sign_list(world.occasion(), world.list_of(accepted))
    other = world.tellers[1].sign_list(world.occasion(), world.list_of(accepted - {packets[0].tag}))
    for number, statement in ((0, other), (1, one)):
        with pytest.raises(Disagreed) as stopped:
            world.tellers[number].add_noise(world.occasion(), [statement])
        evidence = parse_disagreement(stopped.value.evidence.to_bytes(), world.study, world.arrangement)
        assert sorted(evidence.tellers) == [0, 1]
        world.restart(number)
        with pytest.raises(Disagreed):
            world.tellers[number].add_noise(world.occasion(), [agreeing(world, number)])
        assert world.journals[number].end(world.occasion()).noisy is None
        assert not held_tags(world.journals[number], world.occasion())
        with pytest.raises(Conflict):
            world.tellers[number].sign_list(world.occasion(), world.list_of(accepted))


@pytest.mark.parametrize("tamper", [
    lambda evidence: flipped(evidence, len(evidence) - 1), lambda evidence: evidence + b"\0", lambda _evidence: b"",
])
def test_evidence_that_is_changed_proves_nothing(tmp_path: Path, tamper: Callable[[bytes], bytes]) -> None:
    world, packets, accepted = listed(tmp_path)
    world.tellers[0].sign_list(world.occasion(), world.list_of(accepted))
    other = world.tellers[1].sign_list(world.occasion(), world.list_of(accepted - {packets[0].tag}))
    with pytest.raises(Disagreed) as stopped:
        world.tellers[0].add_noise(world.occasion(), [other])
    with pytest.raises((Malformed, RejectedProof)):
        parse_disagreement(tamper(stopped.value.evidence.to_bytes()), world.study, world.arrangement)


def test_what_is_refused_changes_no_sum(tmp_path: Path) -> None:
    """Every kind of bad packet beside four good ones."""
    world = ready_world(tmp_path, members=5)
    bad = [multiplied(world, 0, 4), evolve(good := world.packets()[0], token=good.tag + bytes(336))]
    assert world.summed([*world.packets()[:4], *bad]).values == expected(PLACES[:4])
