"""The official vector of draft-ietf-hpke-pq for the one suite, in Python and by `cryptography`; RFC 8439's for its
cipher."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.bindings._rust import openssl

from anon.crypto.pure.sealing import chacha
from anon.crypto.pure.sealing.hpke import SUITE as SPELLED
from anon.crypto.pure.sealing.hpke import encapsulate, key_schedule, seal_with
from anon.crypto.sealing.opening import Opener
from anon.crypto.sealing.openssl import SUITE

VECTOR: dict[str, Any] = json.loads((Path(__file__).parent / "vectors" / "mlkem768_x25519.json").read_text())
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


def test_a_secret_is_expanded_as_the_draft_does() -> None:
    assert Opener(figure("skRm")).public_key == figure("pkRm")


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


@pytest.mark.parametrize("size", [0, 1, 15, 16, 63, 64, 65, 1000])
def test_chacha_is_that_of_cryptography(size: int) -> None:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    key, nonce, text = bytes(range(32)), bytes(range(12)), bytes(index % 251 for index in range(size))
    assert chacha.seal(text, nonce, key, text[:20]) == ChaCha20Poly1305(key).encrypt(nonce, text, text[:20])
