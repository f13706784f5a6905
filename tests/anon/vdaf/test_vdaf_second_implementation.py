"""`blocks` and `ball` against predicates on plain numbers and against a proof over schoolbook polynomials."""

from __future__ import annotations

from itertools import product

import pytest

from anon.crypto.turboshake import turboshake128
from anon.errors import InvalidValue
from anon.vdaf.circuits import BALL, Ball, Blocks, ball, bit_weights, blocks, encode_bounded, shortest_chunk
from anon.vdaf.field import FIELD128, Field
from anon.vdaf.flp import ProofSystem, power_of_two
from anon.vdaf.prio3 import Prio3
from anon.vdaf.xof import expand
from tests.anon.vdaf import naive
from tests.anon.vdaf.official import instance_of
from tests.anon.vdaf.parties import report_of, summed, verified

ONE = pow(3, -1, naive.P)
BLOCKS = Blocks((2, 3, 1), 4)
SMALL_BALL = Ball(3, 4, 9, 5)


def numbers(name: bytes, count: int) -> list[int]:
    return expand(FIELD128, b"seed" * 8, name, b"", count)


def accepted(circuit: Blocks | Ball, encoded: list[int]) -> bool:
    """The verdict on a whole vector whose sender proves it as well as can be."""
    proof = ProofSystem(circuit)
    encoded = [element % circuit.field.modulus for element in encoded]
    joint, seeds = numbers(b"joint", circuit.randomness), numbers(b"seeds", circuit.gadget.arity)
    made = proof.prove(encoded, seeds, joint)
    return proof.decide(proof.query(encoded, made, numbers(b"query", proof.query_randomness), joint, 1))


@pytest.mark.parametrize("lengths", [(3,), (2, 2), (1, 2)])
def test_blocks_accepts_what_is_one_hot(lengths: tuple[int, ...]) -> None:
    """Every vector of entries from -1 to 2."""
    vectors = list(product((-1, 0, 1, 2), repeat=sum(lengths)))
    verdicts = [accepted(Blocks(lengths, 2), list(vector)) for vector in vectors]
    assert verdicts == [naive.one_hot(list(vector), lengths) for vector in vectors]
    assert sum(verdicts) == {(3,): 3, (2, 2): 4, (1, 2): 2}[lengths]


def test_ball_accepts_what_lies_within() -> None:
    """Every vector of bits: two entries of two bits, and a claim from 0 to 4 in three."""
    vectors = list(product((0, 1), repeat=2 * 2 + 3))
    verdicts = [accepted(Ball(2, 2, 2, 3), list(vector)) for vector in vectors]
    assert verdicts == [naive.within_ball(list(vector), 2, 2, 2) for vector in vectors]
    entries = {tuple(vector[:4]) for vector, verdict in zip(vectors, verdicts, strict=True) if verdict}
    assert len(entries) == sum(x * x + y * y <= 4 for x in range(-2, 2) for y in range(-2, 2))


@pytest.mark.parametrize("place", range(7))
@pytest.mark.parametrize("other", [-1, 2, 3])
def test_ball_refuses_all_but_bits(place: int, other: int) -> None:
    encoded = Ball(2, 2, 2, 3).encode([1, -1])
    assert accepted(Ball(2, 2, 2, 3), encoded)
    encoded[place] = other
    assert not accepted(Ball(2, 2, 2, 3), encoded)


def test_the_proof_is_that_of_schoolbook_polynomials() -> None:
    """Proof and share of the verifier, number by number."""
    encoded = numbers(b"encoded", BLOCKS.length)
    joint, seeds, proof = (
        numbers(b"joint", BLOCKS.calls),
        numbers(b"seeds", 8),
        numbers(b"proof", ProofSystem(BLOCKS).length),
    )
    assert ProofSystem(BLOCKS).prove(encoded, seeds, joint) == naive.prove(seeds, naive.bit_calls(encoded, joint, 4, 1))
    *factors, point = numbers(b"query", ProofSystem(BLOCKS).query_randomness)
    results, ends = naive.query(proof, naive.bit_calls(encoded, joint, 4, ONE), point)
    sums = [sum(results), sum(encoded[:2]) - ONE, sum(encoded[2:5]) - ONE, encoded[5] - ONE]
    first = sum(r * x for r, x in zip(factors, sums, strict=True)) % naive.P
    assert ProofSystem(BLOCKS).query(encoded, proof, [*factors, point], joint, ONE) == [first, *ends]


def test_the_proof_of_a_ball_is_that_of_schoolbook_polynomials() -> None:
    circuit, claimed = SMALL_BALL, [1, 2, 4, 8, 16, 32, 18]
    encoded = numbers(b"encoded", 12 + 7)
    entries = [(a + 2 * b + 4 * c - 8 * d) % naive.P for a, b, c, d in zip(*[iter(encoded[:12])] * 4, strict=True)]
    joint, seeds, proof = numbers(b"joint", 4), numbers(b"seeds", 10), numbers(b"proof", ProofSystem(circuit).length)
    calls = naive.bit_calls(encoded, joint, 5, 1) + naive.square_calls(entries, 5)
    assert ProofSystem(circuit).prove(encoded, seeds, joint) == naive.prove(seeds, calls)
    *factors, point = numbers(b"query", 3)
    results, ends = naive.query(proof, naive.bit_calls(encoded, joint, 5, ONE) + naive.square_calls(entries, 5), point)
    claim = sum(weight * bit for weight, bit in zip(claimed, encoded[12:], strict=True))
    first = (factors[0] * sum(results[:4]) + factors[1] * (results[4] - claim)) % naive.P
    assert ProofSystem(circuit).query(encoded, proof, [*factors, point], joint, ONE) == [first, *ends]


@pytest.mark.parametrize("shares", [2, 3, 4])
def test_sums_are_those_of_the_measurements(shares: int) -> None:
    """Also negative ones, and also where some share is added that makes a count negative."""
    prio3 = Prio3(ball(3, 4, 9), shares, BALL)
    reports = [
        report_of(prio3, entries, number) for number, entries in enumerate(([-8, 3, 0], [7, -5, 2], [-8, 1, -1]))
    ]
    outputs = [verified(prio3, report) for report in reports]
    assert prio3.unshard([prio3.aggregate(own) for own in zip(*outputs, strict=True)]) == [-9, -1, 1]


def test_a_single_block_is_the_drafts_histogram() -> None:
    """The instance that the vectors of Prio3Histogram run with is `Blocks`, unchanged."""
    prio3, case = instance_of("Prio3Histogram_1")
    assert type(prio3.circuit) is Blocks and prio3.circuit == Blocks((11,), 3) and prio3.shares == 3
    report = case["reports"][0]
    made = prio3.shard(
        bytes.fromhex(case["ctx"]),
        [report["measurement"]],
        bytes.fromhex(report["nonce"]),
        bytes.fromhex(report["rand"]),
    )
    assert [share.hex() for share in made.input_shares] == report["input_shares"]


def test_blocks_side_by_side() -> None:
    prio3 = Prio3(blocks([2, 4, 3]), 2, 1)
    assert summed(prio3, verified(prio3, report_of(prio3, [1, 0, 2]))) == [0, 1, 1, 0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize(("circuit", "measurement"), [
    (Blocks((2, 3), 2), [1]),
    (Blocks((2, 3), 2), [1, 3]),
    (Blocks((2, 3), 2), [-1, 0]),
    (Ball(3, 4, 9, 2), [1, 2]),
    (Ball(3, 4, 9, 2), [8, 0, 0]),
    (Ball(3, 4, 9, 2), [-9, 0, 0]),
    (Ball(3, 4, 9, 2), [7, 7, 0]),
])
def test_no_share_is_made_of_what_the_circuit_refuses(circuit: Blocks | Ball, measurement: list[int]) -> None:
    with pytest.raises(InvalidValue):
        circuit.encode(measurement)


@pytest.mark.parametrize("make", [
    lambda: Blocks((), 1), lambda: Blocks((2, 0), 1), lambda: Blocks((2,), 0),
    lambda: Ball(0, 4, 9, 1), lambda: Ball(3, 0, 9, 1), lambda: Ball(3, 4, 0, 1), lambda: Ball(3, 4, 9, 0),
    lambda: Ball(1, 65, 9, 1), lambda: Ball(4, 64, 9, 1), lambda: Ball(1, 4, 1 << 64, 1),
    lambda: Prio3(BLOCKS, 1, 1), lambda: Prio3(BLOCKS, 5, 1), lambda: Prio3(BLOCKS, 2, 1, 0),
    lambda: Prio3(BLOCKS, 2, 1, 256),
])  # fmt: skip
def test_instances_out_of_range_do_not_exist(make: object) -> None:
    with pytest.raises(ValueError):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("most", [*range(1, 40), 255, 256])
def test_bounded_integers_have_a_spelling_and_larger_ones_none(most: int) -> None:
    weights = bit_weights(most)
    spelled = {
        sum(weight for weight, bit in zip(weights, bits, strict=True) if bit)
        for bits in product((0, 1), repeat=len(weights))
    }
    assert spelled == set(range(most + 1))
    for value in range(most + 1):
        assert sum(weight * bit for weight, bit in zip(weights, encode_bounded(value, most), strict=True)) == value


def test_the_chunk_makes_the_shortest_proof() -> None:
    for lengths in ((1,), (600,), (37, 5), (4020, 500)):
        sizes = {
            chunk: chunk + power_of_two(1 + sum(-(-length // chunk) for length in lengths))
            for chunk in range(1, sum(lengths) + 1)
        }
        assert sizes[shortest_chunk(*lengths)] == min(sizes.values())


def test_elements_at_or_above_the_modulus_are_drawn_again() -> None:
    """A field of 17 elements: of the five low bits of each byte the first 40 that are below 17."""
    small = Field(17, 1, 3, 4)
    stream = turboshake128(b"\x03\x00sep\x20" + b"s" * 32 + b"bind", 1)(400)
    assert expand(small, b"s" * 32, b"sep", b"bind", 150) == [byte & 31 for byte in stream if byte & 31 < 17][:150]
