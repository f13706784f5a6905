"""Wires at a point without the wires, and sums of encoded vectors: the same numbers as written out."""

from __future__ import annotations

from operator import mul

import pytest

from anon.errors import Malformed
from anon.vdaf.circuits import Ball, Blocks, ball, blocks
from anon.vdaf.field import FIELD64, FIELD128, Field, Vector
from anon.vdaf.prio3 import Prio3
from anon.vdaf.xof import expand
from benchmarks.life_members import ProofSystem, prove_few


def drawn(name: str, count: int) -> Vector:
    return expand(FIELD128, name.encode().ljust(32), b"tests", b"", count)


@pytest.mark.parametrize(
    "circuit", [blocks([3]), blocks([4, 2, 6] * 3), Blocks((5, 5), 3), ball(1, 2, 2), ball(5, 6, 40), Ball(3, 4, 7, 5)]
)
def test_weighed_inputs_are_those_of_all_calls(circuit: Blocks | Ball) -> None:
    encoded, randomness = drawn("vector", circuit.length), drawn("joint", circuit.randomness)
    weights, (one,) = drawn("weights", circuit.calls), drawn("one", 1)
    wires = zip(*circuit.inputs(encoded, randomness, one), strict=True)
    expected = [sum(map(mul, weights, wire)) % circuit.field.modulus for wire in wires]
    assert circuit.weighed(encoded, randomness, one, weights) == expected
    assert len(expected) == circuit.gadget.arity


@pytest.mark.parametrize("field", [FIELD64, FIELD128, Field(17, 1, 3, 4)])
@pytest.mark.parametrize("length", [1, 2, 5])
def test_encoded_vectors_add_up(field: Field, length: int) -> None:
    largest = [field.modulus - 1] * length
    vectors = [largest, largest, [*range(length)], largest]
    total = [0] * length
    for vector in vectors:
        total = field.add(total, vector)
    assert field.total(map(field.encode, vectors), length, "share") == total
    assert field.total([], length, "share") == [0] * length
    # A carry of an element that is not below the modulus stays with it.
    assert field.total([b"\xff" * (length * field.size)] * 3, length, "share") == [
        3 * (256**field.size - 1) % field.modulus
    ] * length


def test_a_share_of_another_length_adds_to_nothing() -> None:
    with pytest.raises(Malformed, match="expected 32 bytes, got 31"):
        FIELD128.total([bytes(31)], 2, "share")


@pytest.mark.parametrize(("lengths", "places"), [([3], [1]), ([4, 2, 6] * 3, [1, 0, 5] * 3), ([1], [0])])
def test_the_drivers_proofs_are_those_of_members(
    lengths: list[int], places: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    prio3 = Prio3(blocks(lengths), 2, 0xFFFF0001)
    randomness = bytes(range(32)) * (prio3.randomness_size // 32)
    own = prio3.shard(b"study", places, bytes(16), randomness)
    monkeypatch.setattr(ProofSystem, "prove", prove_few)
    assert prio3.shard(b"study", places, bytes(16), randomness) == own
