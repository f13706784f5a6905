"""The draft's other circuits, from the room's own parts, and its vectors (vectors/README.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from pathlib import Path
from typing import Any

from anon.vdaf.circuits import Blocks, bit_inputs, bit_weights, encode_bounded, weigh
from anon.vdaf.field import FIELD64, FIELD128, Field, Vector
from anon.vdaf.flp import Circuit, ParallelSum, PolyEval
from anon.vdaf.prio3 import Prio3

FOLDER = Path(__file__).parent / "vectors"
TESTING = 0xFFFFFFFF


def load(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text())


class WrittenOut:
    """Sums over calls that are written out."""

    def weighed(self: Any, encoded: Vector, randomness: Vector, unit: int, weights: Vector) -> Vector:
        wires = zip(*self.inputs(encoded, randomness, unit), strict=True)
        return [sum(map(mul, weights, wire)) % self.field.modulus for wire in wires]


@dataclass(frozen=True)
class Count(WrittenOut):
    field: Field = FIELD64
    gadget = ParallelSum(1)
    calls = length = output_length = checks = 1
    randomness = 0
    parameters = ()

    def encode(self, measurement: Sequence[int]) -> Vector:
        return list(measurement)

    def inputs(self, encoded: Vector, randomness: Vector, one: int) -> list[Vector]:
        return [encoded * 2]

    def check(self, results: Vector, encoded: Vector, one: int) -> Vector:
        return [(results[0] - encoded[0]) % self.field.modulus]

    def truncate(self, encoded: Vector) -> Vector:
        return encoded


class HigherDegree(Count):
    gadget = PolyEval((0, 2, -3, 1))  # type: ignore[assignment]

    def inputs(self, encoded: Vector, randomness: Vector, one: int) -> list[Vector]:
        return [encoded]

    def check(self, results: Vector, encoded: Vector, one: int) -> Vector:
        return results


@dataclass(frozen=True)
class Sum(WrittenOut):
    most: int
    field: Field = FIELD64
    gadget = PolyEval((0, -1, 1))
    output_length = 1
    randomness = 0
    parameters = ()

    @property
    def calls(self) -> int:
        return self.most.bit_length()

    length = checks = calls

    def encode(self, measurement: Sequence[int]) -> Vector:
        return encode_bounded(measurement[0], self.most)

    def inputs(self, encoded: Vector, randomness: Vector, one: int) -> list[Vector]:
        return [[bit] for bit in encoded]

    def check(self, results: Vector, encoded: Vector, one: int) -> Vector:
        return results

    def truncate(self, encoded: Vector) -> Vector:
        return [weigh(encoded, bit_weights(self.most), self.field)]


@dataclass(frozen=True)
class SumVec(WrittenOut):
    output_length: int
    most: int
    chunk: int
    field: Field = FIELD128
    checks = 1
    parameters = ()

    @property
    def gadget(self) -> ParallelSum:
        return ParallelSum(self.chunk)

    @property
    def length(self) -> int:
        return self.output_length * self.most.bit_length()

    @property
    def calls(self) -> int:
        return -(-self.length // self.chunk)

    randomness = calls

    def encode(self, measurement: Sequence[int]) -> Vector:
        return [bit for value in measurement for bit in encode_bounded(value, self.most)]

    def inputs(self, encoded: Vector, randomness: Vector, one: int) -> list[Vector]:
        return bit_inputs(encoded, randomness, self.chunk, self.field, one)

    def check(self, results: Vector, encoded: Vector, one: int) -> Vector:
        return [sum(results) % self.field.modulus]

    def truncate(self, encoded: Vector) -> Vector:
        bits = self.most.bit_length()
        return [
            weigh(encoded[at : at + bits], bit_weights(self.most), self.field) for at in range(0, self.length, bits)
        ]


@dataclass(frozen=True)
class MultihotCountVec(SumVec):
    """Here `most` bounds the number of ones."""

    checks = 2  # type: ignore[misc]

    @property
    def length(self) -> int:
        return self.output_length + self.most.bit_length()

    def encode(self, measurement: Sequence[int]) -> Vector:
        return [int(bit) for bit in measurement] + encode_bounded(sum(measurement), self.most)

    def check(self, results: Vector, encoded: Vector, one: int) -> Vector:
        weight = sum(self.truncate(encoded)) - weigh(encoded[self.output_length :], bit_weights(self.most), self.field)
        return [sum(results) % self.field.modulus, weight % self.field.modulus]

    def truncate(self, encoded: Vector) -> Vector:
        return encoded[: self.output_length]


def circuit_of(kind: str, case: dict[str, Any]) -> tuple[Circuit, int, int]:
    """The circuit of a vector, its algorithm's number, how many proofs."""
    length, chunk = case.get("length", 0), case.get("chunk_length", 0)
    made: dict[str, tuple[Any, int, int]] = {
        "Count": (lambda: Count(), 1, 1),
        "Sum": (lambda: Sum(case["max_measurement"]), 2, 1),
        "SumVec": (lambda: SumVec(length, case["max_measurement"], chunk), 3, 1),
        "Histogram": (lambda: Blocks((length,), chunk), 4, 1),
        "MultihotCountVec": (lambda: MultihotCountVec(length, case["max_weight"], chunk), 5, 1),
        "SumVecWithMultiproof": (lambda: SumVec(length, case["max_measurement"], chunk, FIELD64), TESTING, 3),
        "HigherDegree": (lambda: HigherDegree(), TESTING, 1),
    }
    make, algorithm, proofs = made[kind]
    return make(), algorithm, proofs


def instance_of(name: str) -> tuple[Prio3, dict[str, Any]]:
    """The instance that a vector's file is about, and the file."""
    case = load(name)
    circuit, algorithm, proofs = circuit_of(name.removeprefix("Prio3").partition("_")[0], case)
    return Prio3(circuit, case["shares"], algorithm, proofs), case
