"""Whole rounds of tellers in memory: the published sum is the exact one and the tellers' noise, and nothing is kept."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest
from attrs import evolve
from scipy.stats import chi2

from anon.errors import Refused
from anon.sharing.arrangement import Sum
from anon.sharing.combine import combine
from anon.sharing.statements import check_countersignatures
from anon.vdaf.circuits import ball
from anon.wire.packets import Packet
from tests.support.fake_aggregator import PAPER
from tests.support.tellers import (
    MANIFEST,
    PLACES,
    SILENT,
    World,
    a_sum,
    expected,
    held_tags,
    make_world,
    ready_world,
)


@pytest.mark.parametrize("tellers", [2, 3, 4])
def test_the_sum_is_exact_where_the_noise_is_silent(tmp_path: Path, tellers: int) -> None:
    world = ready_world(tmp_path, tellers=tellers)
    assert world.summed(world.packets()).values == expected(PLACES[:4])


def test_a_peer_that_is_offline_is_left_out(tmp_path: Path) -> None:
    world = ready_world(tmp_path)
    assert world.summed(world.packets()[1:]).values == expected(PLACES[1:4])


def test_vectors_with_signs_and_a_bounded_length(tmp_path: Path) -> None:
    circuit = ball(3, 4, 7)
    world = ready_world(tmp_path, sums=[Sum(0, 0, "ball", circuit.parameters, SILENT)])
    summed = world.summed(world.packets([[-7, 0, 0], [1, -2, 3], [0, 0, 0], [4, 4, -4]]))
    assert summed.values == (-2, 2, -1)


@pytest.mark.slow
def test_rounds_are_summed_apart(tmp_path: Path) -> None:
    world = ready_world(tmp_path, sums=[a_sum(0, 0), a_sum(0, 1), a_sum(1, 0)], text=PAPER)
    for number in range(3):
        places = PLACES[number : number + 4] if number < 2 else PLACES[:4]
        assert world.summed(world.packets(places, number), number).values == expected(places)


def test_more_sums_than_tokens_are_not_served(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="2 sums, but tokens for 1"):
        ready_world(tmp_path, sums=[a_sum(0, 0), a_sum(1, 0)])


@pytest.mark.slow
def test_every_teller_adds_all_of_its_noise(tmp_path: Path) -> None:
    """The variance of the published noise is that of both. Chi-squared, both tails at 1e-4: 2 in 10,000 fail
    falsely."""
    variance, entries = 400, []
    for number in range(12):
        world = ready_world(tmp_path / str(number), members=3, sums=[a_sum(sigma_squared=Fraction(variance))])
        summed = world.summed(world.packets(PLACES[:3])).values
        entries += [value - exact for value, exact in zip(summed, expected(PLACES[:3]), strict=True)]
    statistic = sum(entry * entry for entry in entries) / (2 * variance)
    assert chi2.ppf(1e-4, len(entries)) < statistic < chi2.isf(1e-4, len(entries))


def files_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def kept_shares(world: World) -> list[bytes]:
    """The first bytes of every share of a vector, and of every state, in the journals."""
    found = [
        share
        for journal in world.journals
        for share in journal.shares(world.occasion(), held_tags(journal, world.occasion()))
    ]
    return [part[:24] for share in found for part in (share.output, share.seed) if part is not None]


def test_no_file_keeps_a_share_once_the_noise_is_in(tmp_path: Path) -> None:
    world = ready_world(tmp_path)
    body = world.list_of(world.settle(world.admit(world.packets())))
    shares, before = kept_shares(world), files_of(tmp_path)
    assert len(shares) == 16 and all(share in before for share in shares)
    world.noisy(world.signatures(body))
    after = files_of(tmp_path)
    assert not any(share in after for share in shares)


@pytest.mark.slow
def test_a_refused_share_is_erased_when_it_is_refused(tmp_path: Path) -> None:
    world = ready_world(tmp_path)
    statements = world.admit(world.packets())
    shares = kept_shares(world)
    swapped = world.tellers[1].admit(world.occasion(), []).statement
    assert world.settle([statements[0], swapped]) == frozenset()
    assert any(share in files_of(tmp_path) for share in shares)
    other = ready_world(tmp_path / "other", another=1)
    packets = other.packets()
    packets[0] = other.members[0].packet(other.arrangement, other.occasion(), PLACES[0], spoiled)
    statements = other.admit(packets)
    state = next(other.journals[1].shares(other.occasion(), [packets[0].tag]))
    assert packets[0].tag not in other.settle(statements)
    assert state.output is not None and state.output[:24] not in files_of(tmp_path / "other" / "1")


def spoiled(packet: Packet) -> Packet:
    """A public share that is not the shares'."""
    return evolve(packet, report=bytes(len(packet.report)))


def test_secrets_are_erased_at_the_end(tmp_path: Path) -> None:
    world = ready_world(tmp_path)
    world.summed(world.packets())
    offers = [
        journal.offer(entry.to_bytes())
        for journal, entry in zip(world.journals, world.arrangement.tellers, strict=True)
    ]
    before = files_of(tmp_path)
    for teller in world.tellers:
        teller.finish(world.study, 0)
    after = files_of(tmp_path)
    for offer in offers:
        assert offer is not None and offer.sealing in before and offer.part in before
        assert offer.sealing not in after and offer.part not in after
    with pytest.raises(Refused, match="over"):
        world.admit(world.packets())


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    world = ready_world(tmp_path)
    world.admit(world.packets())
    assert [path.name for path in tmp_path.rglob("*") if path.stat().st_mode & 0o077] == []


def test_everybody_can_add_up_and_check_who_serves(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    statements = [teller.countersign(world.study, world.arrangement.to_bytes(), MANIFEST) for teller in world.tellers]
    check_countersignatures(world.study, world.arrangement, statements)
    world.join_up()
    body = world.list_of(world.settle(world.admit(world.packets())))
    signatures = world.signatures(body)
    shares = world.noisy(signatures)
    assert combine(world.arrangement, world.occasion(), body, signatures, shares).values == expected(PLACES[:4])
    assert len({teller.words for teller in world.tellers}) == 2
    assert world.tellers[0].words.count("-") == 11


def test_every_step_gives_the_same_bytes_again(tmp_path: Path) -> None:
    """Also after a restart. Sealed parts of the key are the exception: their content is the same."""
    world = ready_world(tmp_path, sums=[a_sum(sigma_squared=Fraction(400))])
    packets = world.packets()
    once = world.admit(packets)
    assert world.admit(packets) == once
    assert world.admit(packets[::-1]) == once
    body = world.list_of(world.settle(once))
    assert world.list_of(world.settle(once)) == body
    world.join_up()
    signed = world.signatures(body)
    for number in (0, 1):
        world.restart(number)
    assert world.signatures(body) == signed
    noisy = world.noisy(signed)
    assert world.noisy(signed) == noisy
    world.restart(0)
    assert world.noisy(signed) == noisy


def test_batches_may_come_in_parts(tmp_path: Path) -> None:
    world = ready_world(tmp_path)
    packets = world.packets()
    first = world.settle(world.admit(packets[:1]))
    accepted = first | world.settle(world.admit(packets[1:]))
    assert accepted == world.tellers[0].accepted(world.occasion()) == world.tellers[1].accepted(world.occasion())
    assert accepted == {packet.tag for packet in packets}
    signatures = world.signatures(body := world.list_of(accepted))
    shares = world.noisy(signatures)
    assert combine(world.arrangement, world.occasion(), body, signatures, shares).values == expected(PLACES[:4])


def test_randomness_is_asked_of_the_system(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    assert world.tellers[0]._random_bytes is os.urandom
