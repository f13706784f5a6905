"""The prover's side of issuing: believe nothing until the whole credential verifies.

A malicious issuer could mark a member with a signature that only looks right: a small-order point added to A, another
key, a key outside its subgroup. Each would show later in the tokens. So a `Credential` exists only after W and A were
found canonical, in their subgroups and not the identity, and the signature valid under the W of the manifest.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field

from anon.credential.issuance import SIGNATURE_SIZE, CommitmentSecrets, PublicKey
from anon.credential.statement import nym_statement
from anon.crypto.curve import (
    G1,
    G1_SIZE,
    G2,
    IDENTITY_G1,
    NEGATED_GENERATOR_G2,
    Scalar,
    decode_g1,
    decode_g2,
    decode_scalar,
    encode_g1,
    encode_scalar,
    pairing_product_is_one,
)
from anon.errors import Malformed, RejectedProof
from anon.values import frozen


@frozen
class Credential:
    """A verified credential; made by `finalize` alone, which a peer calls again after loading the parts from disk.

    Secret throughout: `repr` shows nothing. `base` is B of the drafts, kept because every token starts from it.
    """

    public_key: PublicKey = field(repr=False)
    header: bytes = field(repr=False)
    signature: bytes = field(repr=False)
    base: bytes = field(repr=False)
    prover_blind: bytes = field(repr=False)
    nym_secrets: tuple[bytes, ...] = field(repr=False)

    @property
    def count(self) -> int:
        """How many nym secrets it has: the most tokens that stay unlinkable whatever is computed later."""
        return len(self.nym_secrets)


def finalize(
    public_key: PublicKey,
    header: bytes,
    signature_untrusted: bytes,
    signer_nym_entropy: bytes,
    secrets: CommitmentSecrets,
) -> Credential:
    """Verify the issuer's answer in full and build the credential (VerifyFinalizeWithNym).

    Raises `Malformed` for anything not canonical, outside its subgroup or the identity, `RejectedProof` for a signature
    that is not this key's on these secrets and this header. Assumes that `public_key` is the manifest's.

    >>> finalize(credential.public_key, b"study", signature, share, mine) == credential
    True
    >>> finalize(credential.public_key, b"another study", signature, share, mine)
    Traceback (most recent call last):
    anon.errors.RejectedProof: credential rejected
    """
    key = decode_g2(public_key, "issuer key")
    signature = decode_signature(signature_untrusted)
    nyms = finish_nym_secrets(secrets.nym_secrets, signer_nym_entropy)
    statement = nym_statement(public_key, header, len(nyms))
    base = statement.base([decode_scalar(secrets.prover_blind, "prover blind"), *nyms])
    if not signature_holds(key, signature, base):
        raise RejectedProof("credential rejected")
    finished = tuple(map(encode_scalar, nyms))
    return Credential(public_key, header, signature_untrusted, encode_g1(base), secrets.prover_blind, finished)


def decode_signature(signature_untrusted: bytes) -> tuple[G1, Scalar]:
    """A and e, each checked."""
    if len(signature_untrusted) != SIGNATURE_SIZE:
        raise Malformed(f"signature: expected {SIGNATURE_SIZE} bytes, got {len(signature_untrusted)}; fetch it again")
    point = decode_g1(signature_untrusted[:G1_SIZE], "signature A")
    return point, decode_scalar(signature_untrusted[G1_SIZE:], "signature e")


def finish_nym_secrets(prover_nyms: Sequence[bytes], signer_nym_entropy: bytes) -> list[Scalar]:
    """The nym secrets: the prover's, with the signer's entropy added to the last."""
    *others, last = (decode_scalar(nym, "nym secret") for nym in prover_nyms)
    last = last + decode_scalar(signer_nym_entropy, "signer nym entropy")
    if last.is_zero():
        raise RejectedProof("credential rejected")
    return [*others, last]


def signature_holds(key: G2, signature: tuple[G1, Scalar], base: G1) -> bool:
    """e(A, W + BP2 * e) = e(B, BP2), written as e(A, W) * e(B - A * e, -BP2) = 1. All points checked already."""
    point, exponent = signature
    if base == IDENTITY_G1:
        return False
    return pairing_product_is_one([(point, key), (base - point * exponent, NEGATED_GENERATOR_G2)])
