"""The drafts' own bytes of a proof, with the challenge: an oracle for our tokens, which have the announcements instead.

    pseudonym || Abar || Bbar || D || e^ || r1^ || r3^ || m^_0 .. m^_N || c
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from anon.credential import Credential
from anon.credential.ciphersuite import encode_scalars, hash_to_scalar
from anon.credential.issuance import decode_scalars
from anon.credential.presentation import prove
from anon.credential.proof import HATS, RANDOM_SCALARS, Announcement, Proof, calculate_challenge
from anon.credential.statement import Context, Statement
from anon.credential.verification import announce, announced_ut
from anon.crypto.curve import (
    G1,
    G1_SIZE,
    IDENTITY_G1,
    SCALAR_SIZE,
    FixedBase,
    FixedBases,
    Scalar,
    decode_g1,
    encode_g1,
)
from anon.errors import Malformed, RejectedProof

POINTS = 3


def proof_size(hidden: int) -> int:
    """Bytes of a proof that hides `hidden` scalars; the last one is the challenge."""
    return POINTS * G1_SIZE + (HATS + hidden + 1) * SCALAR_SIZE


def encode_proof(proof: Proof) -> bytes:
    """Canonical bytes: three points, then the scalars, challenge last."""
    points = encode_g1(proof.a_bar) + encode_g1(proof.b_bar) + encode_g1(proof.d)
    return points + encode_scalars(proof.e_hat, proof.r1_hat, proof.r3_hat, *proof.message_hats, proof.challenge)


def draft_token(proof: Proof, announcement: Announcement) -> bytes:
    """A token as the drafts have it."""
    assert announcement.pseudonym is not None
    return encode_g1(announcement.pseudonym) + encode_proof(proof)


def drafted(credential: Credential | None, context: bytes, presentation_header: bytes) -> bytes:
    """A fresh token as the drafts have it."""
    assert credential is not None
    randomness = tuple(hash_to_scalar(os.urandom(48), b"test") for _ in range(RANDOM_SCALARS + credential.count + 1))
    return draft_token(*prove(credential, context, presentation_header, randomness))


def decode_proof(data_untrusted: bytes, hidden: int) -> Proof:
    """Every point canonical, in the subgroup and not the identity, every scalar from 1 to r-1, no byte too many."""
    if len(data_untrusted) != proof_size(hidden):
        raise Malformed(f"proof: expected {proof_size(hidden)} bytes, got {len(data_untrusted)}; send it whole")
    a_bar, b_bar, d = (
        decode_g1(data_untrusted[index * G1_SIZE : (index + 1) * G1_SIZE], name)
        for index, name in enumerate(("Abar", "Bbar", "D"))
    )
    e_hat, r1_hat, r3_hat, *message_hats, challenge = decode_scalars(data_untrusted[POINTS * G1_SIZE :], "proof scalar")
    return Proof(a_bar, b_bar, d, e_hat, r1_hat, r3_hat, tuple(message_hats), challenge)


def announce_nym(proof: Proof, pseudonym: G1, context: tuple[Context, FixedBase], nym_count: int) -> tuple[G1, G1]:
    """The pseudonym and a Ut other than the identity (NymProofVerifyInit). Raises `RejectedProof`."""
    ut = announced_ut(proof, pseudonym, context, nym_count)
    if ut == IDENTITY_G1:
        raise RejectedProof("token rejected")
    return pseudonym, ut


def demand_challenge(
    proof: Proof,
    statement: Statement,
    bases: FixedBases,
    revealed: Mapping[int, Scalar],
    presentation_header: bytes,
    nym: tuple[Context, G1, G1] | None = None,
) -> None:
    """The challenge is the hash of what it announces; raises `RejectedProof`."""
    context, *shown = nym if nym is not None else (None,)
    announcement = announce(proof, statement, bases, revealed, (shown[0], shown[1]) if shown else None)
    points = (proof.a_bar, proof.b_bar, proof.d)
    if calculate_challenge(statement, points, announcement, revealed, presentation_header, context) != proof.challenge:
        raise RejectedProof("token rejected")
