"""Lying senders, lying parties and damaged bytes: each is refused, in words that say nothing of the values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from anon.errors import InvalidValue, Malformed, RejectedProof
from anon.vdaf.binding import sharing_context, sharing_nonce
from anon.vdaf.circuits import BALL, BLOCKS, Ball, Blocks
from anon.vdaf.field import FIELD128
from anon.vdaf.prio3 import Prio3, Sharing
from tests.anon.vdaf.official import Count
from tests.anon.vdaf.parties import KEY, NONCE, STUDY, TAG, chance, context_of, lying, report_of, summed, verified
from tests.support.tries import every

REFUSALS = (Malformed, RejectedProof)
TWO = Prio3(Blocks((2, 3), 2), 2, BLOCKS)
THREE = Prio3(Blocks((2, 3), 2), 3, BLOCKS)
SPHERE = Prio3(Ball(2, 3, 4, 3), 2, BALL)
CASES = {
    "two": (TWO, [1, 2]),
    "three": (THREE, [0, 1]),
    "two proofs": (Prio3(Blocks((2,), 1), 2, BLOCKS, 2), [0]),
    "ball": (SPHERE, [-3, 2]),
}
UNSEEN = "the proof was not accepted"


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def exchanged(report: Sharing, party: int, share: bytes) -> Sharing:
    shares = list(report.input_shares)
    shares[party] = share
    return replace(report, input_shares=tuple(shares))


def refused(prio3: Prio3, report: Sharing, **changed: Any) -> None:
    with pytest.raises(REFUSALS):
        verified(prio3, report, **changed)


@pytest.mark.parametrize("name", CASES)
def test_the_report_itself_is_accepted(name: str) -> None:
    prio3, measurement = CASES[name]
    assert summed(prio3, verified(prio3, report_of(prio3, measurement))) == [
        element - prio3.circuit.field.modulus if element > 2**64 else element
        for element in prio3.circuit.truncate(prio3.circuit.encode(measurement))
    ]


@pytest.mark.parametrize("name", every(2, CASES))
def test_a_flipped_bit_in_any_share(name: str) -> None:
    """One bit in each byte of vector, proof, seeds and blinds, of every party."""
    prio3, measurement = CASES[name]
    report = report_of(prio3, measurement)
    for party, share in enumerate(report.input_shares):
        for byte in range(0, len(share), 5 if party == 0 else 1):
            refused(prio3, exchanged(report, party, flipped(share, 8 * byte + byte % 8)))


@pytest.mark.parametrize("name", every(2, CASES))
def test_a_flipped_bit_in_the_public_share(name: str) -> None:
    prio3, measurement = CASES[name]
    report = report_of(prio3, measurement)
    for byte in range(len(report.public_share)):
        refused(prio3, replace(report, public_share=flipped(report.public_share, 8 * byte + byte % 8)))


@pytest.mark.parametrize("name", CASES)
def test_a_flipped_bit_in_a_verifier_share_or_the_message(name: str) -> None:
    prio3, measurement = CASES[name]
    report, context = report_of(prio3, measurement), context_of(CASES[name][0])
    begun = [
        prio3.verify_init(KEY, context, party, NONCE, report.public_share, share)
        for party, share in enumerate(report.input_shares)
    ]
    shares = [share for _, share in begun]
    message = prio3.verifier_shares_to_message(context, shares)
    for party, share in enumerate(shares):
        for byte in range(len(share)):
            with pytest.raises(REFUSALS):
                changed = [*shares[:party], flipped(share, 8 * byte + byte % 8), *shares[party + 1 :]]
                prio3.verify_next(begun[0][0], prio3.verifier_shares_to_message(context, changed))
    for byte in range(len(message)):
        for state, _ in begun:
            with pytest.raises(RejectedProof):
                prio3.verify_next(state, flipped(message, 8 * byte))


@pytest.mark.parametrize("vector", [
    [2, -1, 1, 0, 0], [-1, 2, 0, 1, 0], [FIELD128.inverse(2)] * 2 + [0, 0, 1], [0, 1, 5, -5, 1],
    [1, 1, 1, 0, 0], [0, 1, 1, 0, 1], [0, 1, 1, 1, 1],
    [0, 0, 0, 1, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0],
    [1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [1 << 64, 0, 0, 1, 0],
], ids=str)  # fmt: skip
@pytest.mark.parametrize("prio3", [TWO, THREE], ids=["two", "three"])
def test_a_vector_that_is_not_one_hot_in_each_block(prio3: Prio3, vector: list[int]) -> None:
    """Out of range, two ones, none, and a one moved to another block: proved as well as the sender can."""
    refused(prio3, report_of(lying(prio3), vector))
    assert verified(prio3, report_of(lying(prio3), [0, 1, 1, 0, 0]))


def spelled(first: list[int], second: list[int], claimed: list[int]) -> list[int]:
    return [*first, *second, *claimed]


@pytest.mark.parametrize("vector", [
    spelled([1, 1, 0], [0, 1, 1], [1, 1, 1, 0, 0]),
    spelled([1, 1, 0], [1, 1, 0], [1, 1, 1, 1, 1]),
    spelled([1, 1, 0], [1, 1, 0], [0, 1, 0, 0, 2]),
    spelled([1, 1, 0], [1, 1, 0], [18, 0, 0, 0, 0]),
    spelled([0, 0, 1], [0, 0, 1], [0, 0, 0, 0, 2]),
    spelled([3, 0, 0], [0, 1, 0], [1, 0, 1, 1, 0]),
    spelled([-2, 0, 0], [0, 0, 0], [0, 0, 1, 0, 0]),
    spelled([1, 0, 0], [0, 0, 0], [0, 0, 0, 0, 0]),
], ids=str)  # fmt: skip
def test_a_vector_outside_the_ball(vector: list[int]) -> None:
    """A wrong claim, one larger than the bound, entries too long, entries that are no bits; two entries of three
    bits."""
    refused(SPHERE, report_of(lying(SPHERE), vector))
    assert verified(SPHERE, report_of(lying(SPHERE), spelled([1, 1, 0], [0, 1, 1], [1, 0, 1, 1, 0])))


def test_a_vector_made_for_joint_randomness_that_is_known() -> None:
    """A sender learns a report's joint randomness, and moves the vector to where the check of bits is zero for it.

    On the line through a valid vector the check is a quadratic polynomial with one root there, and its other root is
    no vector of bits. Each party computes its part of the joint randomness anew from its own share, and so refuses.
    """
    prio3 = Prio3(Blocks((3,), 3), 2, BLOCKS)
    honest, p = report_of(prio3, [0]), FIELD128.modulus
    parts = [honest.public_share[:32], honest.public_share[32:]]
    (r,) = prio3._common(context_of(prio3), prio3._seed(context_of(prio3), parts))
    a, b, c = 1, 1, -2
    linear, square = r * a - r**2 * b - r**3 * c, r * a * a + r**2 * b * b + r**3 * c * c
    s = -linear * FIELD128.inverse(square % p) % p
    moved = [(1 + s * a) % p, s * b % p, s * c % p]
    assert sum(r ** (i + 1) * x * (x - 1) for i, x in enumerate(moved)) % p == 0 and sum(moved) % p == 1

    class Known(Prio3):
        def _seed(self, context: bytes, parts: Any) -> bytes:
            return super()._seed(context, [honest.public_share[:32], honest.public_share[32:]])

    fixed = Known(lying(prio3).circuit, 2, BLOCKS)
    report = replace(report_of(fixed, moved), public_share=honest.public_share)
    assert verified(Known(prio3.circuit, 2, BLOCKS), report), "the vector itself passes where nobody computes anew"
    refused(prio3, report)


def test_a_share_for_another_party() -> None:
    report = report_of(THREE, [1, 2])
    leader, first, second = report.input_shares
    refused(THREE, replace(report, input_shares=(leader, second, first)))
    refused(THREE, replace(report, input_shares=(leader, first, first)))
    refused(THREE, replace(report, input_shares=(first, leader, second)))


@pytest.mark.parametrize("other", [
    lambda: sharing_context(b"S" * 32, 1, 0, THREE),
    lambda: sharing_context(STUDY, 2, 0, THREE),
    lambda: sharing_context(STUDY, 1, 1, THREE),
    lambda: sharing_context(STUDY, 1, 0, Prio3(Blocks((3, 2), 2), 3, BLOCKS)),
    lambda: sharing_context(STUDY, 1, 0, replace(THREE, shares=2)),
    lambda: sharing_context(STUDY, 1, 0, replace(THREE, algorithm=BALL)),
], ids=["study", "round", "slot", "circuit", "shares", "algorithm"])  # fmt: skip
def test_a_share_for_another_study_round_slot_or_instance(other: Callable[[], bytes]) -> None:
    report, context = report_of(THREE, [1, 2]), context_of(THREE)
    refused(THREE, report, context=[other()] * 3)
    for party in range(3):
        refused(THREE, report, context=[other() if each == party else context for each in range(3)])


def test_a_share_sent_again_under_another_tag() -> None:
    report, other = report_of(THREE, [1, 2]), sharing_nonce(TAG[:-1] + b"u")
    refused(THREE, report, nonce=[other] * 3)
    for party in range(3):
        refused(THREE, report, nonce=[other if each == party else NONCE for each in range(3)])


def test_parties_with_different_keys() -> None:
    for party in range(3):
        refused(THREE, report_of(THREE, [1, 2]), key=[b"x" * 32 if each == party else KEY for each in range(3)])


def test_shares_of_two_reports() -> None:
    one, other = report_of(THREE, [1, 2], 1), report_of(THREE, [1, 2], 2)
    for party in range(3):
        refused(THREE, exchanged(one, party, other.input_shares[party]))
    refused(THREE, replace(one, public_share=other.public_share))


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b + b"\0", lambda b: b"", lambda b: b + b])
def test_no_message_has_another_length(change: Callable[[bytes], bytes]) -> None:
    """Malformed before anything is computed."""
    report, context = report_of(THREE, [1, 2]), context_of(THREE)
    for party, share in enumerate(report.input_shares):
        for public, own in ((change(report.public_share), share), (report.public_share, change(share))):
            with pytest.raises(Malformed):
                THREE.verify_init(KEY, context, party, NONCE, public, own)
    begun = [
        THREE.verify_init(KEY, context, party, NONCE, report.public_share, share)
        for party, share in enumerate(report.input_shares)
    ]
    shares = [share for _, share in begun]
    message = THREE.verifier_shares_to_message(context, shares)
    for wrong in ([change(shares[0]), *shares[1:]], shares[:-1], [*shares, shares[0]], []):
        with pytest.raises(Malformed):
            THREE.verifier_shares_to_message(context, wrong)
    with pytest.raises(Malformed):
        THREE.verify_next(begun[0][0], change(message))
    sums = [THREE.aggregate([THREE.verify_next(state, message)]) for state, _ in begun]
    for wrong in ([change(sums[0]), *sums[1:]], sums[:-1], [*sums, sums[0]], []):
        with pytest.raises(Malformed):
            THREE.unshard(wrong)


def test_no_element_has_a_second_spelling() -> None:
    """Zero written as the modulus: in the leader's vector and proof, a verifier share, a share of the sum."""
    twice = FIELD128.modulus.to_bytes(16, "little")
    report, context = report_of(TWO, [1, 2]), context_of(TWO)
    leader = report.input_shares[0]
    for at in range(0, len(leader) - 32, 16):
        with pytest.raises(Malformed):
            TWO.verify_init(KEY, context, 0, NONCE, report.public_share, leader[:at] + twice + leader[at + 16 :])
    begun = [
        TWO.verify_init(KEY, context, party, NONCE, report.public_share, share)
        for party, share in enumerate(report.input_shares)
    ]
    with pytest.raises(Malformed):
        TWO.verifier_shares_to_message(context, [begun[0][1], twice + begun[1][1][16:]])
    with pytest.raises(Malformed):
        TWO.unshard([twice * 5, bytes(80)])


def test_errors_say_nothing_of_the_values() -> None:
    """One sentence for every invalid vector; sizes and bounds, but no entry, in the others."""
    for vector in ([123456, 0, 0, 1, 0], [1, 1, 1, 0, 0]):
        with pytest.raises(RejectedProof) as rejected:
            verified(TWO, report_of(lying(TWO), vector))
        assert str(rejected.value) == UNSEEN and rejected.value.__context__ is None
    for prio3, measurement in (
        (TWO, [0, 123456]),
        (SPHERE, [123456, 0]),
        (Prio3(Ball(2, 20, 4, 3), 2, BALL), [123456, 0]),
    ):
        with pytest.raises(InvalidValue) as invalid:
            report_of(prio3, measurement)
        assert "123456" not in str(invalid.value)
    report = report_of(TWO, [1, 2])
    state, _ = TWO.verify_init(KEY, context_of(TWO), 1, NONCE, report.public_share, report.input_shares[1])
    assert str(state.output_share[0]) not in repr(state) and repr(report.input_shares[1])[2:-1] not in repr(report)


@pytest.mark.parametrize("prio3", [TWO, THREE, SPHERE, Prio3(Count(), 2, 1)])
def test_randomness_and_nonce_are_of_exactly_one_size(prio3: Prio3) -> None:
    size, measurement = prio3.randomness_size, [1, 0][: 1 if prio3.circuit.randomness == 0 else 2]
    assert size == prio3.shares * 32 * (2 if prio3.circuit.randomness else 1)
    assert prio3.shard(b"", measurement, NONCE, chance(size))
    sizes = [(NONCE, size + more) for more in (-64, -32, -1, 1, 32, 64)]
    for nonce, wrong in (*sizes, (NONCE[:-1], size), (NONCE + b"\0", size)):
        with pytest.raises(ValueError, match="expected"):
            prio3.shard(b"", measurement, nonce, chance(wrong))


def test_our_own_mistakes_are_no_verdicts() -> None:
    """A wrong party, key, nonce or context is the caller's fault, not the sender's."""
    report, context = report_of(TWO, [1, 2]), context_of(TWO)
    for key, party, nonce in ((KEY[:-1], 0, NONCE), (KEY, 2, NONCE), (KEY, -1, NONCE), (KEY, 0, NONCE[:-1])):
        with pytest.raises(ValueError, match="expected") as fault:
            TWO.verify_init(key, context, party, nonce, report.public_share, report.input_shares[0])
        assert not isinstance(fault.value, Malformed)
    with pytest.raises(ValueError, match="context"):
        TWO.shard(bytes(65536 - 8), [1, 2], NONCE, chance(TWO.randomness_size))
    with pytest.raises(ValueError, match="id"):
        sharing_context(STUDY[:-1], 1, 0, TWO)


def test_randomness_that_differs_in_one_bit_makes_other_shares() -> None:
    """Every seed is used: the helper's share, each blind and the prover's seed."""
    rand = chance(TWO.randomness_size)
    made = {
        TWO.shard(b"", [1, 2], NONCE, changed).input_shares
        for changed in (rand, *(flipped(rand, 8 * at) for at in range(0, len(rand), 32)))
    }
    assert len(made) == 5
