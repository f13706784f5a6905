"""NaCl in Python against libsodium: equal bytes and equal verdicts, and RFC vectors."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import nacl.exceptions
import nacl.public
import nacl.pwhash
import nacl.secret
import nacl.signing
import pytest
from nacl.bindings import crypto_core_ed25519_is_valid_point, crypto_scalarmult

from anon.crypto.nacl import libsodium
from anon.crypto.pure import nacl as pure
from anon.crypto.pure.nacl import edwards, salsa
from anon.crypto.pure.nacl.boxes import x25519
from anon.crypto.pure.nacl.edwards import FIELD_ORDER, ORDER
from anon.errors import Refused

RANDOM = random.Random(20261121)
SIZES = [0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 437, 1000]


def verdict(verify: Any, *arguments: bytes) -> str:
    """`fine`, `bad` or `wrong length`."""
    try:
        verify(*arguments)
    except (pure.BadSignatureError, nacl.exceptions.BadSignatureError):
        return "bad"
    except ValueError:
        return "wrong length"
    return "fine"


@pytest.mark.parametrize("size", SIZES)
def test_signatures_are_libsodiums(size: int) -> None:
    seed, message = RANDOM.randbytes(32), RANDOM.randbytes(size)
    mine, theirs = pure.SigningKey(seed), nacl.signing.SigningKey(seed)
    assert bytes(mine.verify_key) == bytes(theirs.verify_key) and bytes(mine) == seed
    signature = mine.sign(message).signature
    assert signature == theirs.sign(message).signature
    assert mine.verify_key.verify(message, signature) == message
    assert seed.hex() not in repr(mine)


def test_signature_vectors_of_rfc_8032() -> None:
    """7.1, tests 1 and 2."""
    for seed, message, signature in (
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "",
            (
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf"
                "5f0595bbe24655141438e7a100b"
            ),
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "72",
            (
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2"
                "eaeb4302aeeb00d291612bb0c00"
            ),
        ),
    ):
        assert pure.SigningKey(bytes.fromhex(seed)).sign(bytes.fromhex(message)).signature.hex() == signature


def small_orders() -> list[bytes]:
    """The eight points whose order divides eight, and their second spellings that fit into 255 bits."""
    x, y, z, t = edwards.IDENTITY
    generator = next(
        point
        for point in (edwards.decode(number.to_bytes(32, "little")) for number in range(2, 99))
        if point and edwards.encode(edwards.multiply(point, 4 * ORDER)) != edwards.encode((x, y, z, t))
    )
    low = edwards.multiply(generator, ORDER)
    points = {edwards.encode(edwards.multiply(low, factor)) for factor in range(8)}
    assert len(points) == 8
    words = [int.from_bytes(point, "little") for point in points]
    again = {
        (word + FIELD_ORDER).to_bytes(32, "little")
        for word in words
        if (word & (1 << 255) - 1) + FIELD_ORDER < 1 << 255
    }
    flipped = {(word ^ 1 << 255).to_bytes(32, "little") for word in words}
    return sorted(points | again | flipped)


@pytest.mark.slow
def test_hostile_signatures_get_libsodiums_verdict() -> None:
    seed, message = RANDOM.randbytes(32), b"a head"
    key = pure.SigningKey(seed)
    public, good = bytes(key.verify_key), key.sign(message).signature
    answer = int.from_bytes(good[32:], "little")
    signatures = [good, good[:-1], good + b"\0", b"", bytes(64), b"\xff" * 64]
    signatures += [
        good[:32] + (answer + times * ORDER).to_bytes(32, "little")
        for times in (1, 2, 7)
        if answer + times * ORDER < 1 << 256
    ]
    for _ in range(40):
        place, bit = RANDOM.randrange(64), 1 << RANDOM.randrange(8)
        signatures.append(good[:place] + bytes([good[place] ^ bit]) + good[place + 1 :])
    signatures += [point + good[32:] for point in small_orders()] + [point + bytes(32) for point in small_orders()]
    keys = [
        public,
        *small_orders(),
        bytes(31),
        (FIELD_ORDER + 3).to_bytes(32, "little"),
        b"\xff" * 32,
        bytes([2]) + bytes(31),
    ]
    mixed = edwards.decode(public)
    low = edwards.decode(small_orders()[-1]) or edwards.IDENTITY
    assert mixed is not None
    keys.append(edwards.encode(edwards.add(mixed, low)))
    seen = set()
    for one in keys:
        for signature in (
            signatures if one == public else [good, bytes(64), *(point + bytes(32) for point in small_orders())]
        ):
            mine = verdict(lambda k, s: pure.VerifyKey(k).verify(message, s), one, signature)
            theirs = verdict(lambda k, s: nacl.signing.VerifyKey(k).verify(message, s), one, signature)
            assert mine == theirs, (one.hex(), signature.hex())
            seen.add(mine)
    assert seen == {"fine", "bad", "wrong length"}


def test_points_are_decoded_as_libsodium_decodes_them() -> None:
    """libsodium's question also demands the prime order; the answer no is compared with ours to that question."""
    words = [
        *small_orders(),
        *(RANDOM.randbytes(32) for _ in range(60)),
        *(bytes(pure.SigningKey(RANDOM.randbytes(32)).verify_key) for _ in range(5)),
    ]
    for word in words:
        point = edwards.decode(word)
        prime = point is not None and not edwards.is_small_order(point)
        prime = (
            prime
            and point is not None
            and edwards.encode(edwards.multiply(point, ORDER)) == edwards.encode(edwards.IDENTITY)
        )
        assert prime == crypto_core_ed25519_is_valid_point(word)


@pytest.mark.parametrize("size", SIZES)
def test_boxes_open_on_either_side(size: int) -> None:
    secret, plaintext, nonce = RANDOM.randbytes(32), RANDOM.randbytes(size), RANDOM.randbytes(24)
    mine, theirs = pure.PrivateKey(secret), nacl.public.PrivateKey(secret)
    assert bytes(mine.public_key) == bytes(theirs.public_key) and bytes(mine) == secret
    boxed = pure.SecretBox(secret).encrypt(plaintext, nonce)
    assert boxed == bytes(nacl.secret.SecretBox(secret).encrypt(plaintext, nonce))
    assert pure.SecretBox(secret).decrypt(boxed) == plaintext


def test_no_damaged_box_opens() -> None:
    secret = pure.SecretBox(RANDOM.randbytes(32))
    boxed = secret.encrypt(b"a secret", RANDOM.randbytes(24))
    for place in range(len(boxed)):
        with pytest.raises(pure.CryptoError):
            secret.decrypt(boxed[:place] + bytes([boxed[place] ^ 1 << RANDOM.randrange(7)]) + boxed[place + 1 :])
        with pytest.raises(pure.CryptoError):
            secret.decrypt(boxed[:place])
    with pytest.raises(pure.CryptoError):
        secret.decrypt(boxed + b"\0")
    with pytest.raises(pure.CryptoError):
        pure.SecretBox(bytes(32)).decrypt(boxed)


def test_x25519() -> None:
    """RFC 7748, 5.2, and libsodium: also points with the unused bit, beyond the field, and on the twist."""
    scalar = bytes.fromhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
    point = bytes.fromhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
    assert x25519(scalar, point).hex() == "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"
    points = [RANDOM.randbytes(32) for _ in range(20)] + [
        (FIELD_ORDER + value).to_bytes(32, "little") for value in (2, 9, 18)
    ]
    for one in points:
        assert x25519(scalar, one) == crypto_scalarmult(scalar, one)


LOW = [0, 1, FIELD_ORDER - 1, FIELD_ORDER, FIELD_ORDER + 1,
       325606250916557431795983626356110631294008115727848805560023387167927233504,
       39382357235489614581723060781553021112529911719440698176882885853963445705823]


@pytest.mark.parametrize("point", LOW, ids=str)
def test_keys_of_small_order_are_refused_as_libsodium_does(point: int) -> None:
    data = point.to_bytes(32, "little")
    with pytest.raises(pure.CryptoError):
        x25519(bytes(32), data)
    with pytest.raises((nacl.exceptions.CryptoError, RuntimeError)):
        crypto_scalarmult(bytes(32), data)


def test_poly1305_vector_of_rfc_8439() -> None:
    """2.5.2; and sums at the edge of the prime (appendix A.3, tests 7 to 9)."""
    key = bytes.fromhex("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b")
    assert salsa.poly1305(b"Cryptographic Forum Research Group", key).hex() == "a8061dc1305136c6c22b8baf0c0127a9"
    two, one = bytes([2]) + bytes(31), bytes([1]) + bytes(31)
    assert salsa.poly1305(b"\xff" * 16, two).hex() == "03" + "00" * 15
    assert salsa.poly1305(b"\xff" * 16 + b"\xf0" + b"\xff" * 15 + b"\x11" + bytes(15), one).hex() == "05" + "00" * 15
    assert salsa.poly1305(b"\xff" * 16 + b"\xfb" + b"\xfe" * 15 + b"\x01" * 16, one).hex() == "00" * 16


def test_lengths_and_types_are_demanded() -> None:
    makers: list[Any] = [pure.SigningKey, pure.VerifyKey, pure.PublicKey, pure.PrivateKey, pure.SecretBox]
    for make in makers:
        for size in (0, 31, 33):
            with pytest.raises(ValueError, match="32 bytes"):
                make(bytes(size))
        with pytest.raises(TypeError):
            make("x" * 32)
    with pytest.raises(ValueError, match="24 bytes"):
        pure.SecretBox(bytes(32)).encrypt(b"", bytes(23))


def test_a_passphrase_is_refused_and_never_weakened() -> None:
    with pytest.raises(Refused, match="libsodium"):
        pure.passphrase_key("correct horse", bytes(16))


@pytest.mark.slow
def test_a_key_from_a_passphrase_has_the_moderate_cost(
    passphrase_cost: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The product's, at which its keys are derived: argon2id of that cost."""
    assert passphrase_cost == (3, 256 * 1024 * 1024)
    monkeypatch.setattr(libsodium, "OPERATIONS", passphrase_cost[0])
    monkeypatch.setattr(libsodium, "MEMORY", passphrase_cost[1])
    expected = nacl.pwhash.argon2id.kdf(32, b"correct horse", bytes(16), 3, 256 * 1024 * 1024)
    assert libsodium.passphrase_key("correct horse", bytes(16)) == expected


def test_signatures_that_only_the_rule_of_small_orders_refuses() -> None:
    """The equation holds for all of these; libsodium refuses them, so must we."""
    message, answer = b"two heads", RANDOM.randrange(1, ORDER)
    identity = edwards.encode(edwards.IDENTITY)
    shown = edwards.encode(edwards.multiply(edwards.BASE, answer))
    anybodys = (identity, shown + answer.to_bytes(32, "little"))
    seed = RANDOM.randbytes(32)
    key = bytes(pure.SigningKey(seed).verify_key)
    challenge = int.from_bytes(hashlib.sha512(identity + key + message).digest(), "little") % ORDER
    exponent = pure.SigningKey(seed)._exponent
    without_nonce = (key, identity + (challenge * exponent % ORDER).to_bytes(32, "little"))
    for public, signature in (anybodys, without_nonce):
        assert verdict(lambda k, s: nacl.signing.VerifyKey(k).verify(message, s), public, signature) == "bad"
        assert verdict(lambda k, s: pure.VerifyKey(k).verify(message, s), public, signature) == "bad"


def test_coordinates_beyond_the_field_are_no_points() -> None:
    for beyond in range(19):
        for sign in (0, 1):
            word = (FIELD_ORDER + beyond | sign << 255).to_bytes(32, "little")
            assert edwards.decode(word) is None and not crypto_core_ed25519_is_valid_point(word)
