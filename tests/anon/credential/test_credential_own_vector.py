"""One study's token from fixed random bytes to the last byte: whatever moves here breaks every issued credential.

`python -m tests.anon.credential.test_credential_own_vector` prints the figures afresh; they go to vectors/own.json only
with a new protocol version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import pytest

from anon.credential import (
    Verifier,
    blind_sign,
    commit,
    finalize,
    generate_secret_key,
    present,
    pseudonym,
    public_key,
    signer_nym_entropy,
)
from tests.anon.credential.bbs_vectors import load
from tests.anon.credential.draft_form import draft_token

HEADER = b"study id and roster hash"
CONTEXTS = [hashlib.sha256(b"slot %d" % slot).digest() for slot in range(2)]
PRESENTATION = hashlib.sha256(b"packet").digest()


def fixed_bytes(seed: bytes) -> Callable[[int], bytes]:
    """A generator for this vector alone: SHA-256 of the seed, repeated."""
    return lambda size: (hashlib.sha256(seed).digest() * (size // 32 + 1))[:size]


def produce(count: int) -> dict[str, object]:
    """Every value of the protocol for `count` nym secrets, in hexadecimal."""
    secret_key = generate_secret_key(fixed_bytes(b"issuer"))
    key = public_key(secret_key)
    secrets = commit(count, fixed_bytes(b"member"))
    entropy = signer_nym_entropy(b"seed of the issuer", secrets.commitment_with_proof)
    signature = blind_sign(secret_key, key, secrets.commitment_with_proof, HEADER, entropy, count)
    credential = finalize(key, HEADER, signature, entropy, secrets)
    announced = [present(credential, context, PRESENTATION, fixed_bytes(b"token")) for context in CONTEXTS]
    verifier = Verifier(key, HEADER, count)
    read = [verifier.read(token, context, PRESENTATION) for token, context in zip(announced, CONTEXTS, strict=True)]
    tokens = [draft_token(one.proof, one.announcement) for one in read]
    return {
        "count": count,
        "secret_key": secret_key.hex(),
        "public_key": key.hex(),
        "prover_nyms": [secret.hex() for secret in secrets.nym_secrets],
        "prover_blind": secrets.prover_blind.hex(),
        "commitment_with_proof": secrets.commitment_with_proof.hex(),
        "signer_nym_entropy": entropy.hex(),
        "header": HEADER.hex(),
        "signature": signature.hex(),
        "nym_secrets": [secret.hex() for secret in credential.nym_secrets],
        "presentation_header": PRESENTATION.hex(),
        "contexts": [context.hex() for context in CONTEXTS],
        "tags": [pseudonym(credential, context).hex() for context in CONTEXTS],
        "tokens": [token.hex() for token in tokens],
        "announced_tokens": [token.hex() for token in announced],
    }


@pytest.mark.parametrize("place", [0, 1], ids=["one secret", "three secrets"])
def test_own_vector(place: int) -> None:
    case = load("own")[place]
    assert produce(case["count"]) == case
    key = public_key(generate_secret_key(fixed_bytes(b"issuer")))
    verifier = Verifier(key, HEADER, case["count"])
    for context, tag, token in zip(CONTEXTS, case["tags"], case["announced_tokens"], strict=True):
        assert verifier.check(bytes.fromhex(token), context, PRESENTATION).hex() == tag


if __name__ == "__main__":
    print(json.dumps([produce(1), produce(3)], indent=1))
