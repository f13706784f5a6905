"""The proof of knowledge of a signature, with or without a pseudonym: its challenge, its making.

draft-irtf-cfrg-bbs-signatures ProofInit, ProofChallengeCalculate and ProofFinalize, and CoreProofGenWithNym of
draft-irtf-cfrg-bbs-per-verifier-linkability-03. The verdict on a proof is in `verification`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anon.credential.ciphersuite import hash_to_scalar, i2osp8
from anon.credential.statement import Context, Statement
from anon.crypto.curve import (
    G1,
    Scalar,
    encode_g1,
    encode_scalar,
    multiexp,
)
from anon.values import frozen

RANDOM_SCALARS = 5
HATS = 3
"""The responses e^, r1^ and r3^, beside one for each hidden scalar."""


@frozen
class Proof:
    """Abar, Bbar, D, the responses e^, r1^, r3^, one m^ per hidden scalar, and the challenge."""

    a_bar: G1
    b_bar: G1
    d: G1
    e_hat: Scalar
    r1_hat: Scalar
    r3_hat: Scalar
    message_hats: tuple[Scalar, ...]
    challenge: Scalar


@frozen
class Announcement:
    """T1 and T2 of the drafts, and for a pseudonym the pseudonym itself with its Ut."""

    t1: G1
    t2: G1
    pseudonym: G1 | None = None
    ut: G1 | None = None


def calculate_challenge(
    statement: Statement,
    points: tuple[G1, G1, G1],
    announcement: Announcement,
    revealed: Mapping[int, Scalar],
    presentation_header: bytes,
    context: Context | None,
) -> Scalar:
    """Fiat-Shamir over everything shown: revealed scalars by index, all points, domain, header, context."""
    octets = i2osp8(len(revealed))
    octets += b"".join(i2osp8(index) + encode_scalar(revealed[index]) for index in sorted(revealed))
    nym = [point for point in (announcement.pseudonym, announcement.ut) if point is not None]
    octets += b"".join(map(encode_g1, (*points, announcement.t1, announcement.t2, *nym)))
    octets += encode_scalar(statement.domain) + i2osp8(len(presentation_header)) + presentation_header
    if context is not None:
        octets += i2osp8(len(context.octets)) + context.octets
    return hash_to_scalar(octets, statement.api_id + b"H2S_")


def make_proof(
    statement: Statement,
    signature: tuple[G1, Scalar],
    base: G1,
    scalars: Sequence[Scalar],
    revealed: frozenset[int],
    randomness: Sequence[Scalar],
    presentation_header: bytes,
    context: Context | None = None,
    nym_count: int = 0,
) -> tuple[Proof, Announcement]:
    """The proof, and what was announced; with a context the last `nym_count` scalars are the nym secrets.

    `base` is `statement.base(scalars)`; `randomness` holds 5 scalars and one per hidden scalar, never used before.
    """
    hidden = [index for index in range(len(scalars)) if index not in revealed]
    if len(randomness) != RANDOM_SCALARS + len(hidden):
        raise ValueError(f"expected {RANDOM_SCALARS + len(hidden)} random scalars, got {len(randomness)}")
    r1, r2, e_tilde, r1_tilde, r3_tilde, *tildes = randomness
    point, exponent = signature
    d = multiexp([base], [r2])
    a_bar = multiexp([point], [r1 * r2])
    # The draft's Bbar = D * r1 - Abar * e, as one sum of two products.
    b_bar = multiexp([base, point], [r1 * r2, -(r1 * r2 * exponent)])
    t1 = multiexp([a_bar, d], [e_tilde, r1_tilde])
    t2 = multiexp([d, *(statement.generators[index] for index in hidden)], [r3_tilde, *tildes])
    announcement = Announcement(t1, t2)
    if context is not None:
        pseudonym = multiexp([context.point], [context.evaluate(scalars[-nym_count:])])
        ut = multiexp([context.point], [context.evaluate(tildes[-nym_count:])])
        announcement = Announcement(t1, t2, pseudonym, ut)
    shown = {index: scalars[index] for index in revealed}
    challenge = calculate_challenge(statement, (a_bar, b_bar, d), announcement, shown, presentation_header, context)
    message_hats = (tilde + scalars[index] * challenge for tilde, index in zip(tildes, hidden, strict=True))
    proof = Proof(
        a_bar,
        b_bar,
        d,
        e_tilde + exponent * challenge,
        r1_tilde - r1 * challenge,
        r3_tilde - r2.inverse() * challenge,
        tuple(message_hats),
        challenge,
    )
    return proof, announcement
