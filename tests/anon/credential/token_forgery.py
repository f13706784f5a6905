"""A member who does not follow the protocol: tokens with shifted points, a wrong Bbar, or no credential at all."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pytest
from attrs import frozen

from anon.credential import (
    CommitmentSecrets,
    Credential,
    PublicKey,
    SecretKey,
    blind_sign,
    commit,
    finalize,
    generate_secret_key,
    public_key,
    signer_nym_entropy,
)
from anon.credential.ciphersuite import hash_to_scalar
from anon.credential.credential import decode_signature
from anon.credential.presentation import encode_token
from anon.credential.proof import Announcement, Proof, calculate_challenge
from anon.credential.statement import make_context, nym_statement
from anon.crypto.curve import G1, IDENTITY_G1, Scalar, decode_g1, decode_scalar, multiexp
from benchmarks.vectors.small_orders import forged_token

HEADER = b"study and roster"
CONTEXT = b"slot 0"
PRESENTATION = b"packet"
# The token's points in their order.
SEVEN = ("pseudonym", "a_bar", "b_bar", "d", "t1", "t2", "ut")
POINTS_END = 96 * len(SEVEN)
# (0, 2) has order 3 and lies on the curve, outside the subgroup: the cofactor of G1 is divisible by 3.
ORDER_THREE = G1.from_compressed_bytes_unchecked(b"\x80" + bytes(47))


@frozen
class Member:
    """An issuer and one of its members, with all that passed between them."""

    secret_key: SecretKey
    public_key: PublicKey
    secrets: CommitmentSecrets
    entropy: bytes
    signature: bytes
    credential: Credential


def span(place: int) -> slice:
    """The bytes of a point or scalar, by its number in the token."""
    if place >= len(SEVEN):
        start = POINTS_END + 32 * (place - len(SEVEN))
        return slice(start, start + 32)
    return slice(96 * place, 96 * (place + 1))


def fields(token: bytes) -> list[bytes]:
    """Its points and scalars."""
    count = len(SEVEN) + (len(token) - POINTS_END) // 32
    return [token[span(place)] for place in range(count)]


def with_field(token: bytes, place: int, value: bytes) -> bytes:
    return token[: span(place).start] + value + token[span(place).stop :]


def enrol(secret_key: SecretKey | None = None, header: bytes = HEADER, count: int = 1) -> Member:
    secret_key = generate_secret_key(os.urandom) if secret_key is None else secret_key
    key, secrets = public_key(secret_key), commit(count, os.urandom)
    entropy = signer_nym_entropy(bytes(32), secrets.commitment_with_proof)
    signature = blind_sign(secret_key, key, secrets.commitment_with_proof, header, entropy, count)
    return Member(secret_key, key, secrets, entropy, signature, finalize(key, header, signature, entropy, secrets))


def random_scalar() -> Scalar:
    return hash_to_scalar(os.urandom(48), b"test")


def crafted(
    credential: Credential,
    context: bytes = CONTEXT,
    header: bytes = PRESENTATION,
    shifts: Mapping[str, G1] | None = None,
    r1_error: Scalar | None = None,
    r2: Scalar | None = None,
    nym_tilde: Scalar | None = None,
) -> bytes:
    """A token made as the draft says, except: points shifted before they are hashed, r1 wrong inside Bbar, a chosen
    m~."""
    moved = dict.fromkeys(SEVEN, IDENTITY_G1) | dict(shifts or {})
    statement = nym_statement(credential.public_key, credential.header, credential.count)
    place = make_context(context)
    point, exponent = decode_signature(credential.signature)
    scalars = [decode_scalar(each, "secret") for each in (credential.prover_blind, *credential.nym_secrets)]
    r1, e_tilde, r1_tilde, r3_tilde = (random_scalar() for _ in range(4))
    r2 = r2 or random_scalar()
    tildes = [random_scalar() for _ in scalars]
    tildes[-1] = tildes[-1] if nym_tilde is None else nym_tilde
    d = decode_g1(credential.base, "base") * r2
    a_bar = point * (r1 * r2)
    r1 = r1 + r1_error if r1_error else r1
    b_bar = d * r1 - a_bar * exponent
    t1 = multiexp([a_bar, d], [e_tilde, r1_tilde])
    t2 = multiexp([d, *statement.generators], [r3_tilde, *tildes])
    pseudonym = place.point * place.evaluate(scalars[1:]) + moved["pseudonym"]
    points = (a_bar + moved["a_bar"], b_bar + moved["b_bar"], d + moved["d"])
    ut = place.point * place.evaluate(tildes[1:])
    announcement = Announcement(t1 + moved["t1"], t2 + moved["t2"], pseudonym, ut + moved["ut"])
    challenge = calculate_challenge(statement, points, announcement, {}, header, place)
    hats = [tilde + secret * challenge for tilde, secret in zip(tildes, scalars, strict=True)]
    responses = (
        e_tilde + exponent * challenge,
        r1_tilde - r1 * challenge,
        r3_tilde - r2.inverse() * challenge,
    )
    return encode_token(Proof(*points, *responses, tuple(hats), challenge), announcement)


def forged_without_credential(key: PublicKey, header: bytes = HEADER, nothing: G1 = IDENTITY_G1) -> bytes:
    """Abar = Bbar = identity satisfies the pairing for anyone, and so do points of small order: against each stands one
    check."""
    return forged_token(key, header, CONTEXT, PRESENTATION, nothing, random_scalar)


def decode_g1_lax(data_untrusted: bytes, what: str) -> G1:
    """The decoding of a careless verifier: it does not check the subgroup."""
    return G1.from_compressed_bytes_unchecked(data_untrusted)


def decode_g1_wide_lax(data_untrusted: bytes, what: str) -> G1:
    return G1.from_xy_bytes_unchecked_be(bytes([data_untrusted[0] & 0x1F]) + data_untrusted[1:])


def remove_point_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anon.credential.verification.demand_subgroup", lambda *_: None)
    monkeypatch.setattr("anon.credential.verification.decode_g1_wide", decode_g1_wide_lax)
    monkeypatch.setattr("anon.credential.verification.demand_large_order", lambda *_: None)
    for module in ("credential", "issuance"):
        monkeypatch.setattr(f"anon.credential.{module}.decode_g1", decode_g1_lax)
