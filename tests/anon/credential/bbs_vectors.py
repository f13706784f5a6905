"""The official vectors, and the drafts' general operations (any messages, any disclosure) built from the real parts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from attrs import evolve

from anon.credential.announced import COEFFICIENTS, AnnouncedProof, fold
from anon.credential.ciphersuite import API_PSEUDONYM, P1, hash_to_scalar, i2osp8, message_to_scalar
from anon.credential.credential import decode_signature, signature_holds
from anon.credential.proof import Announcement, Proof, calculate_challenge
from anon.credential.statement import Context, Statement, make_context, make_statement
from anon.credential.verification import (
    announce,
    fixed_context,
    proof_pairing_holds,
    statement_bases,
)
from anon.crypto.curve import G1, Scalar, decode_g1, decode_g2
from anon.errors import AnonmlError, Malformed, RejectedProof
from tests.anon.credential.draft_form import announce_nym, decode_proof, demand_challenge

FOLDER = Path(__file__).parent / "vectors"
FLOOR = 3 * 48 + 4 * 32

Case = dict[str, Any]


def load(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text())


def scalar(digits: str) -> Scalar:
    return Scalar.from_be_bytes(bytes.fromhex(digits.rjust(64, "0")))


def octets(case: Case, key: str) -> bytes:
    return bytes.fromhex((case.get(key) or "").removesuffix("s"))


def message_scalars(messages: list[str], api_id: bytes) -> list[Scalar]:
    return [message_to_scalar(bytes.fromhex(message), api_id) for message in messages]


def proof_randomness(case: Case) -> list[Scalar]:
    drawn = {key.lower(): value for key, value in case["trace"]["random_scalars"].items()}
    first = [scalar(drawn[name]) for name in ("r1", "r2", "e_tilde", "r1_tilde", "r3_tilde")]
    return first + [scalar(digits) for digits in drawn["m_tilde_scalars"]]


def commitment_randomness(case: Case) -> list[Scalar]:
    drawn = case["trace"]["random_scalars"]
    return [scalar(digits) for digits in (drawn["s_tilde"], *drawn["m_tildes"])]


def signature_valid(statement: Statement, public_key: bytes, signature: bytes, scalars: list[Scalar]) -> bool:
    if len(scalars) != len(statement.generators):
        return False
    return signature_holds(decode_g2(public_key, "key"), decode_signature(signature), statement.base(scalars))


def check_proof(
    statement: Statement, public_key: bytes, proof_octets: bytes, revealed: dict[int, Scalar], header: bytes
) -> None:
    """ProofVerify for any disclosure, without a pseudonym."""
    proof = decode_proof(proof_octets, len(statement.generators) - len(revealed))
    demand_challenge(proof, statement, statement_bases(statement), revealed, header)
    _demand_pairing(public_key, proof)
    announcement = announce(proof, statement, statement_bases(statement), revealed)
    _demand_second_form(public_key, statement, proof, announcement, revealed, header, None)


def check_nym_proof(case: Case, **changed: bytes) -> None:
    """ProofVerifyWithNym for any disclosure."""
    given = {name: octets(case, name) for name in ("presentationHeader", "context_id", "proof", "pseudonym", "header")}
    given |= changed
    count, signer, committed = len(case["proverNyms"]), case["L"], len(case["committedMessages"])
    key = octets(case, "signerPublicKey")
    blind = committed + count + 1
    statement = make_statement(API_PSEUDONYM, key, given["header"] + i2osp8(count), signer, blind)
    revealed = revealed_scalars(case, API_PSEUDONYM)
    proof = decode_proof(given["proof"], len(statement.generators) - len(revealed))
    context: Context = make_context(given["context_id"])
    pseudonym: G1 = decode_g1(given["pseudonym"], "pseudonym")
    nym = announce_nym(proof, pseudonym, fixed_context(given["context_id"]), count)
    bases = statement_bases(statement)
    demand_challenge(proof, statement, bases, revealed, given["presentationHeader"], (context, *nym))
    _demand_pairing(key, proof)
    announcement = announce(proof, statement, bases, revealed, nym)
    _demand_second_form(key, statement, proof, announcement, revealed, given["presentationHeader"], (context, count))


def _demand_second_form(
    public_key: bytes,
    statement: Statement,
    proof: Proof,
    announcement: Announcement,
    revealed: dict[int, Scalar],
    header: bytes,
    nym: tuple[Context, int] | None,
) -> None:
    """The form with announcements has the same challenge; its equations hold in one fold, and no others do."""
    points, context = (proof.a_bar, proof.b_bar, proof.d), None if nym is None else nym[0]
    assert calculate_challenge(statement, points, announcement, revealed, header, context) == proof.challenge
    key = decode_g2(public_key, "key")
    other = evolve(announcement, t2=announcement.t2 + P1)
    coefficients = [hash_to_scalar(os.urandom(32), b"test") for _ in range(2 * COEFFICIENTS)]
    for second, expected in ((announcement, True), (other, False)):
        proofs = [AnnouncedProof(proof, each, nym, revealed) for each in (announcement, second)]
        assert fold(statement, proofs, coefficients).holds(key) is expected


def revealed_scalars(case: Case, api_id: bytes) -> dict[int, Scalar]:
    """Signer messages keep their index; committed ones follow the blinding factor, which is at index L."""
    shown = {int(index): message for index, message in case["revealedMessages"].items()}
    shown |= {
        int(index) + case["L"] + 1: message for index, message in (case["revealedCommittedMessages"] or {}).items()
    }
    return {index: message_to_scalar(bytes.fromhex(message), api_id) for index, message in shown.items()}


def hidden_count(proof_octets: bytes) -> int:
    """How many hidden scalars a proof of this length is for; a fractional one rounds down and fails to decode."""
    return (len(proof_octets) - FLOOR) // 32


def refused(check: Any, *arguments: Any, **named: Any) -> bool:
    try:
        check(*arguments, **named)
    except (Malformed, RejectedProof):
        return True
    except AnonmlError as error:  # pragma: no cover
        raise AssertionError("expected Malformed or RejectedProof") from error
    return False


def _demand_pairing(public_key: bytes, proof: Proof) -> None:
    if not proof_pairing_holds(decode_g2(public_key, "key"), proof):
        raise RejectedProof("proof rejected")
