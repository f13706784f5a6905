"""Short views of studies and packets, as values."""

from __future__ import annotations

from attrs import frozen

from anon.ldp import NanoEpsilon
from anon.protocols.charge import LOCAL, Budget
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.store.records import OutboxEntry


@frozen
class StudyStatus:
    """One study at a glance. Amounts count 1e-9 of the budget's epsilon or rho."""

    study: bytes
    title: str
    state: State
    reason: str
    reserved: NanoEpsilon
    spent: NanoEpsilon
    slots: tuple[OutboxEntry, ...]
    budget: Budget = LOCAL


@frozen
class Receipt:
    """The record of one released packet: never its content."""

    study: bytes
    title: str
    slot: int
    survey: int
    epsilon: NanoEpsilon
    status: Status
    word: str
    budget: Budget = LOCAL
