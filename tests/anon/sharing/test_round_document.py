"""The document of a round of sums: read back, held to every part of it, and bounded before it is there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve, frozen

from anon.errors import Malformed, RejectedProof
from anon.sharing.round_document import (
    RoundSums,
    SlotSum,
    demand_listed,
    longest_round_sums,
    parse_round_sums,
    read_round_sums,
)
from anon.wire.cbor import encode
from tests.support.fake_aggregator import PAPER
from tests.support.tellers import PLACES, World, a_sum, expected, ready_world


@frozen
class Made:
    """A round with two slots, and the tags of its packets."""

    world: World
    document: RoundSums
    tags: dict[int, list[bytes]]

    def parsed(self, document: RoundSums) -> dict[int, tuple[int, ...]]:
        sums = parse_round_sums(self.world.arrangement, self.world.study, 0, document.to_bytes())
        return {slot: one.values for slot, one in sums.items()}

    def with_slot(self, change: Callable[[SlotSum], SlotSum]) -> RoundSums:
        first, *rest = self.document.slots
        return evolve(self.document, slots=(change(first), *rest))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    world = ready_world(tmp_path_factory.mktemp("round"), sums=[a_sum(0, 0), a_sum(0, 1)], text=PAPER)
    slots, tags = [], {}
    for number, places in enumerate((PLACES[:4], PLACES[:3])):
        packets = world.packets(places, number)
        body = world.list_of(world.settle(world.admit(packets, number), number), number)
        signatures = world.signatures(body, number)
        slots.append(SlotSum(number, body, tuple(signatures), tuple(world.noisy(signatures, number))))
        tags[number] = [packet.tag for packet in packets]
    return Made(world, RoundSums(world.study, 0, tuple(slots)), tags)


@pytest.mark.slow
def test_it_is_read_back_and_added_up(made: Made) -> None:
    assert read_round_sums(made.document.to_bytes(), made.world.study, 0) == made.document
    assert made.parsed(made.document) == {0: expected(PLACES[:4]), 1: expected(PLACES[:3])}


def test_its_longest_body_is_known_before(made: Made) -> None:
    """To the byte, where as many were summed."""
    lists = [longest_round_sums(made.world.arrangement, 0, members) for members in (3, 4, 300)]
    assert lists[0] < len(made.document.to_bytes()) < lists[1] < lists[2]
    both = evolve(made.document, slots=(made.document.slots[0], evolve(made.document.slots[0], slot=1)))
    assert len(both.to_bytes()) == lists[1]


@pytest.mark.parametrize("change", [
    lambda one: evolve(one, accepted=one.accepted[:-1]),
    lambda one: evolve(one, signatures=one.signatures[::-1]),
    lambda one: evolve(one, signatures=one.signatures[:1]),
    lambda one: evolve(one, shares=one.shares[::-1]),
    lambda one: evolve(one, shares=(one.shares[0], one.shares[0])),
    lambda one: evolve(one, shares=(one.shares[0], one.shares[1][:-1] + bytes([one.shares[1][-1] ^ 1]))),
])  # fmt: skip
def test_a_forged_part_is_refused(made: Made, change: Callable[[SlotSum], SlotSum]) -> None:
    with pytest.raises((Malformed, RejectedProof)):
        made.parsed(made.with_slot(change))


def test_another_slots_sum_is_refused(made: Made) -> None:
    first, second = made.document.slots
    with pytest.raises((Malformed, RejectedProof)):
        made.parsed(evolve(made.document, slots=(evolve(second, slot=0), evolve(first, slot=1))))


@pytest.mark.parametrize(
    "slots", [lambda both: both[:1], lambda both: both[::-1], lambda both: (), lambda both: (both[0], both[0])]
)
def test_every_slot_is_there_once(made: Made, slots: Callable[[tuple[SlotSum, ...]], tuple[SlotSum, ...]]) -> None:
    with pytest.raises(Malformed, match="slot"):
        made.parsed(evolve(made.document, slots=slots(made.document.slots)))


@pytest.mark.parametrize("body", [b"", encode([]), encode([2, bytes(32), 0, []]), encode(7)])
def test_bytes_of_another_form_are_malformed(made: Made, body: bytes) -> None:
    with pytest.raises(Malformed):
        read_round_sums(body, made.world.study, 0)


def test_rows_of_another_form_are_malformed(made: Made) -> None:
    study = made.world.study
    for row in ([0, b"", []], [0, b"", [], [7]], ["0", b"", [], []], 5):
        with pytest.raises(Malformed):
            read_round_sums(encode([2, study, 0, [row]]), study, 0)
    with pytest.raises(Malformed):
        read_round_sums(made.document.to_bytes(), study, 1)


def test_packets_that_are_left_out_are_counted_and_strangers_refused(made: Made) -> None:
    arrangement, study, body = made.world.arrangement, made.world.study, made.document.to_bytes()
    assert demand_listed(arrangement, study, 0, body, 4, made.tags) == {0: 0, 1: 0}
    more = {0: [*made.tags[0], bytes(48), bytes(47) + b"1"], 1: made.tags[1]}
    assert demand_listed(arrangement, study, 0, body, 4, more) == {0: 2, 1: 0}
    with pytest.raises(Malformed, match="1 packets of slot 0"):
        demand_listed(arrangement, study, 0, body, 4, {0: made.tags[0][1:], 1: made.tags[1]})
    with pytest.raises(Malformed, match="3 packets of slot 1"):
        demand_listed(arrangement, study, 0, body, 4, {0: made.tags[0]})


def test_no_sum_has_more_vectors_than_the_roster_has_members(made: Made) -> None:
    arrangement, study, body = made.world.arrangement, made.world.study, made.document.to_bytes()
    assert demand_listed(arrangement, study, 0, body, 4, None) == {}, "the transcripts are not there yet"
    for tags in (None, made.tags):
        with pytest.raises(Malformed, match="4 vectors in slot 0, of 3 members"):
            demand_listed(arrangement, study, 0, body, 3, tags)
