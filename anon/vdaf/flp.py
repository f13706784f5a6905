"""The fully linear proof that a circuit accepts a vector which every verifier sees only a share of.

draft-irtf-cfrg-vdaf-20, section 7.3: Boneh, Boyle, Corrigan-Gibbs, Gilboa and Ishai 2019, theorem 4.3. Sound up to a
probability of about the circuit's size over the field's; zero knowledge if one share of vector and proof stays unknown.
A circuit calls one gadget, and a call's inputs depend on no other call's result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from typing import Protocol

from anon.errors import RejectedProof
from anon.vdaf.field import Field, Vector


class Gadget(Protocol):
    """A polynomial of several inputs, the only thing in a circuit that is not linear."""

    @property
    def arity(self) -> int:
        """How many inputs it has."""

    @property
    def degree(self) -> int:
        """Its total degree, at least 2."""

    def evaluate(self, field: Field, inputs: Sequence[int]) -> int:
        """Its value."""


class Circuit(Protocol):
    """A predicate on vectors, and how a measurement becomes one and shares of it a share of the sum.

    All but the gadget is affine; `one` is the caller's share of the number one.
    """

    @property
    def field(self) -> Field:
        """All numbers are of this field."""

    @property
    def gadget(self) -> Gadget:
        """It is called `calls` times."""

    @property
    def calls(self) -> int:
        """How often the gadget is called, at least once."""

    @property
    def length(self) -> int:
        """The elements of an encoded measurement."""

    @property
    def randomness(self) -> int:
        """The elements of joint randomness that the predicate takes."""

    @property
    def output_length(self) -> int:
        """The elements of the sum."""

    @property
    def checks(self) -> int:
        """How many results must be zero."""

    @property
    def parameters(self) -> tuple[int, ...]:
        """The integers that tell this circuit from others of its kind."""

    def encode(self, measurement: Sequence[int]) -> Vector:
        """The vector of a measurement. Raises `InvalidValue` if the predicate does not hold."""

    def inputs(self, encoded: Vector, randomness: Vector, one: int) -> list[Vector]:
        """The gadget's inputs for each call."""

    def weighed(self, encoded: Vector, randomness: Vector, unit: int, weights: Vector) -> Vector:
        """For each of the gadget's inputs the sum of its values in all calls, each times the call's weight. `unit`: as
        `one` elsewhere."""

    def check(self, results: Vector, encoded: Vector, one: int) -> Vector:
        """All zero where the predicate holds, from the gadget's result for each call."""

    def truncate(self, encoded: Vector) -> Vector:
        """The part that is summed."""


@dataclass(frozen=True)
class ParallelSum:
    """The sum of the products of `count` pairs of inputs."""

    count: int
    degree = 2

    @property
    def arity(self) -> int:
        """Two inputs for each product."""
        return 2 * self.count

    def evaluate(self, field: Field, inputs: Sequence[int]) -> int:
        """Its value."""
        total: int = sum(map(mul, inputs[::2], inputs[1::2]))
        return total % field.modulus


@dataclass(frozen=True)
class PolyEval:
    """A polynomial of one input, by its coefficients, the constant first and the last one not zero."""

    coefficients: tuple[int, ...]
    arity = 1

    @property
    def degree(self) -> int:
        """Of the polynomial."""
        return len(self.coefficients) - 1

    def evaluate(self, field: Field, inputs: Sequence[int]) -> int:
        """Its value."""
        value = 0
        for coefficient in reversed(self.coefficients):
            value = (value * inputs[0] + coefficient) % field.modulus
        return value


def power_of_two(least: int) -> int:
    """The smallest power of two that is at least `least`."""
    return 1 << (least - 1).bit_length()


@dataclass(frozen=True)
class ProofSystem:
    """The proof system of one circuit. Lengths count field elements."""

    circuit: Circuit

    @property
    def points(self) -> int:
        """The values that fix a wire: its seed, one for each call, and zeros up to a power of two."""
        return power_of_two(1 + self.circuit.calls)

    @property
    def values(self) -> int:
        """The values that fix the gadget's polynomial."""
        return self.circuit.gadget.degree * (self.points - 1) + 1

    @property
    def length(self) -> int:
        """Of the proof: a seed for each wire, then the values of the gadget's polynomial."""
        return self.circuit.gadget.arity + self.values

    @property
    def query_randomness(self) -> int:
        """A factor for each check where there are several, then the point at which polynomials are compared."""
        return 1 + (self.circuit.checks if self.circuit.checks > 1 else 0)

    @property
    def verifier_length(self) -> int:
        """The checks in one, the wires and the gadget's polynomial at the point."""
        return self.circuit.gadget.arity + 2

    def prove(self, encoded: Vector, seeds: Vector, randomness: Vector) -> Vector:
        """The proof for a vector; `seeds` are fresh and uniform, one for each of the gadget's inputs."""
        field, gadget = self.circuit.field, self.circuit.gadget
        wires = self._wires(seeds, self.circuit.inputs(encoded, randomness, 1))
        # The gadget's polynomial has a higher degree than the wires, and needs values at more points.
        for _ in range((power_of_two(self.values) // self.points).bit_length() - 1):
            wires = [field.double(wire) for wire in wires]
        columns = list(zip(*wires, strict=True))[: self.values]
        return seeds + [gadget.evaluate(field, column) for column in columns]

    def query(self, encoded: Vector, proof: Vector, query: Vector, randomness: Vector, one: int) -> Vector:
        """A share of the verifier, from shares of vector and proof.

        Raises `RejectedProof` if the point is a root of unity, where the verifier would show a gadget's inputs.
        """
        circuit, field, arity = self.circuit, self.circuit.field, self.circuit.gadget.arity
        *factors, point = query
        polynomial = field.complete(proof[arity:], power_of_two(self.values))
        if pow(point, len(polynomial), field.modulus) == 1:
            raise RejectedProof("the proof was not accepted")
        # The wires' own points are every `step`-th; the one at 0 holds the seeds, and no call.
        step = len(polynomial) // self.points
        results = polynomial[step :: step][: circuit.calls]
        checks = circuit.check(results, encoded, one)
        near, far = field.weights(self.points, point), field.weights(len(polynomial), point)
        # A wire at the point, without the wire: its seed and the calls' values, each times its weight.
        wires = circuit.weighed(encoded, randomness, one, near[1 : 1 + circuit.calls])
        return [
            # Random factors: faults of two checks cancel with small chance alone.
            (sum(map(mul, factors, checks)) if factors else checks[0]) % field.modulus,
            *((near[0] * seed + wire) % field.modulus for seed, wire in zip(proof[:arity], wires, strict=True)),
            sum(map(mul, far, polynomial)) % field.modulus,
        ]

    def decide(self, verifier: Vector) -> bool:
        """True if the sum of all shares of the verifier shows a vector that the circuit accepts."""
        checks, *wires, result = verifier
        return checks == 0 and self.circuit.gadget.evaluate(self.circuit.field, wires) == result

    def _wires(self, seeds: Vector, calls: list[Vector]) -> list[Vector]:
        """For each of the gadget's inputs its seed, then its value in each call, then zeros."""
        rest = [0] * (self.points - 1 - len(calls))
        return [[seed, *wire, *rest] for seed, wire in zip(seeds, zip(*calls, strict=True), strict=True)]
