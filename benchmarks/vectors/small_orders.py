"""Tokens whose points have parts of small order, and tokens of nobody made of such points.

An equation times the cofactor does not see these parts, and neither does a pairing (`anon.credential.announced`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from attrs import evolve

from anon.credential import Credential, PublicKey, Token
from anon.credential.credential import decode_signature
from anon.credential.presentation import encode_token, prove
from anon.credential.proof import Announcement, Proof, calculate_challenge
from anon.credential.statement import make_context, nym_statement
from anon.crypto.curve import G1, ORDER, Scalar, decode_scalar, multiexp
from anon.crypto.pure.curve import G1 as PureG1
from anon.crypto.pure.curve import jacobian

COFACTOR_PRIMES = (3, 11, 10177, 859267, 52437899)
"""All that divide the cofactor of G1's curve, which is 3 * 11^2 * 10177^2 * 859267^2 * 52437899^2."""
COFACTOR = 0x396C8C005555E1568C00AAAB0000AAAB
AFFINE = ("a_bar", "b_bar", "d", "t1", "t2", "ut")
"""The points of a token behind its pseudonym, by the fields of proof and announcement."""


@cache
def torsion(prime: int) -> G1:
    """A point of the curve whose order is this prime."""
    x = 0
    while True:
        x += 1
        try:
            point = PureG1.from_compressed_bytes_unchecked(((1 << 383) | x).to_bytes(48, "big"))
        except ValueError:
            continue
        rest = COFACTOR
        while rest % prime == 0:
            rest //= prime
        small = PureG1(jacobian.multiply((*(point.affine() or (0, 0)), 1), rest * ORDER))
        if small.affine() is not None:
            return G1.from_compressed_bytes_unchecked(small.to_compressed_bytes())


def shifted_token(
    credential: Credential,
    context: bytes,
    presentation: bytes,
    randomness: Sequence[Scalar],
    shifts: Mapping[str, G1],
) -> Token:
    """A holder's token, with points shifted before they are hashed. `shifts`: by the names above, or "pseudonym"."""
    proof, announcement = prove(credential, context, presentation, tuple(randomness))
    for name, by in shifts.items():
        if name in ("a_bar", "b_bar", "d"):
            proof = evolve(proof, **{name: getattr(proof, name) + by})
        else:
            announcement = evolve(announcement, **{name: getattr(announcement, name) + by})
    statement = nym_statement(credential.public_key, credential.header, credential.count)
    points = (proof.a_bar, proof.b_bar, proof.d)
    hashed = calculate_challenge(statement, points, announcement, {}, presentation, make_context(context))
    more = hashed - proof.challenge
    secrets = [decode_scalar(one, "secret") for one in (credential.prover_blind, *credential.nym_secrets)]
    answered = Proof(
        *points,
        proof.e_hat + decode_signature(credential.signature)[1] * more,
        proof.r1_hat - randomness[0] * more,
        proof.r3_hat - randomness[1].inverse() * more,
        tuple(hat + secret * more for hat, secret in zip(proof.message_hats, secrets, strict=True)),
        hashed,
    )
    return encode_token(answered, announcement)


def forged_token(
    key: PublicKey, header: bytes, context: bytes, presentation: bytes, nothing: G1, draw: Callable[[], Scalar]
) -> Token:
    """A token without a credential, for one nym secret. `nothing` stands for Abar and Bbar, and satisfies the pairing:
    the identity, or a point of small order."""
    statement, place = nym_statement(key, header, 1), make_context(context)
    r1_tilde, r3_tilde, *drawn = (draw() for _ in range(6))
    secrets, tildes = drawn[:2], drawn[2:]
    d = statement.base(secrets)
    announcement = Announcement(
        d * r1_tilde,
        multiexp([d, *statement.generators], [r3_tilde, *tildes]),
        place.point * secrets[1],
        place.point * tildes[1],
    )
    points = (nothing, nothing, d)
    challenge = calculate_challenge(statement, points, announcement, {}, presentation, place)
    hats = tuple(tilde + secret * challenge for tilde, secret in zip(tildes, secrets, strict=True))
    return encode_token(Proof(*points, draw(), r1_tilde, r3_tilde - challenge, hats, challenge), announcement)
