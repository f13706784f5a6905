"""Short views of studies and packets, as values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from attrs import field

from anon.ldp import NanoEpsilon
from anon.protocols.charge import LOCAL, Budget, Measure
from anon.protocols.cost_words import Amount
from anon.study.manifest import Manifest
from anon.values import frozen
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
    known: Callable[[], Manifest | None] = field(default=lambda: None, repr=False, eq=False)
    """Its manifest, which no list of studies parses unasked; None where this program refuses it."""

    def held(self, amount: int) -> Amount:
        """An amount of it as its owner reads it."""
        of_sums = amount and self.budget.measure is Measure.ZCDP
        return Amount(self.budget, amount, self.known() if of_sums else None)


@frozen
class Part:
    """A study's part of a budget, as its owner reads it: `held` makes that of an amount."""

    entry: Entry
    held: Callable[[int], Amount] = field(repr=False)

    @property
    def spent(self) -> Amount:
        """The amount that is spent."""
        return self.held(self.entry.spent)

    @property
    def reserved(self) -> Amount:
        """The amount that is reserved."""
        return self.held(self.entry.reserved)

    @property
    def whole(self) -> Amount:
        """Both together."""
        return self.held(self.entry.held)


def parts_of(ledger: Ledger, studies: Sequence[StudyStatus]) -> tuple[Part, ...]:
    """Every entry of the ledger, with what is known of its study."""
    known = {told.study: told.held for told in studies}
    return tuple(Part(entry, known.get(entry.study, partial(Amount, entry.budget))) for entry in ledger.entries)


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
