"""Run with either curve underneath: a whole credential from given randomness, and verdicts on given tokens, as JSON."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from anon.credential import (
    PublicKey,
    Verifier,
    blind_sign,
    commit,
    finalize,
    generate_secret_key,
    present,
    pseudonym,
    public_key,
    recommit,
    signer_nym_entropy,
)
from anon.crypto.curve import IMPLEMENTATION
from anon.crypto.nacl import IMPLEMENTATION as SODIUM
from anon.errors import AnonmlError

HEADER, PACKET = b"a study", b"a packet"


def stream(seed: str) -> Callable[[int], bytes]:
    """Randomness for tests only: each call hashes a counter."""
    numbers = iter(range(10**6))
    return lambda size: hashlib.shake_256(f"{seed} {next(numbers)}".encode()).digest(size)


def make(seed: str, count: int, random_bytes: Callable[[int], bytes]) -> dict[str, str]:
    """Everything from key to token, in hex."""
    secret = generate_secret_key(stream(seed))
    key, mine, entropy = (
        public_key(secret),
        commit(count, stream(seed + " member")),
        signer_nym_entropy(bytes(32), b"one"),
    )
    signature = blind_sign(secret, key, mine.commitment_with_proof, HEADER, entropy, count)
    credential = finalize(key, HEADER, signature, entropy, recommit(mine.nym_secrets, mine.prover_blind))
    contexts = [b"slot %d" % slot for slot in range(count)]
    tokens = [present(credential, context, PACKET, random_bytes) for context in contexts]
    tags = [pseudonym(credential, context) for context in contexts]
    made = {"key": key, "commitment": mine.commitment_with_proof, "signature": signature, "base": credential.base}
    return {name: value.hex() for name, value in made.items()} | {
        "tokens": " ".join(one.hex() for one in tokens), "tags": " ".join(one.hex() for one in tags),
    }


def verdicts(key: str, count: int, tokens: list[str]) -> list[str]:
    """The tag, or the name of the error, of each token; slots in turn."""
    verifier, said = Verifier(PublicKey(bytes.fromhex(key)), HEADER, count), []
    for slot, token in enumerate(tokens):
        try:
            said.append(verifier.check(bytes.fromhex(token), b"slot %d" % (slot % count), PACKET).hex())
        except AnonmlError as error:
            said.append(f"{type(error).__name__}: {error}")
    return said


def main(asked: dict[str, Any]) -> None:
    random_bytes = stream("fixed") if asked["fixed"] else os.urandom
    made = {str(count): make(f"seed {count}", count, random_bytes) for count in asked["counts"]}
    judged = {count: verdicts(*one) for count, one in asked.get("judge", {}).items()}
    print(json.dumps({"curve": IMPLEMENTATION, "sodium": SODIUM, "made": made, "judged": judged}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
