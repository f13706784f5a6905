"""Issuing, from both sides: what the issuer must refuse, and what a malicious issuer could try on a peer."""

from __future__ import annotations

import os

import pytest
from attrs import evolve

from anon.credential import (
    CommitmentSecrets,
    PublicKey,
    SecretKey,
    blind_sign,
    commit,
    commitment_size,
    finalize,
    generate_secret_key,
    public_key,
    recommit,
    signer_nym_entropy,
)
from anon.credential.statement import nym_statement
from anon.crypto.curve import (
    G2,
    IDENTITY_G2,
    ORDER,
    Scalar,
    decode_g1,
    decode_scalar,
    encode_g1,
    encode_scalar,
)
from anon.errors import Malformed, Refused, RejectedProof
from tests.anon.credential.token_forgery import HEADER, ORDER_THREE, Member, enrol, remove_point_checks


def sign(member: Member, commitment: bytes, count: int = 1) -> bytes:
    return blind_sign(member.secret_key, member.public_key, commitment, HEADER, member.entropy, count)


def accept(
    member: Member,
    signature: bytes | None = None,
    key: bytes | None = None,
    header: bytes = HEADER,
    entropy: bytes | None = None,
    secrets: CommitmentSecrets | None = None,
) -> None:
    finalize(
        PublicKey(key or member.public_key),
        header,
        signature or member.signature,
        entropy or member.entropy,
        secrets or member.secrets,
    )


# The issuer's side.


@pytest.mark.parametrize("count", [1, 2, 5])
def test_issuing_is_idempotent(count: int) -> None:
    member = enrol(count=count)
    again = sign(member, member.secrets.commitment_with_proof, count)
    assert again == member.signature
    assert len(again) == 80
    assert len(member.secrets.commitment_with_proof) == commitment_size(count) == 48 + 32 * (count + 2)


def test_another_enrolment_or_another_header_gets_another_signature(member: Member) -> None:
    other = commit(1, os.urandom).commitment_with_proof
    assert sign(member, other) != member.signature
    key, commitment = member.public_key, member.secrets.commitment_with_proof
    assert blind_sign(member.secret_key, key, commitment, b"other", member.entropy, 1) != member.signature


@pytest.mark.parametrize(("sent", "expected"), [(2, 1), (1, 2), (3, 2)])
def test_the_issuer_fixes_the_length_of_the_commitment(sent: int, expected: int, member: Member) -> None:
    commitment = commit(sent, os.urandom).commitment_with_proof
    with pytest.raises(Malformed, match=f"for {expected} secrets"):
        sign(member, commitment, expected)
    sign(member, commitment, sent)  # what an issuer would sign that took the length from the sender


@pytest.mark.slow
def test_every_flipped_bit_of_a_commitment_is_refused(member: Member) -> None:
    commitment = member.secrets.commitment_with_proof
    for bit in range(8 * len(commitment)):
        altered = bytearray(commitment)
        altered[bit // 8] ^= 1 << bit % 8
        with pytest.raises((Malformed, RejectedProof)):
            sign(member, bytes(altered))


def test_a_commitment_without_a_proof_of_its_own_is_refused(member: Member) -> None:
    """Another's commitment point under one's own proof."""
    other = commit(1, os.urandom).commitment_with_proof
    with pytest.raises(RejectedProof):
        sign(member, member.secrets.commitment_with_proof[:48] + other[48:])


def test_a_small_order_point_in_a_commitment_is_refused(member: Member) -> None:
    commitment = member.secrets.commitment_with_proof
    shifted = encode_g1(decode_g1(commitment[:48], "commitment") + ORDER_THREE)
    with pytest.raises(Malformed, match="subgroup"):
        sign(member, shifted + commitment[48:])


@pytest.mark.parametrize("wrong", [bytes(32), ORDER.to_bytes(32, "big"), bytes(31)])
def test_entropy_must_be_a_scalar(wrong: bytes, member: Member) -> None:
    with pytest.raises(Malformed):
        blind_sign(member.secret_key, member.public_key, member.secrets.commitment_with_proof, HEADER, wrong, 1)


def test_entropy_is_a_function_of_seed_and_enrolment() -> None:
    made = {signer_nym_entropy(seed, enrolment) for seed in (b"a", b"ab") for enrolment in (b"b", b"bb", b"")}
    assert len(made) == 6
    assert signer_nym_entropy(b"a", b"b") in made
    for entropy in made:
        decode_scalar(entropy, "entropy")


@pytest.mark.parametrize("count", [0, -1, 257])
def test_the_number_of_secrets_is_bounded(count: int) -> None:
    with pytest.raises(Refused):
        commit(count, os.urandom)


# The peer's side.


def test_the_credential_is_accepted(member: Member) -> None:
    accept(member)


def test_a_commitment_can_be_repeated_from_what_is_stored(member: Member) -> None:
    assert recommit(member.secrets.nym_secrets, member.secrets.prover_blind) == member.secrets
    assert recommit(member.secrets.nym_secrets[:1], commit(1, os.urandom).prover_blind) != member.secrets


def test_stored_secrets_are_valid_once_loaded(member: Member) -> None:
    for damage in ({"nym_secrets": ()}, {"prover_blind": bytes(32)}, {"nym_secrets": (b"\xff" * 32,)}):
        with pytest.raises(Malformed):
            evolve(member.secrets, **damage)


def test_a_mark_in_the_signature_is_refused(member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    """A + T verifies like A, since pairings do not see T; its tokens would carry T to the aggregator."""
    marked = encode_g1(decode_g1(member.signature[:48], "A") + ORDER_THREE) + member.signature[48:]
    with pytest.raises(Malformed, match="subgroup"):
        accept(member, signature=marked)
    remove_point_checks(monkeypatch)
    accept(member, signature=marked)


def test_a_signature_under_another_key_is_refused(member: Member) -> None:
    """A key for one peer alone would tell that peer's tokens from all others."""
    other = generate_secret_key(os.urandom)
    commitment = member.secrets.commitment_with_proof
    signature = blind_sign(other, public_key(other), commitment, HEADER, member.entropy, 1)
    with pytest.raises(RejectedProof):
        accept(member, signature=signature)
    half_marked = blind_sign(other, member.public_key, commitment, HEADER, member.entropy, 1)
    with pytest.raises(RejectedProof):
        accept(member, signature=half_marked)


def test_the_identity_as_key_is_refused(member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under it A = B * 1/e verifies, for anybody: no secret is needed."""
    key = PublicKey(IDENTITY_G2.to_compressed_bytes())
    secrets = [decode_scalar(member.secrets.prover_blind, "blind"), *_finished(member)]
    exponent = Scalar(7)
    point = nym_statement(key, HEADER, 1).base(secrets) * exponent.inverse()
    signature = encode_g1(point) + encode_scalar(exponent)
    with pytest.raises(Malformed, match="identity"):
        accept(member, signature=signature, key=key)
    monkeypatch.setattr("anon.credential.credential.decode_g2", lambda *_: IDENTITY_G2)
    accept(member, signature=signature, key=key)


def test_a_key_outside_its_subgroup_is_refused(member: Member) -> None:
    outside = _outside_the_subgroup() + G2.from_compressed_bytes_unchecked(member.public_key)
    assert not outside.is_in_subgroup()
    with pytest.raises(Malformed, match="subgroup"):
        accept(member, key=outside.to_compressed_bytes())


@pytest.mark.parametrize("spelled", [b"\xe0" + bytes(95), b"\xc0" + bytes(94) + b"\1"])
def test_other_spellings_of_a_key_are_refused(spelled: bytes, member: Member) -> None:
    with pytest.raises(Malformed, match="canonical"):
        accept(member, key=spelled)


def test_identity_or_other_spellings_in_the_signature_are_refused(member: Member) -> None:
    rest = member.signature[48:]
    for point, reason in ((b"\xc0" + bytes(47), "identity"), (b"\xe0" + bytes(47), "canonical")):
        with pytest.raises(Malformed, match=reason):
            accept(member, signature=point + rest)


def test_scalars_of_the_signature_are_in_range(member: Member) -> None:
    for wrong in (bytes(32), ORDER.to_bytes(32, "big"), b"\xff" * 32):
        with pytest.raises(Malformed, match="scalar"):
            accept(member, signature=member.signature[:48] + wrong)


@pytest.mark.parametrize("size", [0, 79, 81])
def test_exact_length_of_the_signature(size: int, member: Member) -> None:
    with pytest.raises(Malformed, match="80 bytes"):
        finalize(member.public_key, HEADER, (member.signature + b"\0")[:size], member.entropy, member.secrets)


def test_another_header_entropy_or_commitment_is_refused(member: Member) -> None:
    other = commit(1, os.urandom)
    with pytest.raises(RejectedProof):
        accept(member, header=b"other roster")
    with pytest.raises(RejectedProof):
        accept(member, entropy=signer_nym_entropy(bytes(32), b"other"))
    with pytest.raises(RejectedProof):
        accept(member, secrets=other)


@pytest.mark.slow
def test_every_flipped_bit_of_a_signature_is_refused(member: Member) -> None:
    for bit in range(0, 8 * 80, 3):
        altered = bytearray(member.signature)
        altered[bit // 8] ^= 1 << bit % 8
        with pytest.raises((Malformed, RejectedProof)):
            accept(member, signature=bytes(altered))


def test_entropy_that_cancels_the_secret_is_refused(member: Member) -> None:
    """The signature is good, but the pseudonym would be the identity in every slot."""
    entropy = encode_scalar(-decode_scalar(member.secrets.nym_secrets[0], "nym"))
    commitment = member.secrets.commitment_with_proof
    signature = blind_sign(member.secret_key, member.public_key, commitment, HEADER, entropy, 1)
    with pytest.raises(RejectedProof):
        accept(member, signature=signature, entropy=entropy)


def test_nothing_secret_is_printed(member: Member) -> None:
    shown = repr(member.credential) + repr(member.secrets)
    for secret in (*member.credential.nym_secrets, *member.secrets.nym_secrets, member.secrets.prover_blind):
        assert repr(secret) not in shown
        assert secret.hex() not in shown
    assert repr(member.credential) == "Credential()"


def test_a_secret_key_is_a_scalar() -> None:
    with pytest.raises(Malformed):
        public_key(SecretKey(bytes(32)))


def _finished(member: Member) -> list[Scalar]:
    return [decode_scalar(secret, "nym") for secret in member.credential.nym_secrets]


def _outside_the_subgroup() -> G2:
    for start in range(1, 100):
        try:
            point = G2.from_compressed_bytes_unchecked(b"\x80" + bytes(94) + bytes([start]))
        except ValueError:
            continue
        if not point.is_in_subgroup():
            return point
    raise AssertionError("expected a point outside the subgroup among small coordinates")
