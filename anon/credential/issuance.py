"""Issuing: the prover commits to secrets, the issuer signs the commitment without seeing them.

draft-irtf-cfrg-bbs-blind-signatures-02 and draft-irtf-cfrg-bbs-per-verifier-linkability-03. The issuer learns nothing
about the secrets; it knows which enrolment it signs, and the later proofs do not lead back to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NewType

from attrs import field

from anon.credential.ciphersuite import (
    API_PSEUDONYM,
    KEYGEN_DST,
    create_generators,
    encode_scalars,
    hash_to_scalar,
    hedged_scalars,
    i2osp8,
)
from anon.credential.statement import Statement, demand_count, nym_statement
from anon.crypto.curve import (
    G1,
    G1_SIZE,
    IDENTITY_G1,
    SCALAR_SIZE,
    FixedBase,
    Scalar,
    decode_g1,
    decode_scalar,
    encode_g1,
    encode_g2,
    encode_scalar,
    multiexp,
    multiply_g2_generator,
)
from anon.crypto.labels import HEDGED_SCALAR, NYM_ENTROPY
from anon.errors import Malformed, RejectedProof
from anon.values import frozen

SEED_SIZE = 32
SIGNATURE_SIZE = G1_SIZE + SCALAR_SIZE

SecretKey = NewType("SecretKey", bytes)
PublicKey = NewType("PublicKey", bytes)


@frozen
class CommitmentSecrets:
    """The prover's state between enrolment and credential: plain bytes, fit to be stored, never to be sent.

    Only `commitment_with_proof` leaves; it is a function of the others (`recommit`), so a crash repeats the same bytes.
    """

    nym_secrets: tuple[bytes, ...] = field(repr=False)
    prover_blind: bytes = field(repr=False)
    commitment_with_proof: bytes

    def __attrs_post_init__(self) -> None:
        for secret in (*self.nym_secrets, self.prover_blind):
            decode_scalar(secret, "stored secret")
        if len(self.commitment_with_proof) != commitment_size(len(self.nym_secrets)):
            raise Malformed("stored commitment: its size does not fit the number of secrets; restore the backup")


def generate_key(key_material: bytes, key_info: bytes = b"") -> SecretKey:
    """draft-irtf-cfrg-bbs-signatures KeyGen. `key_material` is at least 32 secret uniform bytes."""
    if len(key_material) < SEED_SIZE:
        raise ValueError(f"expected at least {SEED_SIZE} bytes of key material, got {len(key_material)}")
    octets = key_material + len(key_info).to_bytes(2, "big") + key_info
    return SecretKey(encode_scalar(hash_to_scalar(octets, KEYGEN_DST)))


def generate_secret_key(random_bytes: Callable[[int], bytes]) -> SecretKey:
    """A fresh issuer key, 32 bytes. One per study."""
    return generate_key(random_bytes(SEED_SIZE))


def public_key(secret_key: SecretKey) -> PublicKey:
    """W, 96 bytes: the public half of an issuer key."""
    return PublicKey(encode_g2(multiply_g2_generator(decode_scalar(secret_key, "secret key"))))


def signer_nym_entropy(seed: bytes, enrolment: bytes) -> bytes:
    """The issuer's 32-byte share of one enrolment's last nym secret, a function of a seed and the enrolment.

    The protocol's seed is the study's, public once the roster is closed: peers recompute it, and nobody chose it.

    Always a valid scalar, which a bare SHA-256 is not.
    """
    return encode_scalar(hash_to_scalar(i2osp8(len(seed)) + seed + enrolment, NYM_ENTROPY))


def commitment_size(count: int) -> int:
    """Bytes of a commitment to `count` nym secrets with its proof: 48 + 32 * (count + 2)."""
    return G1_SIZE + SCALAR_SIZE * (count + 2)


def commit(prover_nyms_count: int, random_bytes: Callable[[int], bytes]) -> CommitmentSecrets:
    """Draw secrets and commit to them. `random_bytes` must be the operating system's; one call for 32 bytes.

    The stored secrets give the same bytes again, so that a crash cannot make a second enrolment:

    >>> from os import urandom
    >>> secrets = commit(1, urandom)
    >>> recommit(secrets.nym_secrets, secrets.prover_blind) == secrets
    True
    >>> len(secrets.commitment_with_proof) == commitment_size(1) == 144
    True
    """
    demand_count(prover_nyms_count)
    seed = _seed(random_bytes)
    blind, *nyms = hedged_scalars(prover_nyms_count + 1, HEDGED_SCALAR, seed, b"commit", i2osp8(prover_nyms_count))
    return recommit(tuple(map(encode_scalar, nyms)), encode_scalar(blind))


def recommit(nym_secrets: tuple[bytes, ...], prover_blind: bytes) -> CommitmentSecrets:
    """The same commitment and proof again from the stored secrets.

    The proof's own scalars are derived from the secrets, which fix the statement, so they never serve two challenges.
    """
    demand_count(len(nym_secrets))
    secrets = [decode_scalar(secret, "stored secret") for secret in (prover_blind, *nym_secrets)]
    tildes = hedged_scalars(len(secrets), HEDGED_SCALAR, b"", b"commitment proof", prover_blind, *nym_secrets)
    return CommitmentSecrets(nym_secrets, prover_blind, prove_commitment(secrets, tildes, API_PSEUDONYM))


def prove_commitment(secrets: Sequence[Scalar], tildes: Sequence[Scalar], api_id: bytes) -> bytes:
    """CoreCommit: C || s^ || m^_1.. || c, for secrets (blind, messages...) and as many random scalars."""
    generators = create_generators(len(secrets), b"BLIND_" + api_id)
    commitment = multiexp(generators, secrets)
    challenge = _commitment_challenge(commitment, multiexp(generators, tildes), generators, api_id)
    responses = (tilde + secret * challenge for tilde, secret in zip(tildes, secrets, strict=True))
    return encode_g1(commitment) + encode_scalars(*responses, challenge)


def open_commitment(commitment_with_proof_untrusted: bytes, count: int, api_id: bytes = API_PSEUDONYM) -> G1:
    """The commitment to exactly `count` secrets, its proof verified. Raises `Malformed` or `RejectedProof`.

    The length is the issuer's to fix: a prover who chose it could hide further secrets in the signature.
    """
    size = commitment_size(count)
    if len(commitment_with_proof_untrusted) != size:
        raise Malformed(
            f"commitment: expected {size} bytes for {count} secrets, got {len(commitment_with_proof_untrusted)}; "
            "commit to as many as the study says"
        )
    commitment = decode_g1(commitment_with_proof_untrusted[:G1_SIZE], "commitment")
    *responses, challenge = decode_scalars(commitment_with_proof_untrusted[G1_SIZE:], "commitment proof")
    generators = create_generators(count + 1, b"BLIND_" + api_id)
    announced = multiexp([*generators, commitment], [*responses, -challenge])
    if _commitment_challenge(commitment, announced, generators, api_id) != challenge:
        raise RejectedProof("commitment rejected")
    return commitment


def blind_sign(
    secret_key: SecretKey,
    public_key: PublicKey,
    commitment_with_proof_untrusted: bytes,
    header: bytes,
    signer_nym_entropy: bytes,
    count: int,
) -> bytes:
    """A || e, 80 bytes: the blind signature on `count` committed nym secrets.

    Deterministic: the same enrolment gets the same bytes however often it asks. `public_key` must belong to
    `secret_key`. Raises `Malformed` or `RejectedProof` for a bad commitment.

    >>> blind_sign(secret, public_key(secret), mine.commitment_with_proof, b"study", share, count=1) == signature
    True
    >>> blind_sign(secret, public_key(secret), mine.commitment_with_proof, b"study", share, count=2)
    Traceback (most recent call last):
    anon.errors.Malformed: commitment: expected 176 bytes for 2 secrets, got 144; commit to as many as the study says
    """
    commitment = open_commitment(commitment_with_proof_untrusted, count)
    return _signed(secret_key, public_key, commitment, header, signer_nym_entropy, count)


def sign_proven(
    secret_key: SecretKey,
    public_key: PublicKey,
    commitment: bytes,
    header: bytes,
    signer_nym_entropy: bytes,
    count: int,
) -> bytes:
    """`blind_sign` of a commitment (48 bytes) whose proof `open_commitment` verified before; the same bytes.

    The caller answers for that: a signature on a commitment that nobody proved may be a forgery of another. Raises
    `Malformed` for what is no point.
    """
    return _signed(secret_key, public_key, decode_g1(commitment, "commitment"), header, signer_nym_entropy, count)


def _signed(
    secret_key: SecretKey, public_key: PublicKey, commitment: G1, header: bytes, signer_nym_entropy: bytes, count: int
) -> bytes:
    entropy = decode_scalar(signer_nym_entropy, "signer nym entropy")
    statement = nym_statement(public_key, header, count)
    return sign_base(secret_key, statement.fixed + commitment + _last_table(count).multiply(entropy), statement)


def sign_base(secret_key: SecretKey, base: G1, statement: Statement) -> bytes:
    """FinalizeBlindSign: e from the key and B, then A = B * 1/(sk + e)."""
    # A would be the identity, which no verifier decodes.
    if base == IDENTITY_G1:
        raise RejectedProof("commitment rejected")
    # A fresh B has a fresh e, and the same B the same: who asks twice gets one signature.
    exponent = hash_to_scalar(secret_key + encode_g1(base), statement.api_id + b"H2S_")
    return sign_with_exponent(secret_key, base, exponent)


def sign_with_exponent(secret_key: SecretKey, base: G1, exponent: Scalar) -> bytes:
    """A || e for a given e."""
    inverse = (decode_scalar(secret_key, "secret key") + exponent).inverse()
    return encode_g1(multiexp([base], [inverse])) + encode_scalar(exponent)


def decode_scalars(data_untrusted: bytes, what: str) -> list[Scalar]:
    """Consecutive 32-byte scalars, each checked; `Malformed` unless they fill the bytes exactly."""
    return [
        decode_scalar(data_untrusted[start : start + SCALAR_SIZE], what)
        for start in range(0, len(data_untrusted), SCALAR_SIZE)
    ]


@lru_cache(maxsize=16)
def _last_table(count: int) -> FixedBase:
    """The generator of the last nym secret, to which an issuer adds its share for each member."""
    return FixedBase(create_generators(count + 1, b"BLIND_" + API_PSEUDONYM)[-1])


def _commitment_challenge(commitment: G1, announced: G1, generators: Sequence[G1], api_id: bytes) -> Scalar:
    octets = i2osp8(len(generators) - 1) + b"".join(map(encode_g1, (*generators, commitment, announced)))
    return hash_to_scalar(octets, api_id + b"H2S_")


def _seed(random_bytes: Callable[[int], bytes]) -> bytes:
    seed = random_bytes(SEED_SIZE)
    if len(seed) != SEED_SIZE:
        raise ValueError(f"expected {SEED_SIZE} random bytes, got {len(seed)}")
    return seed
