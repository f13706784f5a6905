"""A spare teller: any two of three make a sum, an honest one signs in one of its pairs alone, and never twice."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path

import pytest
from attrs import evolve

from anon.errors import Conflict, Malformed, Refused, RejectedProof
from anon.sharing.arrangement import MOST_SUMS_WITH_SPARE, PAIRS, parse_arrangement
from anon.sharing.quorum import parse_quorum
from anon.sharing.statements import check_countersignatures, parse_list
from anon.teller.home import DATABASE
from anon.teller.overview import overview
from anon.teller.session import Teller
from anon.wire.packets import Packet, share_info
from tests.support.spare import Spared, spared
from tests.support.tellers import MANIFEST, PLACES, expected, held_tags

AB, AC, BC = range(3)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_any_two_make_the_exact_sum_where_the_noise_is_silent(tmp_path: Path, lost: int) -> None:
    """The third one never answers after the enrolment has closed."""
    world = spared(tmp_path)
    packets = world.packets()
    world.journals[lost].close()
    shutil.rmtree(tmp_path / str(lost))
    (number,) = (number for number, pair in enumerate(PAIRS) if lost not in pair)
    assert world.summed(number, packets).values == expected(PLACES[:4])


@pytest.mark.slow
def test_a_pair_takes_over_after_another_one_began(tmp_path: Path) -> None:
    """A and B checked every packet; then B is lost. Every process begins anew in between."""
    world = spared(tmp_path)
    packets = world.packets()
    world.accepted(AB, packets)
    for number in range(3):
        world.restart(number)
    body = world.accepted(AC, packets)
    world.restart(0)
    assert world.finished(AC, body).values == expected(PLACES[:4])


def refuses_all(world: Spared, teller: int, number: int, packets: list[Packet], body: bytes) -> None:
    """Nothing of this round leaves the teller in this pair."""
    quorum = world.quorums[number]
    one, occasion = world.tellers[teller], world.at(number)
    place = quorum.first + quorum.members.index(teller)
    fresh = world.packet(world.members[0], PLACES[0]).relayed(place).to_bytes()
    with pytest.raises(Conflict, match="the list of this round is closed"):
        one.admit(occasion, [fresh])
    for held in (body, world.list_of(number, frozenset(packet.tag for packet in packets[:3]))):
        with pytest.raises(Conflict, match="a second list for one round"):
            one.sign_list(occasion, held)
    with pytest.raises(Conflict, match="another pair"):
        one.add_noise(occasion, [])


@pytest.mark.slow
def test_who_signed_in_one_pair_signs_in_no_other_one(tmp_path: Path) -> None:
    """Before its noise, after it, and after a restart."""
    world = spared(tmp_path)
    packets = world.packets()
    first, others = world.accepted(AB, packets), {number: world.accepted(number, packets) for number in (AC, BC)}
    world.tellers[0].sign_list(world.at(AB), first)
    refuses_all(world, 0, AC, packets, others[AC])
    world.restart(0)
    refuses_all(world, 0, AC, packets, others[AC])
    assert world.finished(AB, first).values == expected(PLACES[:4])
    for teller, number in ((0, AC), (1, BC)):
        refuses_all(world, teller, number, packets, others[number])
    with pytest.raises(Conflict, match="another pair"):
        world.tellers[0].add_noise(world.at(AC), [world.tellers[2].sign_list(world.at(AC), others[AC])])


def granted(teller: Teller, asked: Iterable[tuple[int, bytes]], world: Spared) -> frozenset[tuple[int, bytes]]:
    """Pairs and lists that a teller signs, of all that it is asked to in this order."""
    signed = []
    for number, body in asked:
        try:
            teller.sign_list(world.at(number), body)
        except Conflict:
            continue
        signed.append((number, body))
    return frozenset(signed)


@pytest.mark.slow
def test_one_dishonest_teller_completes_two_sums_at_most(tmp_path: Path) -> None:
    """Exhaustive: every dishonest teller or none, every pair, two lists of each, in every order to each honest teller.

    A dishonest teller signs all. A sum needs both of a pair. Each honest teller's answers are those of a real one.
    """
    world = spared(tmp_path)
    packets = world.packets()
    tags = frozenset(packet.tag for packet in packets)
    for number in (AB, AC, BC):
        world.accepted(number, packets)
    lists = {
        number: (world.list_of(number, tags), world.list_of(number, tags - {max(tags)})) for number in (AB, AC, BC)
    }
    answers = []
    for teller in range(3):
        journal = world.journals[teller]
        asked = [(number, body) for number, pair in enumerate(PAIRS) if teller in pair for body in lists[number]]
        seen = set()
        for order in permutations(asked):
            seen.add(granted(world.tellers[teller], order, world))
            journal._connection.execute("DELETE FROM ends")
        assert all(len(one) == 1 for one in seen) and len(seen) == 4
        answers.append(seen)
    most = dict[int | None, int]()
    for dishonest in (None, 0, 1, 2):
        honest = [sorted(answers[teller]) if teller != dishonest else [None] for teller in range(3)]
        for signed in product(*honest):
            complete = [
                (number, body)
                for number, pair in enumerate(PAIRS)
                for body in lists[number]
                if all(signed[one] is None or (number, body) in (signed[one] or ()) for one in pair)
            ]
            most[dishonest] = max(most.get(dishonest, 0), len(complete))
            partners = [{one for one in PAIRS[number] if one != dishonest} for number, _ in complete]
            assert sum(map(len, partners)) == len(set().union(*partners)), "an honest teller's noise is in one sum"
    assert most == {None: 1, 0: MOST_SUMS_WITH_SPARE, 1: MOST_SUMS_WITH_SPARE, 2: MOST_SUMS_WITH_SPARE}


@pytest.mark.slow
def test_a_teller_with_a_second_home_gets_two_sums_and_each_has_an_honest_noise(tmp_path: Path) -> None:
    """A's copies complete AB with B, and AC with C: as much as the charge counts. B and C do not make a third one."""
    variance = Fraction(10**8)
    world = spared(tmp_path, sigma_squared=variance)
    packets = world.packets()
    bodies = [world.accepted(number, packets) for number in (AB, AC, BC)]
    copies = [world.copy(0), world.copy(0)]
    found = [
        world.finished(number, bodies[number], [copies[number], world.tellers[1 + number]]).values
        for number in (AB, AC)
    ]
    noises = [[one - exact for one, exact in zip(values, expected(PLACES[:4]), strict=True)] for values in found]
    assert all(0 < abs(entry) < 2 * 10**5 for noise in noises for entry in noise) and noises[0] != noises[1]
    for teller in (1, 2):
        refuses_all(world, teller, BC, packets, bodies[BC])


@pytest.mark.slow
def test_a_share_of_one_pair_is_no_share_of_another(tmp_path: Path) -> None:
    """A member who sends the shares in other places is refused, and so is a relay that shows them there."""
    world = spared(tmp_path)
    honest = world.packets()[1:]

    def swap(packet: Packet) -> Packet:
        ab, ac, bc = (packet.shares[first : first + 2] for first in (0, 2, 4))
        return evolve(packet, shares=(*ac, *ab, *bc))

    packets = [world.packet(world.members[0], PLACES[0], swap), *honest]
    for number in (AB, AC):
        assert parse_list(world.accepted(number, packets), world.at(number)).tags == tuple(
            sorted(one.tag for one in honest)
        )
    place_of_ac = [one.relayed(world.quorums[AC].first).to_bytes() for one in honest]
    admitted = world.tellers[0].admit(world.at(AB), place_of_ac)
    assert dict(admitted.refused) == {"malformed": len(honest)}


@pytest.mark.slow
def test_a_statement_of_one_pair_is_no_statement_of_another(tmp_path: Path) -> None:
    world = spared(tmp_path)
    packets = world.packets()
    of_ab, of_ac = world.admit(AB, packets), world.admit(AC, packets)
    with pytest.raises((Malformed, RejectedProof)):
        world.tellers[0].settle(world.at(AC), [of_ab[1]])
    tags = world.settle(AC, of_ac)
    with pytest.raises(Malformed):
        world.tellers[0].sign_list(world.at(AC), world.list_of(AB, tags))
    body = world.list_of(AC, tags)
    world.tellers[0].sign_list(world.at(AC), body)
    with pytest.raises(Refused, match="signature of the list is missing"):
        world.tellers[0].add_noise(world.at(AC), [])
    world.tellers[1].settle(world.at(AB), of_ab[:1])
    with pytest.raises((Malformed, RejectedProof)):
        world.tellers[0].add_noise(world.at(AC), [world.tellers[1].sign_list(world.at(AB), world.list_of(AB, tags))])


def test_each_pair_has_a_key_that_the_third_teller_does_not_know(tmp_path: Path) -> None:
    world = spared(tmp_path)
    with pytest.raises(Refused, match="did not countersign"):
        world.tellers[0].key_shares(world.quorums[BC].id)
    keys = [
        world.tellers[one]._study(world.quorums[number].id).verification_key()
        for number, pair in enumerate(PAIRS)
        for one in pair
    ]
    assert keys[0] == keys[1] and keys[2] == keys[3] and keys[4] == keys[5] and len(set(keys)) == 3


def test_the_splits_of_a_vector_are_independent(tmp_path: Path) -> None:
    """Two of the same pair in two packets, and those of all pairs in one, have nothing in common."""
    world = spared(tmp_path)
    opened = []
    for _ in range(2):
        packet = world.packet(world.members[0], PLACES[0])
        for quorum in world.quorums:
            for one, teller in enumerate(quorum.members):
                relayed = packet.relayed(quorum.first + one)
                opened.append(_opened(world, quorum.number, teller, relayed.share, one, packet))
    assert len(set(opened)) == 12 and all(any(share) for share in opened)


def _opened(world: Spared, number: int, teller: int, share: bytes, one: int, packet: Packet) -> bytes:
    opener = world.tellers[teller]._study(world.quorums[number].id).opener
    return opener.open(share, share_info(world.at(number), packet.tag, one))


@pytest.mark.slow
def test_the_noise_of_a_pair_erases_the_shares_of_both(tmp_path: Path) -> None:
    world = spared(tmp_path)
    packets = world.packets()
    bodies = [world.accepted(number, packets) for number in (AB, AC, BC)]
    assert all(len(held_tags(world.journals[0], world.at(number))) == 4 for number in (AB, AC))
    world.finished(AB, bodies[AB])
    assert not any(held_tags(world.journals[one], world.at(number)) for one in (0, 1) for number in (AB, AC, BC))
    assert held_tags(world.journals[2], world.at(AC))
    world.tellers[2].finish(world.quorums[BC].id, 0)
    assert not held_tags(world.journals[2], world.at(AC))
    for number in (AC, BC):
        with pytest.raises(Refused, match="the study is over"):
            world.tellers[2].key_shares(world.quorums[number].id)


def test_one_roster_holds_in_both_pairs(tmp_path: Path) -> None:
    world = spared(tmp_path)
    roll = world.journals[0].roll(world.aggregator.study)
    assert roll is not None and world.journals[0].roll(world.quorums[AB].id) is None
    with pytest.raises(Conflict, match="a second roster"):
        world.journals[0].keep_roll(world.aggregator.study, evolve(roll, members=9))


def test_a_manifest_with_one_of_its_entries_alone_is_not_countersigned(tmp_path: Path) -> None:
    world = spared(tmp_path)
    teller, stranger = (
        world.tellers[0],
        evolve(world.arrangement.second[0], commitment=bytes(32), sealing_key=bytes(1216)),
    )
    first = teller.offer("teller 0", "127.0.0.1:9000")
    arranged = evolve(
        world.arrangement,
        tellers=(first, *world.arrangement.tellers[1:]),
        second=(stranger, *world.arrangement.second[1:]),
    )
    with pytest.raises(Refused, match="none of the study's tellers"):
        teller.countersign(bytes(32), arranged.to_bytes(), MANIFEST)


def test_every_teller_countersigns_the_whole(tmp_path: Path) -> None:
    world = spared(tmp_path)
    said = [
        teller.countersign(world.aggregator.study, world.arrangement.to_bytes(), MANIFEST) for teller in world.tellers
    ]
    check_countersignatures(world.aggregator.study, world.arrangement, said)
    with pytest.raises(RejectedProof):
        check_countersignatures(world.aggregator.study, world.arrangement, [said[1], said[0], said[2]])


@pytest.mark.slow
def test_the_status_tells_the_pairs_apart(tmp_path: Path) -> None:
    world = spared(tmp_path)
    for journal in world.journals:
        journal._connection.execute("UPDATE studies SET manifest = ?", (world.aggregator.manifest.to_bytes(),))
    packets = world.packets()
    world.accepted(AC, packets)
    world.summed(AB, packets)
    shown = {one.fellow: one for one in overview(tmp_path / "0" / DATABASE)}
    assert {name: one.sums[0].stage for name, one in shown.items()} == {"teller 1": "done", "teller 2": "waiting"}
    assert {one.study for one in shown.values()} == {world.aggregator.study} and shown["teller 1"].members == 4
    assert shown["teller 1"].figures(0)["with"] == "teller 1"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda one: evolve(one, second=one.second[:2]),
        lambda one: evolve(one, second=one.second[::-1]),
        lambda one: evolve(one, second=one.tellers),
        lambda one: evolve(
            one, second=(evolve(one.second[0], sealing_key=one.tellers[1].sealing_key), *one.second[1:])
        ),
        lambda one: evolve(one, second=(evolve(one.second[0], key=bytes(32)), *one.second[1:])),
    ],
)
def test_an_arrangement_with_other_second_entries_is_refused(tmp_path: Path, spoil: object) -> None:
    world = spared(tmp_path)
    assert callable(spoil) and parse_arrangement(world.arrangement.to_bytes()) == world.arrangement
    with pytest.raises(Malformed):
        spoil(world.arrangement)


def test_shares_belong_to_a_pair_and_never_to_the_whole(tmp_path: Path) -> None:
    world = spared(tmp_path)
    with pytest.raises(ValueError, match="belong to a pair"):
        world.arrangement.context(world.occasion)
    with pytest.raises(Malformed, match="another id"):
        parse_quorum(world.quorums[AC].id, world.quorums[AB].to_bytes())
