"""The one use that shares are for: study, round, slot and instance enter their context, the packet's tag their nonce.

Shares that are verified for another study, round, slot, circuit, number of parties or tag are refused. The verification
key is bound too if the study's manifest, and so the study's id, names its hash.
"""

from __future__ import annotations

import hashlib

from anon.crypto.labels import VDAF_CONTEXT, VDAF_NONCE
from anon.vdaf.prio3 import NONCE_SIZE, Prio3

STUDY_SIZE = 32
NUMBER_SIZE = 16


def sharing_context(study_id: bytes, round_number: int, slot: int, instance: Prio3) -> bytes:
    """The context of all measurements of one round and slot. Raises `ValueError` unless the id has 32 bytes."""
    if len(study_id) != STUDY_SIZE:
        raise ValueError(f"expected a study's id of {STUDY_SIZE} bytes, got {len(study_id)}")
    circuit = instance.circuit
    numbers = (round_number, slot, instance.shares, instance.algorithm, instance.proofs, circuit.field.modulus)
    spelled = b"".join(number.to_bytes(NUMBER_SIZE, "big") for number in (*numbers, *circuit.parameters))
    return VDAF_CONTEXT + hashlib.sha256(VDAF_CONTEXT + study_id + spelled).digest()


def sharing_nonce(tag: bytes) -> bytes:
    """The nonce of the shares in the packet with this tag, which no one but the sender could foresee."""
    return hashlib.sha256(VDAF_NONCE + tag).digest()[:NONCE_SIZE]
