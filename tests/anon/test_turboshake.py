"""TurboSHAKE128, by the library and in Python: the standard's bytes, and equal ones everywhere."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable

import pytest

from anon.crypto import turboshake
from anon.crypto.pure.turboshake import ROUNDS, squeeze
from anon.crypto.pure.turboshake import turboshake128 as in_python

BOTH = pytest.mark.parametrize("made", [turboshake.turboshake128, in_python])
Made = Callable[[bytes, int], Callable[[int], bytes]]


def test_the_library_is_underneath() -> None:
    assert turboshake.IMPLEMENTATION == "native"


@BOTH
def test_it_is_that_of_rfc_9861(made: Made) -> None:
    """Its section 5: an empty message, domain 0x1f; the first 32 bytes."""
    assert made(b"", 0x1F)(32).hex() == "1e415f1c5983aff2169217277d17bb538cd945a397ddec541f1ce41af2c1b74c"


@pytest.mark.parametrize("length", [0, 1, 167, 168, 169, 335, 336, 1000])
def test_both_give_equal_bytes_in_pieces_of_any_size(length: int) -> None:
    drawn = random.Random(length)
    message, domain = drawn.randbytes(length), drawn.randrange(1, 128)
    library, python = turboshake.turboshake128(message, domain), in_python(message, domain)
    pieces = [0, 1, 167, 168, 169, *(drawn.randrange(600) for _ in range(6))]
    read = [library(size) for size in pieces]
    assert read == [python(size) for size in pieces]
    assert b"".join(read) == squeeze(message, domain, sum(pieces))


@pytest.mark.parametrize("length", [0, 1, 167, 168, 169, 335, 336, 1000])
def test_the_permutation_with_all_rounds_is_that_of_the_standard_library(length: int) -> None:
    """SHAKE128 differs from TurboSHAKE128 by its 24 rounds and its domain alone."""
    message = bytes(index * 7 % 251 for index in range(length))
    assert squeeze(message, 0x1F, 500, ROUNDS) == hashlib.shake_128(message).digest(500)
