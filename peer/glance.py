"""What is seen of studies and packets at a glance, as values."""

from __future__ import annotations

from attrs import frozen

from anon.ldp import NanoEpsilon
from peer.records import Queued, Status
from peer.session import State


@frozen
class StudyStatus:
    """One study at a glance. Epsilons count 1e-9."""

    study: bytes
    title: str
    state: State
    reason: str
    reserved: NanoEpsilon
    spent: NanoEpsilon
    slots: tuple[Queued, ...]


@frozen
class Receipt:
    """What remains of one released packet: never its content."""

    study: bytes
    title: str
    slot: int
    survey: int
    epsilon: NanoEpsilon
    status: Status
    word: str
