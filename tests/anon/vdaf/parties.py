"""Two to four parties that verify one report, and a sender that does not keep to the circuit."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from anon.vdaf.binding import sharing_context, sharing_nonce
from anon.vdaf.circuits import Ball, Blocks
from anon.vdaf.field import Vector
from anon.vdaf.prio3 import Prio3, Sharing

KEY, STUDY, TAG = b"k" * 32, b"s" * 32, b"t" * 48
NONCE = sharing_nonce(TAG)


def chance(size: int, number: int = 0) -> bytes:
    """Fixed bytes in place of the operating system's."""
    return hashlib.shake_128(b"test %d" % number).digest(size)


def context_of(prio3: Prio3) -> bytes:
    return sharing_context(STUDY, 1, 0, prio3)


def report_of(prio3: Prio3, measurement: Sequence[int], number: int = 0) -> Sharing:
    return prio3.shard(context_of(prio3), measurement, NONCE, chance(prio3.randomness_size, number))


def verified(prio3: Prio3, report: Sharing, **changed: Any) -> list[Vector]:
    """The output shares. `changed`: `key`, `context` or `nonce` as one value for each party."""
    parties = range(prio3.shares)
    keys = changed.get("key", [KEY] * prio3.shares)
    contexts = changed.get("context", [context_of(prio3)] * prio3.shares)
    nonces = changed.get("nonce", [NONCE] * prio3.shares)
    begun = [
        prio3.verify_init(
            keys[party], contexts[party], party, nonces[party], report.public_share, report.input_shares[party]
        )
        for party in parties
    ]
    message = prio3.verifier_shares_to_message(contexts[0], [share for _, share in begun])
    return [prio3.verify_next(state, message) for state, _ in begun]


def summed(prio3: Prio3, outputs: Sequence[Vector]) -> list[int]:
    return prio3.unshard([prio3.aggregate([output]) for output in outputs])


@dataclass(frozen=True)
class LyingBlocks(Blocks):
    """Takes any vector."""

    def encode(self, measurement: Sequence[int]) -> Vector:
        return [entry % self.field.modulus for entry in measurement]


@dataclass(frozen=True)
class LyingBall(Ball):
    """Takes any vector."""

    def encode(self, measurement: Sequence[int]) -> Vector:
        return [entry % self.field.modulus for entry in measurement]


def lying(prio3: Prio3) -> Prio3:
    """The same instance for a sender that proves what does not hold."""
    circuit = prio3.circuit
    kinds = {Blocks: LyingBlocks, Ball: LyingBall}
    values = {name: getattr(circuit, name) for name in circuit.__dataclass_fields__}  # type: ignore[attr-defined]
    return replace(prio3, circuit=kinds[type(circuit)](**values))  # type: ignore[index]
