"""Suite BLS12-381-SHA-256 of draft-irtf-cfrg-bbs-signatures: hashing, generators, domain.

An `api_id` separates the three uses: the core scheme, the blind scheme and, what the protocol speaks, the pseudonym
scheme. The first two are here so that their official vectors run through the same code.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from anon.crypto.curve import G1, Scalar, decode_g1, encode_g1, encode_scalar, hash_to_g1, scalar_from_uniform
from anon.crypto.expand_message import expand_message

API_CORE = b"BBS_BLS12381G1_XMD:SHA-256_SSWU_RO_H2G_HM2S_"
API_BLIND = b"BBS_BLS12381G1_XMD:SHA-256_SSWU_RO_BLIND_H2G_HM2S_"
API_PSEUDONYM = b"BBS_BLS12381G1_XMD:SHA-256_SSWU_RO_H2G_HM2S_PSEUDONYM_"
KEYGEN_DST = b"BBS_BLS12381G1_XMD:SHA-256_SSWU_RO_H2G_HM2S_KEYGEN_DST_"

EXPAND_SIZE = 48
# The drafts' constant was hashed to the curve: nobody knows its logarithm to another generator.
P1 = decode_g1(
    bytes.fromhex("a8ce256102840821a3e94ea9025e4662b205762f9776b3a766c872b948f1fd225e7c59698588e70d11406d161b4e28c9"),
    "P1",
)


def i2osp8(value: int) -> bytes:
    """`value` in eight big-endian bytes, as the drafts write every count and length."""
    return value.to_bytes(8, "big")


def hash_to_scalar(message: bytes, dst: bytes) -> Scalar:
    """draft-irtf-cfrg-bbs-signatures, hash_to_scalar: 48 expanded bytes reduced modulo the group order."""
    return scalar_from_uniform(expand_message(message, dst, EXPAND_SIZE))


def message_to_scalar(message: bytes, api_id: bytes) -> Scalar:
    """draft-irtf-cfrg-bbs-signatures, messages_to_scalars, for one message."""
    return hash_to_scalar(message, api_id + b"MAP_MSG_TO_SCALAR_AS_HASH_")


@lru_cache(maxsize=128)
def create_generators(count: int, api_id: bytes) -> tuple[G1, ...]:
    """The first `count` generators under `api_id` (draft-irtf-cfrg-bbs-signatures, create_generators)."""
    seed_dst = api_id + b"SIG_GENERATOR_SEED_"
    state = expand_message(api_id + b"MESSAGE_GENERATOR_SEED", seed_dst, EXPAND_SIZE)
    generators = []
    for number in range(1, count + 1):
        state = expand_message(state + i2osp8(number), seed_dst, EXPAND_SIZE)
        generators.append(hash_to_g1(state, api_id + b"SIG_GENERATOR_DST_"))
    return tuple(generators)


def calculate_domain(public_key: bytes, generators: tuple[G1, ...], header: bytes, api_id: bytes) -> Scalar:
    """Binds key, generators (Q_1 first) and header (draft-irtf-cfrg-bbs-signatures, calculate_domain)."""
    octets = public_key + i2osp8(len(generators) - 1) + b"".join(map(encode_g1, generators)) + api_id
    return hash_to_scalar(octets + i2osp8(len(header)) + header, api_id + b"H2S_")


def hedged_scalars(count: int, label: bytes, randomness: bytes, *inputs: bytes) -> tuple[Scalar, ...]:
    """`count` scalars that depend on the randomness and on every input.

    A stuck random generator thus never repeats a scalar for different inputs, and unknown inputs keep the scalars
    unpredictable. Randomness and secrets are hashed once, each with its length.
    """
    digest = hashlib.sha256(b"".join(i2osp8(len(part)) + part for part in (label, randomness, *inputs))).digest()
    return tuple(hash_to_scalar(digest + i2osp8(number), label) for number in range(count))


def encode_scalars(*scalars: Scalar) -> bytes:
    """The scalars one after another, 32 bytes each."""
    return b"".join(map(encode_scalar, scalars))
