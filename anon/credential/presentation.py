"""Making tokens: a pseudonym and a proof with its announcements, 832 bytes for one nym secret.

A token proves "a holder of this issuer's credential", binds the presentation header, and carries the one pseudonym this
credential has in this context. Two tokens for different contexts share nothing; two for one context share
the pseudonym.

    pseudonym || Abar || Bbar || D || T1 || T2 || Ut || e^ || r1^ || r3^ || m^_0 .. m^_N

The drafts have the challenge c in place of T1, T2 and Ut, of the same proof. Either form is computed from the other
(tests/anon/credential/draft_form.py). With the announcements many tokens are verified at once for half the work
(`announced`): three points more, and no challenge, which is their hash.

Each point is compressed, 48 bytes, and followed by its y, 48 more: without that reading costs a square root, a third of
a verifier's work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NewType

from anon.credential.ciphersuite import encode_scalars, hedged_scalars
from anon.credential.credential import Credential, decode_signature
from anon.credential.issuance import SEED_SIZE
from anon.credential.proof import HATS, RANDOM_SCALARS, Announcement, Proof, make_proof
from anon.credential.statement import make_context, nym_statement
from anon.crypto.curve import (
    IDENTITY_G1,
    SCALAR_SIZE,
    WIDE_SIZE,
    Scalar,
    decode_g1,
    decode_scalar,
    encode_g1,
    encode_g1_wide,
)
from anon.crypto.labels import HEDGED_SCALAR

Tag = NewType("Tag", bytes)
Token = NewType("Token", bytes)

POINTS_SIZE = 7 * WIDE_SIZE


def token_size(count: int) -> int:
    """Bytes of a token for `count` nym secrets: 832 for one, 32 more for each other."""
    return POINTS_SIZE + (HATS + count + 1) * SCALAR_SIZE


def pseudonym(credential: Credential, context: bytes) -> Tag:
    """The token's tag: the 48 bytes that this credential shows in this context, and in no other.

    >>> pseudonym(credential, b"slot 0") == token[:48], pseudonym(credential, b"slot 1") == token[:48]
    (True, False)
    """
    place = make_context(context)
    return Tag(encode_g1(place.point * place.evaluate(_nyms(credential))))


def present(
    credential: Credential,
    context: bytes,
    presentation_header: bytes,
    random_bytes: Callable[[int], bytes],
) -> Token:
    """A token for this context, bound to `presentation_header`.

    `random_bytes` must be the operating system's; one call for 32 bytes. The proof's scalars are hedged: they depend on
    the randomness, on every secret and on every input, so a stuck generator never answers two challenges with one
    scalar. Assumes that the credential came from `finalize`.

    Two tokens of one slot have one tag, by which the second is refused, and nothing else in common:

    >>> again = present(credential, b"slot 0", b"digest of another packet", urandom)
    >>> again[:48] == token[:48], again[96:192] == token[96:192], len(again) == token_size(1)
    (True, False, True)
    """
    seed = random_bytes(SEED_SIZE)
    if len(seed) != SEED_SIZE:
        raise ValueError(f"expected {SEED_SIZE} random bytes, got {len(seed)}")
    secrets = (credential.signature, credential.prover_blind, *credential.nym_secrets)
    inputs = (b"token", credential.public_key, credential.header, *secrets, context, presentation_header)
    randomness = hedged_scalars(RANDOM_SCALARS + credential.count + 1, HEDGED_SCALAR, seed, *inputs)
    return encode_token(*prove(credential, context, presentation_header, randomness))


def prove(
    credential: Credential, context: bytes, presentation_header: bytes, randomness: tuple[Scalar, ...]
) -> tuple[Proof, Announcement]:
    """The proof of a token, with its scalars given. Only `present` and the official vectors call it."""
    proof, announcement = make_proof(
        nym_statement(credential.public_key, credential.header, credential.count),
        decode_signature(credential.signature),
        decode_g1(credential.base, "credential base"),
        [decode_scalar(credential.prover_blind, "prover blind"), *_nyms(credential)],
        frozenset(),
        randomness,
        presentation_header,
        make_context(context),
        credential.count,
    )
    # A tag that is the identity could be shared by many. Honest secrets meet it as rarely as 2^-255.
    if announcement.pseudonym in (None, IDENTITY_G1):
        raise ValueError("expected a pseudonym other than the identity; enrol again with fresh secrets")
    return proof, announcement


def encode_token(proof: Proof, announcement: Announcement) -> Token:
    """The token's canonical bytes. Raises `ValueError` for a proof without pseudonym."""
    if announcement.pseudonym is None or announcement.ut is None:
        raise ValueError("expected a proof with a pseudonym")
    shown = (announcement.pseudonym, proof.a_bar, proof.b_bar, proof.d)
    points = (*shown, announcement.t1, announcement.t2, announcement.ut)
    responses = encode_scalars(proof.e_hat, proof.r1_hat, proof.r3_hat, *proof.message_hats)
    return Token(b"".join(map(encode_g1_wide, points)) + responses)


def _nyms(credential: Credential) -> list[Scalar]:
    return [decode_scalar(secret, "nym secret") for secret in credential.nym_secrets]
