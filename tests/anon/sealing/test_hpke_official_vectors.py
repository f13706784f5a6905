"""The official vector of draft-ietf-hpke-pq for the one suite, in Python and by `cryptography`; RFC 8439's for its
cipher.

ML-KEM's decapsulation is held to vectors of Wycheproof, and to OpenSSL's own verdicts.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.bindings._rust import openssl
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey

from anon.crypto.pure.nacl import CryptoError
from anon.crypto.pure.sealing import Opener as InPython
from anon.crypto.pure.sealing import chacha, mlkem
from anon.crypto.pure.sealing.hpke import SUITE as SPELLED
from anon.crypto.pure.sealing.hpke import encapsulate, key_schedule, seal_with
from anon.crypto.sealing.openssl import SUITE, Opener
from anon.crypto.sealing_sizes import MLKEM_CIPHERTEXT_SIZE
from tests.support.tries import examples

VECTORS = Path(__file__).parent / "vectors"
VECTOR: dict[str, Any] = json.loads((VECTORS / "mlkem768_x25519.json").read_text())
DECAPSULATIONS: dict[str, Any] = json.loads((VECTORS / "mlkem768_decapsulation.json").read_text())
ENCRYPTED = VECTOR["encryptions"][0]


def figure(name: str) -> bytes:
    return bytes.fromhex(VECTOR[name])


def test_the_vector_is_of_our_suite() -> None:
    assert (VECTOR["mode"], figure("suite_id")) == (0, SPELLED)


def test_encapsulation_in_python() -> None:
    encapsulated, shared = encapsulate(figure("pkRm"), figure("ikmE"))
    assert encapsulated == figure("enc")
    assert shared == figure("shared_secret")


def test_the_key_schedule_in_python() -> None:
    assert key_schedule(figure("shared_secret"), figure("info")) == (figure("key"), figure("base_nonce"))


def test_sealing_in_python() -> None:
    texts = [bytes.fromhex(ENCRYPTED[name]) for name in ("pt", "aad", "ct")]
    sealed = seal_with(texts[0], figure("pkRm"), figure("info"), texts[1], figure("ikmE"))
    assert sealed == figure("enc") + texts[2]


@pytest.mark.parametrize("kind", [Opener, InPython], ids=["cryptography", "python"])
def test_a_secret_is_expanded_as_the_draft_does(kind: type[Opener | InPython]) -> None:
    assert kind(figure("skRm")).public_key == figure("pkRm")


def test_python_opens_the_vector() -> None:
    text, associated, ciphertext = (bytes.fromhex(ENCRYPTED[name]) for name in ("pt", "aad", "ct"))
    shared = InPython(figure("skRm")).decapsulate(figure("enc"))
    assert shared == figure("shared_secret")
    key, nonce = key_schedule(shared, figure("info"))
    assert chacha.unseal(ciphertext, nonce, key, associated) == text
    with pytest.raises(CryptoError):
        chacha.unseal(ciphertext, nonce, key, b"")


@pytest.mark.parametrize("vector", DECAPSULATIONS["tests"], ids=lambda vector: f"{vector['tcId']} {vector['comment']}")
def test_decapsulation_in_python(vector: dict[str, str]) -> None:
    """Implicit rejection of random ciphertexts, of a flipped bit, and after a zero byte, where `strcmp` would stop."""
    seed, ciphertext = bytes.fromhex(vector["seed"]), bytes.fromhex(vector["c"])
    key, secret = mlkem.key_pair(seed[: mlkem.SEED_SIZE])
    assert hashlib.sha256(key).hexdigest() == vector["sha256_of_ek"]
    assert mlkem.decapsulate(ciphertext, key, secret, seed[mlkem.SEED_SIZE :]).hex() == vector["K"]


@pytest.mark.slow
def test_python_decapsulates_as_openssl_does() -> None:
    """Implicit rejection included: no error, and a secret that the key's owner alone could compute."""
    for _ in range(examples(20)):
        seed, message = os.urandom(2 * mlkem.SEED_SIZE), os.urandom(mlkem.SEED_SIZE)
        native = MLKEM768PrivateKey.from_seed_bytes(seed)
        key, secret = mlkem.key_pair(seed[: mlkem.SEED_SIZE])
        assert key == native.public_key().public_bytes_raw()
        made, shared = mlkem.encapsulate(key, message)
        first, last = bytes([made[0] ^ 1]) + made[1:], made[:-1] + bytes([made[-1] ^ 128])
        ciphertexts = (made, first, last, os.urandom(MLKEM_CIPHERTEXT_SIZE))
        opened = [mlkem.decapsulate(ciphertext, key, secret, seed[mlkem.SEED_SIZE :]) for ciphertext in ciphertexts]
        assert opened == [native.decapsulate(ciphertext) for ciphertext in ciphertexts]
        assert opened[0] == shared and len(set(opened)) == len(opened)


def test_cryptography_opens_the_vector() -> None:
    """By its own private entry for associated data, which the vector has and we do not use."""
    text, associated, ciphertext = (bytes.fromhex(ENCRYPTED[name]) for name in ("pt", "aad", "ct"))
    key = Opener(figure("skRm"))._key
    assert (
        openssl.hpke._decrypt_with_aad(SUITE, figure("enc") + ciphertext, key, info=figure("info"), aad=associated)
        == text
    )


def test_chacha_of_rfc_8439() -> None:
    """Section 2.8.2."""
    key, nonce = bytes(range(0x80, 0xA0)), bytes.fromhex("070000004041424344454647")
    text = (
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would "
        b"be it."
    )
    sealed = chacha.seal(text, nonce, key, bytes.fromhex("50515253c0c1c2c3c4c5c6c7"))
    assert sealed[:16].hex() == "d31a8d34648e60db7b86afbc53ef7ec2"
    assert sealed[-16:].hex() == "1ae10b594f09e26a7e902ecbd0600691"
    assert chacha.unseal(sealed, nonce, key, bytes.fromhex("50515253c0c1c2c3c4c5c6c7")) == text


@pytest.mark.parametrize("size", [0, 1, 15, 16, 63, 64, 65, 1000])
def test_chacha_is_that_of_cryptography(size: int) -> None:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    key, nonce, text = bytes(range(32)), bytes(range(12)), bytes(index % 251 for index in range(size))
    sealed = ChaCha20Poly1305(key).encrypt(nonce, text, text[:20])
    assert chacha.seal(text, nonce, key, text[:20]) == sealed
    assert chacha.unseal(sealed, nonce, key, text[:20]) == text


@pytest.mark.parametrize("place", [*range(4), *range(-16, 0)])
def test_chacha_opens_nothing_that_was_changed_or_cut(place: int) -> None:
    key, nonce = bytes(range(32)), bytes(range(12))
    sealed = bytearray(chacha.seal(b"text", nonce, key, b"of a study"))
    with pytest.raises(CryptoError):
        chacha.unseal(bytes(sealed[:place]), nonce, key, b"of a study")
    sealed[place] ^= 1
    with pytest.raises(CryptoError):
        chacha.unseal(bytes(sealed), nonce, key, b"of a study")
