"""Additively homomorphic encryption: Paillier 1999, with n + 1 as its base. Products of ciphertexts add plaintexts.

Whole Python integers, and those of `gmpy2` where it is installed. Nothing here takes a constant time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import gcd, prod
from typing import Any, Final

from attrs import field

from anon.values import frozen

RandomBytes = Callable[[int], bytes]
powmod: Any = pow
with suppress(ImportError):
    from gmpy2 import powmod  # type: ignore[import-not-found, no-redef, unused-ignore]
_SMALL: Final = prod(number for number in range(3, 2000) if all(number % below for below in range(2, number)))
_ROUNDS: Final = 8
"""Of Miller and Rabin: a composite number of 1,536 random bits passes four with chance 2^-128 (FIPS 186-5, B.3)."""


@frozen
class PaillierKey:
    """The modulus n. Plaintexts are modulo n and ciphertexts modulo its square."""

    n: int

    def encrypt(self, plain: int, random_bytes: RandomBytes) -> int:
        """A ciphertext, with randomness of its own."""
        return self.plus(int(powmod(below(self.n, random_bytes), self.n, self.n**2)), plain)

    def plus(self, cipher: int, plain: int) -> int:
        """The ciphertext of a sum. It has the same randomness."""
        return cipher * (1 + plain % self.n * self.n) % self.n**2

    def times(self, cipher: int, factor: int, random_bytes: RandomBytes) -> int:
        """A ciphertext of the product, with randomness of its own. The exponent is as long for every factor."""
        raised = int(powmod(cipher, factor % self.n + self.n, self.n**2))
        return raised * self.encrypt(0, random_bytes) % self.n**2

    def valid(self, cipher_untrusted: int) -> bool:
        """True for a number that is some ciphertext."""
        return 0 < cipher_untrusted < self.n**2 and gcd(cipher_untrusted, self.n) == 1


@frozen
class PaillierSecret:
    """Both primes."""

    p: int = field(repr=False)
    q: int = field(repr=False)

    @property
    def public(self) -> PaillierKey:
        """The part that everybody may have."""
        return PaillierKey(self.p * self.q)

    def decrypt(self, cipher: int) -> int:
        """The plaintext, modulo each prime and then put together."""
        of_p, of_q = (
            int(powmod(cipher % prime**2, prime - 1, prime**2) - 1) // prime * pow(-other, -1, prime) % prime
            for prime, other in ((self.p, self.q), (self.q, self.p))
        )
        return of_q + self.q * ((of_p - of_q) * pow(self.q, -1, self.p) % self.p)


def generated(bits: int, random_bytes: RandomBytes) -> PaillierSecret:
    """A key whose modulus has exactly so many bits, a multiple of 16. It follows from the random bytes."""
    p = q = _prime(bits // 2, random_bytes)
    while p == q:
        q = _prime(bits // 2, random_bytes)
    return PaillierSecret(p, q)


def _prime(bits: int, random_bytes: RandomBytes) -> int:
    """Of the form 4 k + 3, so that a round of Miller and Rabin is one power."""
    while True:
        drawn = int.from_bytes(random_bytes(bits // 8), "big") | 3 << bits - 2 | 3
        if gcd(drawn, _SMALL) == 1 and all(
            powmod(2 + below(drawn - 3, random_bytes), drawn // 2, drawn) in (1, drawn - 1) for _ in range(_ROUNDS)
        ):
            return drawn


def below(bound: int, random_bytes: RandomBytes) -> int:
    """A number from 0 on, off from uniform by at most 2^-128."""
    return int.from_bytes(random_bytes(bound.bit_length() // 8 + 17), "big") % bound
