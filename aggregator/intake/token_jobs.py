"""The heavy computations, as plain functions on bytes that run in worker processes.

1. `verify_tokens`: while packets come, for a batch of them (`aggregator.intake.batcher`).
2. `issue`: once, when the roster is closed, for a piece of it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from anon.credential import PublicKey, SecretKey, cached_verifier, sign_proven
from anon.errors import AnonmlError

TokenItem = tuple[bytes, bytes, bytes]


def verify_tokens(
    key: bytes, header: bytes, count: int, items: Sequence[TokenItem]
) -> list[bool]:
    """For each (token, context, presentation header), whether the token holds. One folded pairing for all of them."""
    verdicts = cached_verifier(PublicKey(key), header, count).check_batch(items, os.urandom)
    return [not isinstance(verdict, AnonmlError) for verdict in verdicts]


def issue(
    secret: bytes, key: bytes, header: bytes, count: int, enrolments: Sequence[tuple[bytes, bytes]]
) -> list[bytes]:
    """A || e for each (commitment, signer nym entropy): deterministic, so issuing twice changes nothing.

    The commitments are those of the signed roster. Their proofs were verified before they were stored.
    """
    return [
        sign_proven(SecretKey(secret), PublicKey(key), commitment, header, entropy, count)
        for commitment, entropy in enrolments
    ]
