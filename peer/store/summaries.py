"""Short views of studies and packets, as values."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen

from anon.ldp import NanoEpsilon
from anon.protocols.charge import LOCAL, Budget
from anon.protocols.cost_words import Amount
from anon.study.manifest import Manifest
from peer.rules.ledger import Entry, Ledger
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
    manifest: Manifest | None = field(default=None, repr=False)

    def held(self, amount: int) -> Amount:
        """An amount of it as its owner reads it."""
        return Amount(self.budget, amount, self.manifest)


@frozen
class Part:
    """A study's part of a budget, as its owner reads it. `manifest`: None where it is not known."""

    entry: Entry
    manifest: Manifest | None = field(default=None, repr=False)

    @property
    def spent(self) -> Amount:
        """The amount that is spent."""
        return Amount(self.entry.budget, self.entry.spent, self.manifest)

    @property
    def reserved(self) -> Amount:
        """The amount that is reserved."""
        return Amount(self.entry.budget, self.entry.reserved, self.manifest)

    @property
    def whole(self) -> Amount:
        """Both together."""
        return Amount(self.entry.budget, self.entry.held, self.manifest)


def parts_of(ledger: Ledger, studies: Sequence[StudyStatus]) -> tuple[Part, ...]:
    """Every entry of the ledger, with what is known of its study."""
    known = {told.study: told.manifest for told in studies}
    return tuple(Part(entry, known.get(entry.study)) for entry in ledger.entries)


@frozen
class Receipt:
    """The record of one released packet: never its content. `cost`: as its owner reads it."""

    study: bytes
    title: str
    slot: int
    survey: int
    cost: Amount
    status: Status
    word: str
