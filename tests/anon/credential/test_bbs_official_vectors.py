"""Every official vector of suite BLS12-381-SHA-256: core, blind and pseudonym scheme, valid and invalid.

Sources in vectors/README.md.
"""

from __future__ import annotations

import pytest

from anon.credential.ciphersuite import (
    API_BLIND,
    API_CORE,
    API_PSEUDONYM,
    P1,
    create_generators,
    encode_scalars,
    expand_message,
    hash_to_scalar,
    i2osp8,
    message_to_scalar,
)
from anon.credential.credential import decode_signature, finish_nym_secrets
from anon.credential.issuance import (
    generate_key,
    open_commitment,
    prove_commitment,
    public_key,
    sign_base,
    sign_with_exponent,
)
from anon.credential.proof import make_proof
from anon.credential.statement import Statement, make_context, make_statement
from anon.crypto.curve import Scalar, encode_g1, encode_scalar, scalar_from_uniform
from tests.anon.credential.bbs_vectors import (
    Case,
    check_nym_proof,
    check_proof,
    commitment_randomness,
    hidden_count,
    load,
    message_scalars,
    octets,
    proof_randomness,
    refused,
    revealed_scalars,
    scalar,
    signature_valid,
)
from tests.anon.credential.draft_form import encode_proof

CORE, BLIND, PSEUDONYM = load("core"), load("blind"), load("pseudonym")
SECRET_KEY = generate_key(octets(CORE["keypair"], "keyMaterial"), octets(CORE["keypair"], "keyInfo"))


def each(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[case["file"].removesuffix(".json") for case in cases])


def seeded_random_scalars(seed: bytes, dst: bytes, count: int) -> list[Scalar]:
    """draft-irtf-cfrg-bbs-signatures-09, 8.1."""
    uniform = expand_message(seed, dst, 48 * count)
    return [scalar_from_uniform(uniform[48 * place : 48 * (place + 1)]) for place in range(count)]


def test_keypair() -> None:
    assert SECRET_KEY.hex() == CORE["keypair"]["keyPair"]["secretKey"]
    assert public_key(SECRET_KEY).hex() == CORE["keypair"]["keyPair"]["publicKey"]


def test_hash_to_scalar() -> None:
    case = CORE["hash_to_scalar"]
    assert encode_scalar(hash_to_scalar(octets(case, "message"), octets(case, "dst"))).hex() == case["scalar"]


def test_map_message_to_scalar() -> None:
    for case in CORE["map_message"]["cases"]:
        assert encode_scalar(message_to_scalar(octets(case, "message"), API_CORE)).hex() == case["scalar"]


def test_mocked_random_scalars() -> None:
    case = CORE["mocked_random"]
    drawn = seeded_random_scalars(octets(case, "seed"), octets(case, "dst"), case["count"])
    assert [encode_scalar(each).hex() for each in drawn] == case["mockedScalars"]


@pytest.mark.parametrize(
    ("figures", "api_id"),
    [
        (CORE["generators"], API_CORE),
        (BLIND["generators"]["generators"], API_BLIND),
        (BLIND["generators"]["blindGenerators"], b"BLIND_" + API_BLIND),
        (PSEUDONYM["generators"]["generators"], API_PSEUDONYM),
        (PSEUDONYM["generators"]["blindGenerators"], b"BLIND_" + API_PSEUDONYM),
    ],
    ids=["core", "blind", "blind-committed", "pseudonym", "pseudonym-committed"],
)
def test_generators(figures: Case, api_id: bytes) -> None:
    assert figures.get("api_id", api_id.decode()) == api_id.decode()
    assert encode_g1(P1).hex() == figures["P1"]
    made = [encode_g1(point).hex() for point in create_generators(len(figures["MsgGenerators"]) + 1, api_id)]
    assert made == [figures["Q1"], *figures["MsgGenerators"]]


@each(CORE["signatures"])
def test_core_signature(case: Case) -> None:
    key, header = bytes.fromhex(case["signerKeyPair"]["publicKey"]), octets(case, "header")
    scalars = message_scalars(case["messages"], API_CORE)
    statement = make_statement(API_CORE, key, header, len(scalars), 0)
    assert signature_valid(statement, key, octets(case, "signature"), scalars) is case["result"]["valid"]
    if case["result"]["valid"]:
        secret = bytes.fromhex(case["signerKeyPair"]["secretKey"])
        exponent = hash_to_scalar(secret + encode_scalars(*scalars, statement.domain), API_CORE + b"H2S_")
        assert encode_scalar(statement.domain).hex() == case["trace"]["domain"]
        assert encode_g1(statement.base(scalars)).hex() == case["trace"]["B"]
        assert sign_with_exponent(SECRET_KEY, statement.base(scalars), exponent).hex() == case["signature"]


@each(CORE["proofs"])
def test_core_proof(case: Case) -> None:
    key, proof, header = octets(case, "signerPublicKey"), octets(case, "proof"), octets(case, "presentationHeader")
    scalars = message_scalars(case["messages"], API_CORE)
    shown = {index: scalars[index] for index in case["disclosedIndexes"] if index < len(scalars)}
    statement = make_statement(API_CORE, key, octets(case, "header"), hidden_count(proof) + len(shown), 0)
    assert refused(check_proof, statement, key, proof, shown, header) is not case["result"]["valid"]
    if case["result"]["valid"]:
        made, _ = make_proof(
            statement,
            decode_signature(octets(case, "signature")),
            statement.base(scalars),
            scalars,
            frozenset(case["disclosedIndexes"]),
            proof_randomness(case),
            header,
        )
        assert encode_proof(made).hex() == case["proof"]


@each(BLIND["commitments"] + PSEUDONYM["commitments"])
def test_commitment(case: Case) -> None:
    nyms = case.get("proverNyms", [])
    api_id = API_PSEUDONYM if nyms else API_BLIND
    secrets = [scalar(case["proverBlind"]), *message_scalars(case["committedMessages"], api_id), *map(scalar, nyms)]
    made = prove_commitment(secrets, commitment_randomness(case), api_id)
    assert made.hex() == case["commitmentWithProof"]
    assert encode_g1(open_commitment(made, len(secrets) - 1, api_id)) == made[:48]


@each(BLIND["signatures"])
def test_blind_signature(case: Case) -> None:
    commitment, key = octets(case, "commitmentWithProof"), bytes.fromhex(case["signerKeyPair"]["publicKey"])
    messages = message_scalars(case["messages"], API_BLIND)
    blind = scalar(case["proverBlind"] or "0")
    committed = message_scalars(case["committedMessages"] or [], API_BLIND)
    statement = make_statement(API_BLIND, key, octets(case, "header"), len(messages), len(committed) + 1)
    base = statement.fixed
    if commitment:
        base = base + open_commitment(commitment, len(committed), API_BLIND)
    for generator, message in zip(statement.generators, messages, strict=False):
        base = base + generator * message
    if len(case["trace"]["domain"]) == 64:
        assert encode_scalar(statement.domain).hex() == case["trace"]["domain"]
        assert encode_g1(base).hex() == case["trace"]["B"]
    else:  # signature003 prints B where the domain belongs
        assert encode_g1(base).hex() == case["trace"]["domain"]
    assert sign_base(SECRET_KEY, base, statement).hex() == case["signature"]
    assert signature_valid(statement, key, octets(case, "signature"), [*messages, blind, *committed])


@each(BLIND["proofs"])
def test_blind_proof(case: Case) -> None:
    key, header = octets(case, "signerPublicKey"), octets(case, "presentationHeader")
    commitment = octets(case, "commitmentWithProof")
    committed = BLIND["messages"]["committedMessages"] if commitment else []
    blind = scalar(case["proverBlind"] or "0")
    scalars = [
        *message_scalars(BLIND["messages"]["messages"], API_BLIND),
        blind,
        *message_scalars(committed, API_BLIND),
    ]
    statement = make_statement(API_BLIND, key, octets(case, "header"), case["L"], len(committed) + 1)
    shown = revealed_scalars(case, API_BLIND)
    made, _ = _prove(case, statement, scalars, frozenset(shown))
    assert made.hex() == case["proof"]
    check_proof(statement, key, made, shown, header)
    assert refused(check_proof, statement, key, made, shown, header + b"\0")


@each(PSEUDONYM["signatures"])
def test_nym_signature(case: Case) -> None:
    key, count = bytes.fromhex(case["signerKeyPair"]["publicKey"]), len(case["proverNyms"])
    messages = message_scalars(case["messages"], API_PSEUDONYM)
    committed = message_scalars(case["committedMessages"], API_PSEUDONYM)
    entropy = scalar(case["signer_nym_entropy"])
    total = len(committed) + count
    statement = make_statement(API_PSEUDONYM, key, octets(case, "header") + i2osp8(count), len(messages), total + 1)
    base = statement.fixed + open_commitment(octets(case, "commitmentWithProof"), total)
    base = base + statement.generators[-1] * entropy
    for generator, message in zip(statement.generators, messages, strict=False):
        base = base + generator * message
    assert encode_scalar(statement.domain).hex() == case["trace"]["domain"]
    assert encode_g1(base).hex() == case["trace"]["B"][:96]
    assert sign_base(SECRET_KEY, base, statement).hex() == case["signature"]

    prover = [encode_scalar(scalar(nym)) for nym in case["proverNyms"]]
    nyms = finish_nym_secrets(prover, encode_scalar(entropy))
    assert [encode_scalar(nym) for nym in nyms] == [encode_scalar(scalar(nym)) for nym in case["nym_secrets"]]
    scalars = [*messages, scalar(case["proverBlind"]), *committed, *nyms]
    assert signature_valid(statement, key, octets(case, "signature"), scalars)
    swapped = [*scalars[:-1], scalars[-1] + Scalar(1)]
    assert not signature_valid(statement, key, octets(case, "signature"), swapped)


@each(PSEUDONYM["proofs"])
def test_nym_proof(case: Case) -> None:
    count = len(case["proverNyms"])
    scalars = [
        *message_scalars(case["messages"], API_PSEUDONYM),
        scalar(case["proverBlind"]),
        *message_scalars(case["committedMessages"], API_PSEUDONYM),
        *map(scalar, case["nym_secrets"]),
    ]
    key = octets(case, "signerPublicKey")
    blind = len(case["committedMessages"]) + count + 1
    header = octets(case, "header") + i2osp8(count)
    statement = make_statement(API_PSEUDONYM, key, header, len(case["messages"]), blind)
    shown = frozenset(revealed_scalars(case, API_PSEUDONYM))
    proof, pseudonym = _prove(case, statement, scalars, shown, octets(case, "context_id"), count)
    assert (proof.hex(), pseudonym.hex()) == (case["proof"], case["pseudonym"])
    check_nym_proof(case)


@pytest.mark.parametrize("what", ["presentationHeader", "context_id", "proof", "pseudonym", "header"])
@each(PSEUDONYM["proofs"][6:8])
def test_nym_proof_refused_when_altered(case: Case, what: str) -> None:
    """The drafts ship no invalid pseudonym proofs; these are made from the valid ones."""
    altered = bytearray(octets(case, what))
    altered[-1] ^= 1
    assert refused(check_nym_proof, case, **{what: bytes(altered)})


def _prove(
    case: Case,
    statement: Statement,
    scalars: list[Scalar],
    shown: frozenset[int],
    context: bytes | None = None,
    count: int = 0,
) -> tuple[bytes, bytes]:
    proof, announcement = make_proof(
        statement,
        decode_signature(octets(case, "signature")),
        statement.base(scalars),
        scalars,
        shown,
        proof_randomness(case),
        octets(case, "presentationHeader"),
        None if context is None else make_context(context),
        count,
    )
    return encode_proof(proof), b"" if announcement.pseudonym is None else encode_g1(announcement.pseudonym)
