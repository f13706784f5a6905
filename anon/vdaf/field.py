"""Prime fields with a fast number-theoretic transform: vectors, their bytes, polynomials by their values.

draft-irtf-cfrg-vdaf-20, sections 6.1 and 6.1.3. A vector is a list of integers from 0 to the modulus less one. A
polynomial is the vector of its values at the first n powers of an n-th root of unity, n a power of two. Not
constant-time: Python's integers are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, repeat
from operator import mul
from struct import unpack

from anon.errors import Malformed

Vector = list[int]


@dataclass(frozen=True, slots=True)
class Field:
    """The integers modulo a prime; `root` generates the subgroup of order 2 ** `log_order`."""

    modulus: int
    size: int
    """Bytes of an element, little-endian."""
    root: int
    log_order: int

    def encode(self, vector: Vector) -> bytes:
        """`size` bytes for each element."""
        size = self.size
        return b"".join([element.to_bytes(size, "little") for element in vector])

    def decode(self, data_untrusted: bytes, length: int, name: str) -> Vector:
        """Exactly `length` elements, each below the modulus. Raises `Malformed`."""
        size = self.size
        if len(data_untrusted) != length * size:
            raise Malformed(f"{name}: expected {length * size} bytes, got {len(data_untrusted)}; send it whole")
        vector = self.read(data_untrusted)
        if vector and max(vector) >= self.modulus:
            raise Malformed(f"{name}: an element is not below the field's modulus; encode it canonically")
        return vector

    def read(self, data: bytes) -> Vector:
        """The numbers that `size` bytes each spell, some of which may not be below the modulus."""
        return _read(data, self.size)

    def add(self, left: Vector, right: Vector) -> Vector:
        """The sum of two vectors of equal length."""
        modulus = self.modulus
        return [(a + b) % modulus for a, b in zip(left, right, strict=True)]

    def total(self, encoded: Iterable[bytes], length: int, name: str) -> Vector:
        """The sum of encoded vectors of `length` elements. Raises `Malformed` for another length.

        Elements need not be below the modulus. Every other one has room for a carry beside it, so that two additions
        of long numbers add a vector.
        """
        size, each = self.size, 8 * self.size
        room = int.from_bytes((b"\xff" * size + bytes(size)) * -(-length // 2), "little")
        sums = [0, 0]
        for data in encoded:
            if len(data) != length * size:
                raise Malformed(f"{name}: expected {length * size} bytes, got {len(data)}; send it whole")
            number = int.from_bytes(data, "little")
            sums = [sums[0] + (number & room), sums[1] + (number >> each & room)]
        found = [0] * length
        for place, summed in enumerate(sums):
            data = summed.to_bytes(2 * size * -(-length // 2), "little")
            found[place::2] = [element % self.modulus for element in _read(data, 2 * size)][: len(found[place::2])]
        return found

    def subtract(self, left: Vector, right: Vector) -> Vector:
        """The difference of two vectors of equal length."""
        modulus = self.modulus
        return [(a - b) % modulus for a, b in zip(left, right, strict=True)]

    def inverse(self, element: int) -> int:
        """Raises `ValueError` for zero."""
        return pow(element, -1, self.modulus)

    def inverses(self, elements: Sequence[int]) -> Vector:
        """The inverse of each element, by one inversion. Raises `ValueError` if one is zero."""
        modulus = self.modulus
        # Montgomery's trick: three multiplications an element in place of an inversion.
        products = list(accumulate(elements, lambda a, b: a * b % modulus, initial=1))
        rest = self.inverse(products.pop())
        found = []
        for element, product in zip(reversed(elements), reversed(products), strict=True):
            found.append(rest * product % modulus)
            rest = rest * element % modulus
        return found[::-1]

    def roots(self, n: int) -> tuple[int, ...]:
        """The n-th roots of unity: the n powers of the first one. `n` is a power of two."""
        return _roots(self, n)

    def transform(self, coefficients: Vector) -> Vector:
        """The values of a polynomial at the n-th roots of unity, from its n coefficients, the constant first."""
        return _transform(coefficients, self.roots(len(coefficients)), self.modulus)

    def interpolate(self, values: Vector) -> Vector:
        """The n coefficients of a polynomial, from its values at the n-th roots of unity."""
        modulus, scale = self.modulus, self.inverse(len(values))
        # The inverse roots are the roots in reverse order, but for the first.
        first, *others = self.transform(values)
        return [element * scale % modulus for element in (first, *reversed(others))]

    def double(self, values: Vector) -> Vector:
        """The values at the 2n-th roots of unity of a polynomial that n values fix."""
        modulus, n = self.modulus, len(values)
        # Coefficients times powers of a 2n-th root give the values half-way between the known ones.
        turned = [c * s % modulus for c, s in zip(self.interpolate(values), self.roots(2 * n)[:n], strict=True)]
        return [value for pair in zip(values, self.transform(turned), strict=True) for value in pair]

    def complete(self, values: Vector, n: int) -> Vector:
        """The values at all n-th roots of unity of a polynomial that its first `len(values)` fix."""
        rows = _completion(self, len(values), n)
        return values + [sum(map(mul, row, values)) % self.modulus for row in rows]

    def weights(self, n: int, point: int) -> Vector:
        """The n factors whose products with a polynomial's values sum up to its value at a point.

        Raises `ValueError` if the point is an n-th root of unity.
        """
        modulus, nodes = self.modulus, self.roots(n)
        # The barycentric formula at roots of unity (Berrut and Trefethen 2004): (x^n - 1) / n times node / (x - node).
        scale = (pow(point, n, modulus) - 1) * self.inverse(n) % modulus
        away = self.inverses([(point - node) % modulus for node in nodes])
        return [scale * node % modulus * inverse % modulus for node, inverse in zip(nodes, away, strict=True)]


def _read(data: bytes, size: int) -> Vector:
    # By C functions alone: a loop of slices takes twice as long.
    read: Callable[[bytes, str], int] = int.from_bytes  # type: ignore[assignment]
    return list(map(read, unpack(f"{size}s" * (len(data) // size), data), repeat("little")))


@cache
def _roots(field: Field, n: int) -> tuple[int, ...]:
    log = n.bit_length() - 1
    if n != 1 << log or log > field.log_order:
        raise ValueError(f"expected a power of two up to 2 ** {field.log_order}, got {n}")
    root = pow(field.root, 1 << (field.log_order - log), field.modulus)
    return tuple(accumulate(range(n - 1), lambda power, _: power * root % field.modulus, initial=1))


def _transform(coefficients: Vector, roots: tuple[int, ...], modulus: int) -> Vector:
    if len(coefficients) == 1:
        return coefficients
    half = roots[::2]
    evens = _transform(coefficients[::2], half, modulus)
    odds = _transform(coefficients[1::2], half, modulus)
    turned = [root * odd % modulus for root, odd in zip(roots, odds, strict=False)]
    above = [(even + odd) % modulus for even, odd in zip(evens, turned, strict=True)]
    return above + [(even - odd) % modulus for even, odd in zip(evens, turned, strict=True)]


@cache
def _completion(field: Field, known: int, n: int) -> tuple[Vector, ...]:
    """For each root of unity from `known` to n its row: Lagrange's factors of the first `known` values."""
    modulus, nodes = field.modulus, field.roots(n)
    slopes = [_product(field, node, [other for other in nodes[:known] if other != node]) for node in nodes[:known]]
    rows = []
    for point in nodes[known:]:
        whole = _product(field, point, nodes[:known])
        below = field.inverses([slope * (point - node) % modulus for slope, node in zip(slopes, nodes, strict=False)])
        rows.append([whole * factor % modulus for factor in below])
    return tuple(rows)


def _product(field: Field, point: int, nodes: Sequence[int]) -> int:
    """The product of the distances from the nodes to the point."""
    found = 1
    for node in nodes:
        found = found * (point - node) % field.modulus
    return found


def _field(factor: int, log_order: int, generator: int, size: int) -> Field:
    # The draft's table of fields: the root is 7 to the cofactor, of order 2^32 or 2^66.
    modulus = (factor << log_order) + 1
    return Field(modulus, size, pow(generator, factor, modulus), log_order)


FIELD64 = _field(4294967295, 32, 7, 8)
FIELD128 = _field(4611686018427387897, 66, 7, 16)
