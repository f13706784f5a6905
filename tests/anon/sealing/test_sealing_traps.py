"""Both kinds of sealing and of opening: what opens, and everything that must not."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from anon.crypto import sealing
from anon.crypto.pure import sealing as pure
from anon.crypto.pure.sealing import chacha
from anon.crypto.pure.sealing.hpke import key_schedule
from anon.crypto.sealing import OVERHEAD, PUBLIC_KEY_SIZE, SECRET_SIZE, opening, openssl
from anon.crypto.sealing_sizes import ENCAPSULATED_SIZE, MLKEM_CIPHERTEXT_SIZE, MLKEM_KEY_SIZE, TAG_SIZE
from anon.errors import Malformed, RejectedProof
from tests.support.command_line import ROOT
from tests.support.tries import examples

Seal = Callable[[bytes, bytes, bytes], bytes]
Opener = openssl.Opener | pure.Opener
KINDS: list[type[Opener]] = [openssl.Opener, pure.Opener]
SECRET, OTHER_SECRET = hashlib.sha256(b"one").digest(), hashlib.sha256(b"other").digest()
OPENERS, OTHERS = [kind(SECRET) for kind in KINDS], [kind(OTHER_SECRET) for kind in KINDS]
KEY = OPENERS[0].public_key
INFO = b"packets of a study"
DOES_NOT_OPEN = r"^a sealed message does not open$"
SMALL_ORDERS = [
    bytes(32),
    (1).to_bytes(32, "little"),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    (2**255 - 20).to_bytes(32, "little"),
    (2**255 - 19).to_bytes(32, "little"),
    (2**255 - 18).to_bytes(32, "little"),
]
both = pytest.mark.parametrize("seal", [openssl.seal, pure.seal], ids=["cryptography", "python"])
each = pytest.mark.parametrize("opener", OPENERS, ids=["opened by cryptography", "opened by python"])


@both
@each
@pytest.mark.parametrize("size", [0, 1, 437, 5000])
def test_it_opens_for_its_key_and_purpose(seal: Seal, opener: Opener, size: int) -> None:
    text = os.urandom(size)
    sealed = seal(text, KEY, INFO)
    assert len(sealed) == size + OVERHEAD
    assert opener.open(sealed, INFO) == text
    assert seal(text, KEY, INFO) != sealed


@both
@pytest.mark.parametrize(("opener", "info"), [
    (opener, info)
    for own, other in zip(OPENERS, OTHERS, strict=True)
    for opener, info in [(other, INFO), (own, INFO + b"\0"), (own, b""), (own, b"shares of a study")]
])
def test_another_key_or_purpose_opens_nothing(seal: Seal, opener: Opener, info: bytes) -> None:
    sealed = seal(b"text", KEY, INFO)
    with pytest.raises(RejectedProof, match=DOES_NOT_OPEN):
        opener.open(sealed, info)


@pytest.mark.slow
@both
@each
@pytest.mark.parametrize(("place", "bit"), [
    (0, 1), (500, 1), (960, 1), (MLKEM_CIPHERTEXT_SIZE - 1, 128),  # the lattice's vector, and its last element
    (MLKEM_CIPHERTEXT_SIZE, 1), (ENCAPSULATED_SIZE - 2, 1),
    (ENCAPSULATED_SIZE - 1, 128),  # another spelling of the same point
    (ENCAPSULATED_SIZE, 1), (-TAG_SIZE - 1, 128), (-TAG_SIZE, 1), (-1, 1), (-1, 128),
])
def test_a_changed_bit_opens_nothing(seal: Seal, opener: Opener, place: int, bit: int) -> None:
    sealed = bytearray(seal(b"text", KEY, INFO))
    sealed[place] ^= bit
    with pytest.raises(RejectedProof, match=DOES_NOT_OPEN):
        opener.open(bytes(sealed), INFO)


@both
@each
def test_what_is_cut_opens_nothing(seal: Seal, opener: Opener) -> None:
    sealed = seal(b"text", KEY, INFO)
    with pytest.raises(RejectedProof):
        opener.open(sealed[:-1], INFO)
    with pytest.raises(RejectedProof):
        opener.open(sealed + b"\0", INFO)
    for size in (0, 1, ENCAPSULATED_SIZE, OVERHEAD - 1):
        with pytest.raises(Malformed, match=rf"^sealed message: expected at least 1136 bytes, got {size}$"):
            opener.open(sealed[:size], INFO)


@pytest.mark.slow
@both
@each
@pytest.mark.parametrize("point", SMALL_ORDERS)
def test_a_shared_secret_of_zeros_is_refused_by_both_sides(seal: Seal, opener: Opener, point: bytes) -> None:
    with pytest.raises(Malformed, match="do not take part"):
        seal(b"text", KEY[:MLKEM_KEY_SIZE] + point, INFO)
    sealed = seal(b"text", KEY, INFO)
    with pytest.raises(RejectedProof, match=DOES_NOT_OPEN):
        opener.open(sealed[:MLKEM_CIPHERTEXT_SIZE] + point + sealed[ENCAPSULATED_SIZE:], INFO)


@both
@pytest.mark.parametrize("key", [
    b"", KEY[:-1], KEY + b"\0", b"\xff" * PUBLIC_KEY_SIZE,
    b"\x01\x0d" + KEY[2:],  # the first element, twelve bits of 0xd01, is the prime itself
], ids=["none", "short", "long", "large", "prime"])
def test_a_key_of_another_form_is_refused(seal: Seal, key: bytes) -> None:
    with pytest.raises(Malformed, match="do not take part"):
        seal(b"text", key, INFO)


@pytest.mark.parametrize("kind", KINDS, ids=["cryptography", "python"])
def test_a_secret_of_another_length_is_our_own_fault(kind: type[Opener]) -> None:
    for size in (0, SECRET_SIZE - 1, SECRET_SIZE + 1):
        with pytest.raises(ValueError, match=rf"^sealing secret: expected 32 bytes, got {size}$"):
            kind(bytes(size))
    opener = kind(SECRET)
    assert "bytes" not in repr(opener) and KEY.hex() not in repr(opener)


@pytest.mark.slow
def test_python_seals_and_opens_for_many_keys() -> None:
    """Random keys and messages: a fault in one coefficient out of thousands would show as one that does not open."""
    for number in range(examples(60)):
        secret, text = hashlib.sha256(b"%d" % number).digest(), b"%d" % number
        native, python = openssl.Opener(secret), pure.Opener(secret)
        assert python.public_key == native.public_key
        sealed = pure.seal(text, native.public_key, INFO)
        assert native.open(sealed, INFO) == python.open(sealed, INFO) == text


def test_a_rejected_ciphertext_gives_both_the_same_secret() -> None:
    """The owner of a key alone can seal under it: what Python's opener computes, that of `cryptography` opens."""
    encapsulated = os.urandom(MLKEM_CIPHERTEXT_SIZE) + OTHERS[0].public_key[MLKEM_KEY_SIZE:]
    key, nonce = key_schedule(pure.Opener(SECRET).decapsulate(encapsulated), INFO)
    sealed = encapsulated + chacha.seal(b"text", nonce, key)
    assert [opener.open(sealed, INFO) for opener in OPENERS] == [b"text"] * 2


def test_the_desktop_seals_and_opens_by_cryptography() -> None:
    assert sealing.IMPLEMENTATION == "native"
    assert (sealing.seal, opening.Opener) == (openssl.seal, openssl.Opener)


WITHOUT_CRYPTOGRAPHY = """
import doctest, importlib.abc, sys
class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "cryptography":
            raise ModuleNotFoundError("gone", name=name)
sys.meta_path.insert(0, Block())
from anon.crypto import sealing
from anon.crypto.sealing import opening
print(sealing.IMPLEMENTATION, sealing.seal.__module__, opening.Opener.__module__, *doctest.testmod(opening))
"""


def test_python_seals_and_opens_where_cryptography_is_missing() -> None:
    """By the same names, with the same example."""
    environment = {**os.environ, "ANONML_CRYPTO": "pure"}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_CRYPTOGRAPHY],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [
        "pure",
        "anon.crypto.pure.sealing.hpke",
        "anon.crypto.pure.sealing.hpke",
        "0",
        "6",
    ], done.stdout
