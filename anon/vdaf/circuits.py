"""The two circuits of this project: blocks with a single one each, and integers with a bounded sum of squares.

Both check that every element is a bit as draft-irtf-cfrg-vdaf-20 does (section 7.4.3: a random polynomial of the
products b * (b - 1) for each call of the gadget). A single block is exactly the draft's Histogram.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import mul

from anon.errors import InvalidValue
from anon.vdaf.field import FIELD128, Field, Vector
from anon.vdaf.flp import ParallelSum, power_of_two

BLOCKS = 0xFFFF0001
BALL = 0xFFFF0002
"""The algorithms' numbers, of the range that the draft leaves for private use (section 10)."""


def shortest_chunk(*lengths: int) -> int:
    """How many products a call adds up so that the proof is shortest, where each part begins a call of its own."""
    most = sum(lengths)

    def proof(chunk: int) -> int:
        calls = sum(-(-length // chunk) for length in lengths)
        return chunk + power_of_two(1 + calls)

    # A proof has about chunk + length / chunk elements, so the shortest lies near the square root.
    return min(range(1, min(most, 8 * int(most**0.5) + 8) + 1), key=proof)


def bit_inputs(elements: Vector, randomness: Vector, chunk: int, field: Field, one: int) -> list[Vector]:
    """The inputs for the calls whose results sum up to zero where every element is a bit, one random element a call."""
    # Padding as the draft's: 0 and 0 - 1, whose product adds nothing.
    modulus, padding = field.modulus, [0, -one % field.modulus]
    calls = []
    for call, factor in enumerate(randomness):
        power, inputs = factor, []
        for element in (part := elements[call * chunk : (call + 1) * chunk]):
            inputs += [power * element % modulus, (element - one) % modulus]
            power = power * factor % modulus
        calls.append(inputs + padding * (chunk - len(part)))
    return calls


def weighed_bits(
    elements: Vector, randomness: Vector, chunk: int, field: Field, unit: int, weights: Vector
) -> list[int]:
    """The sums over the calls of `bit_inputs`, each call's inputs times its weight. No input is written out."""
    modulus, factors, shift = field.modulus, Vector(), unit * sum(weights)
    for factor, weight in zip(randomness, weights, strict=True):
        power = weight
        for _ in range(chunk):
            power = power * factor % modulus
            factors.append(power)
    elements = elements + [0] * (len(factors) - len(elements))
    sums = []
    for place in range(chunk):
        column = elements[place::chunk]
        sums += [sum(map(mul, factors[place::chunk], column)), sum(map(mul, weights, column)) - shift]
    return [total % modulus for total in sums]


def bit_weights(most: int) -> tuple[int, ...]:
    """Weights of bits whose sums are exactly the integers from 0 to `most`: powers of two, and a last one that fits.

    >>> bit_weights(10)  # their sums reach 10 and not 11: no other check of the bound is needed
    (1, 2, 4, 3)
    """
    powers = tuple(1 << place for place in range(most.bit_length() - 1))
    return (*powers, most - sum(powers))


def encode_bounded(value: int, most: int) -> Vector:
    """An integer from 0 to `most` as bits for `bit_weights`."""
    *powers, last = bit_weights(most)
    # Some values have two spellings in these weights. The proof takes either, and both weigh the same.
    top = int(value > sum(powers))
    return [(value - top * last) >> place & 1 for place in range(len(powers))] + [top]


def weigh(elements: Vector, weights: Sequence[int], field: Field) -> int:
    """The weighted sum."""
    return sum(element * weight for element, weight in zip(elements, weights, strict=True)) % field.modulus


@dataclass(frozen=True)
class Blocks:
    """A vector of several blocks, each of zeros and a single one. A measurement is the place of each block's one."""

    lengths: tuple[int, ...]
    chunk: int
    field: Field = FIELD128

    def __post_init__(self) -> None:
        """Raises `ValueError` for a block without cells, no block, or an empty chunk."""
        if min(self.lengths, default=0) < 1 or self.chunk < 1:
            raise ValueError("expected at least one block, of at least one cell each, and a chunk of at least one")

    @property
    def gadget(self) -> ParallelSum:
        """Products of bits."""
        return ParallelSum(self.chunk)

    @property
    def length(self) -> int:
        """All cells."""
        return sum(self.lengths)

    @property
    def calls(self) -> int:
        """One for each chunk of cells."""
        return -(-self.length // self.chunk)

    @property
    def randomness(self) -> int:
        """One element for each call."""
        return self.calls

    @property
    def output_length(self) -> int:
        """All cells."""
        return self.length

    @property
    def checks(self) -> int:
        """That the cells are bits, and for each block that they sum up to one."""
        return 1 + len(self.lengths)

    @property
    def parameters(self) -> tuple[int, ...]:
        """The chunk, then the lengths."""
        return (self.chunk, *self.lengths)

    def encode(self, measurement: Sequence[int]) -> Vector:
        """Raises `InvalidValue` unless there is one place for each block, and each lies in its block."""
        if len(measurement) != len(self.lengths):
            raise InvalidValue(f"expected a place in each of {len(self.lengths)} blocks, got {len(measurement)}")
        if any(not 0 <= place < length for place, length in zip(measurement, self.lengths, strict=True)):
            raise InvalidValue("expected each place below the length of its block")
        return [
            int(cell == place)
            for place, length in zip(measurement, self.lengths, strict=True)
            for cell in range(length)
        ]

    def inputs(self, encoded: Vector, randomness: Vector, one: int) -> list[Vector]:
        """The check of bits."""
        return bit_inputs(encoded, randomness, self.chunk, self.field, one)

    def weighed(self, encoded: Vector, randomness: Vector, unit: int, weights: Vector) -> Vector:
        """Of the check of bits."""
        return weighed_bits(encoded, randomness, self.chunk, self.field, unit, weights)

    def check(self, results: Vector, encoded: Vector, one: int) -> Vector:
        """The check of bits, then the sum of each block less one."""
        ends = accumulate(self.lengths, initial=0)
        sums = [sum(encoded[start:end]) - one for start, end in pairwise(ends)]
        return [total % self.field.modulus for total in (sum(results), *sums)]

    def truncate(self, encoded: Vector) -> Vector:
        """All of it."""
        return encoded


@dataclass(frozen=True)
class Ball:
    """Signed integers of `bits` bits in two's complement, whose squares sum up to at most `radius` squared.

    The sum of squares is claimed as an integer that cannot be larger, and compared with the entries' own.
    """

    size: int
    bits: int
    radius: int
    chunk: int
    field: Field = FIELD128

    def __post_init__(self) -> None:
        """Raises `ValueError` for sizes below one, or where a sum of squares could wrap around the modulus."""
        if min(self.size, self.bits, self.radius, self.chunk) < 1:
            raise ValueError("expected size, bits, radius and chunk of at least one")
        if self.bits > self.field.modulus.bit_length():  # before a shift by them, which would fill the memory
            raise ValueError("expected fewer bits than the field's modulus has")
        # A sum that wraps around would pass for a small one, and a vector outside of the ball with it.
        if max(self.size << 2 * (self.bits - 1), self.radius**2) >= self.field.modulus:
            raise ValueError("expected every sum of squares below the field's modulus; take fewer bits")

    @property
    def gadget(self) -> ParallelSum:
        """Products of bits, and squares."""
        return ParallelSum(self.chunk)

    @property
    def length(self) -> int:
        """The bits of all entries, then those of the claimed sum of squares."""
        return self.size * self.bits + (self.radius**2).bit_length()

    @property
    def calls(self) -> int:
        """One for each chunk of bits, one for each chunk of squares."""
        return self.randomness - (-self.size // self.chunk)

    @property
    def randomness(self) -> int:
        """One element for each chunk of bits."""
        return -(-self.length // self.chunk)

    @property
    def output_length(self) -> int:
        """The entries."""
        return self.size

    @property
    def checks(self) -> int:
        """The check of bits, and the sum of squares."""
        return 2

    @property
    def parameters(self) -> tuple[int, ...]:
        """Chunk, size, bits and radius."""
        return (self.chunk, self.size, self.bits, self.radius)

    @property
    def weights(self) -> tuple[int, ...]:
        """Of an entry's bits: powers of two, the last one negative."""
        return (*(1 << place for place in range(self.bits - 1)), -(1 << (self.bits - 1)))

    def encode(self, measurement: Sequence[int]) -> Vector:
        """Raises `InvalidValue` unless there are `size` integers, each of `bits` bits, within the radius."""
        if len(measurement) != self.size:
            raise InvalidValue(f"expected {self.size} integers, got {len(measurement)}")
        edge = 1 << (self.bits - 1)
        if any(not -edge <= entry < edge for entry in measurement):
            raise InvalidValue(f"expected each entry from {-edge} to {edge - 1}")
        square = sum(entry * entry for entry in measurement)
        if square > self.radius**2:
            raise InvalidValue(f"expected squares that sum up to at most {self.radius} squared; clip the vector first")
        bits = [entry >> place & 1 for entry in measurement for place in range(self.bits)]
        return bits + encode_bounded(square, self.radius**2)

    def inputs(self, encoded: Vector, randomness: Vector, one: int) -> list[Vector]:
        """The check of bits, then each entry twice."""
        entries, chunk = self.truncate(encoded), self.chunk
        doubled = [factor for entry in entries for factor in (entry, entry)]
        doubled += [0] * (-len(doubled) % (2 * chunk))
        squares = [doubled[at : at + 2 * chunk] for at in range(0, len(doubled), 2 * chunk)]
        return bit_inputs(encoded, randomness, chunk, self.field, one) + squares

    def weighed(self, encoded: Vector, randomness: Vector, unit: int, weights: Vector) -> Vector:
        """Of the check of bits, and both inputs of each square."""
        entries, chunk, first = self.truncate(encoded), self.chunk, len(randomness)
        entries += [0] * (-len(entries) % chunk)
        bits = weighed_bits(encoded, randomness, chunk, self.field, unit, weights[:first])
        squares = [sum(map(mul, weights[first:], entries[place::chunk])) for place in range(chunk)]
        return [(bits[wire] + squares[wire // 2]) % self.field.modulus for wire in range(2 * chunk)]

    def check(self, results: Vector, encoded: Vector, one: int) -> Vector:
        """The check of bits, then the sum of squares less the claimed one."""
        claimed = weigh(encoded[self.size * self.bits :], bit_weights(self.radius**2), self.field)
        bits, squares = sum(results[: self.randomness]), sum(results[self.randomness :])
        return [bits % self.field.modulus, (squares - claimed) % self.field.modulus]

    def truncate(self, encoded: Vector) -> Vector:
        """The entries from their bits."""
        bits, weights, field = self.bits, self.weights, self.field
        return [weigh(encoded[at : at + bits], weights, field) for at in range(0, self.size * bits, bits)]


def blocks(lengths: Sequence[int]) -> Blocks:
    """The circuit for blocks of these lengths whose proof is shortest.

    >>> two_features = blocks([3, 2])
    >>> two_features.encode([1, 0])
    [0, 1, 0, 1, 0]
    """
    return Blocks(tuple(lengths), shortest_chunk(sum(lengths)))


def ball(size: int, bits: int, radius: int) -> Ball:
    """The circuit for `size` signed integers of `bits` bits within the radius whose proof is shortest.

    >>> within = ball(2, 8, 100)
    >>> within.truncate(within.encode([60, -80])) == [60, within.field.modulus - 80]
    True
    >>> within.encode([61, -80])
    Traceback (most recent call last):
    anon.errors.InvalidValue: expected squares that sum up to at most 100 squared; clip the vector first
    """
    return Ball(size, bits, radius, shortest_chunk(size * bits + (radius**2).bit_length(), size))
