"""The heavy computations, as plain functions on bytes that run in worker processes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache

from anon.credential import PublicKey, SecretKey, Verifier, blind_sign
from anon.errors import AnonmlError

TokenItem = tuple[bytes, bytes, bytes]


def verify_tokens(key: bytes, header: bytes, count: int, items: Sequence[TokenItem]) -> list[bool]:
    """For each (token, context, presentation header), whether the token holds. One folded pairing for all of them."""
    verdicts = _verifier(key, header, count).check_batch(items, os.urandom)
    return [not isinstance(verdict, AnonmlError) for verdict in verdicts]


def issue(
    secret: bytes, key: bytes, header: bytes, count: int, enrolments: Sequence[tuple[bytes, bytes]]
) -> list[bytes]:
    """A || e for each (commitment with proof, signer nym entropy): deterministic, so issuing twice changes nothing."""
    return [
        blind_sign(SecretKey(secret), PublicKey(key), commitment, header, entropy, count)
        for commitment, entropy in enrolments
    ]


@lru_cache(maxsize=4)
def _verifier(key: bytes, header: bytes, count: int) -> Verifier:
    return Verifier(PublicKey(key), header, count)
