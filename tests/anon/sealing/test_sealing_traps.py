"""Both kinds of sealing, opened by `cryptography`: what opens, and everything that must not."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from anon.crypto import sealing
from anon.crypto.pure import sealing as pure
from anon.crypto.sealing import OVERHEAD, PUBLIC_KEY_SIZE, openssl
from anon.crypto.sealing.opening import Opener
from anon.crypto.sealing_sizes import ENCAPSULATED_SIZE, MLKEM_CIPHERTEXT_SIZE, MLKEM_KEY_SIZE
from anon.errors import Malformed, RejectedProof
from tests.support.command_line import ROOT

Seal = Callable[[bytes, bytes, bytes], bytes]
OPENER, OTHER = Opener(hashlib.sha256(b"one").digest()), Opener(hashlib.sha256(b"other").digest())
INFO = b"packets of a study"
SMALL_ORDERS = [
    bytes(32),
    (1).to_bytes(32, "little"),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    (2**255 - 20).to_bytes(32, "little"),
    (2**255 - 19).to_bytes(32, "little"),
    (2**255 - 18).to_bytes(32, "little"),
]
both = pytest.mark.parametrize("seal", [openssl.seal, pure.seal], ids=["cryptography", "python"])


@both
@pytest.mark.parametrize("size", [0, 1, 437, 5000])
def test_it_opens_for_its_key_and_purpose(seal: Seal, size: int) -> None:
    text = os.urandom(size)
    sealed = seal(text, OPENER.public_key, INFO)
    assert len(sealed) == size + OVERHEAD
    assert OPENER.open(sealed, INFO) == text
    assert seal(text, OPENER.public_key, INFO) != sealed


@both
@pytest.mark.parametrize(
    ("opener", "info"), [(OTHER, INFO), (OPENER, INFO + b"\0"), (OPENER, b""), (OPENER, b"shares of a study")]
)
def test_another_key_or_purpose_opens_nothing(seal: Seal, opener: Opener, info: bytes) -> None:
    sealed = seal(b"text", OPENER.public_key, INFO)
    with pytest.raises(RejectedProof):
        opener.open(sealed, info)


@both
@pytest.mark.parametrize("place", [0, 500, MLKEM_CIPHERTEXT_SIZE, ENCAPSULATED_SIZE - 2, ENCAPSULATED_SIZE, -1])
def test_a_changed_bit_opens_nothing(seal: Seal, place: int) -> None:
    sealed = bytearray(seal(b"text", OPENER.public_key, INFO))
    sealed[place] ^= 1
    with pytest.raises(RejectedProof):
        OPENER.open(bytes(sealed), INFO)


@both
def test_what_is_cut_opens_nothing(seal: Seal) -> None:
    sealed = seal(b"text", OPENER.public_key, INFO)
    with pytest.raises(RejectedProof):
        OPENER.open(sealed[:-1], INFO)
    with pytest.raises(RejectedProof):
        OPENER.open(sealed + b"\0", INFO)
    for size in (0, 1, ENCAPSULATED_SIZE, OVERHEAD - 1):
        with pytest.raises(Malformed):
            OPENER.open(sealed[:size], INFO)


@both
@pytest.mark.parametrize("point", SMALL_ORDERS)
def test_a_shared_secret_of_zeros_is_refused_by_both_sides(seal: Seal, point: bytes) -> None:
    with pytest.raises(Malformed, match="do not take part"):
        seal(b"text", OPENER.public_key[:MLKEM_KEY_SIZE] + point, INFO)
    sealed = seal(b"text", OPENER.public_key, INFO)
    with pytest.raises(RejectedProof):
        OPENER.open(sealed[:MLKEM_CIPHERTEXT_SIZE] + point + sealed[ENCAPSULATED_SIZE:], INFO)


@both
@pytest.mark.parametrize("key", [
    b"", OPENER.public_key[:-1], OPENER.public_key + b"\0", b"\xff" * PUBLIC_KEY_SIZE,
    b"\x01\x0d" + OPENER.public_key[2:],  # the first element, twelve bits of 0xd01, is the prime itself
], ids=["none", "short", "long", "large", "prime"])
def test_a_key_of_another_form_is_refused(seal: Seal, key: bytes) -> None:
    with pytest.raises(Malformed, match="do not take part"):
        seal(b"text", key, INFO)


def test_a_secret_of_another_length_is_our_own_fault() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Opener(bytes(31))
    assert "bytes" not in repr(OPENER) and OPENER.public_key.hex() not in repr(OPENER)


def test_python_seals_for_many_keys() -> None:
    """Random keys and messages: a fault in one coefficient out of thousands would show as one that does not open."""
    for number in range(60):
        opener = Opener(hashlib.sha256(b"%d" % number).digest())
        assert opener.open(pure.seal(b"%d" % number, opener.public_key, INFO), INFO) == b"%d" % number


def test_the_desktop_seals_by_cryptography() -> None:
    assert sealing.IMPLEMENTATION == "native"
    assert sealing.seal is openssl.seal


def test_whoever_says_pure_gets_python() -> None:
    program = "from anon.crypto import sealing; print(sealing.IMPLEMENTATION, sealing.seal.__module__)"
    environment = {**os.environ, "ANONML_CRYPTO": "pure"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["pure", "anon.crypto.pure.sealing.hpke"]
