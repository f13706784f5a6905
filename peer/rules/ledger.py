"""The privacy ledger: one lifetime budget per installation, across data sets, studies and aggregators.

Pure. Amounts are integer counts of 1e-9 of pure local epsilon. A study's entry holds what is reserved and what is
spent; the two together count against the lifetime. Entries of another kind have another unit of privacy: they are
listed beside these and never summed with them (design section 4).
"""

from __future__ import annotations

from collections import defaultdict

from attrs import evolve, field, frozen

from anon.errors import Conflict, Refused
from anon.ldp import NanoEpsilon, format_epsilon
from anon.protocols.charge import Measure


def _amount(_: object, attribute: object, value: int) -> None:
    if type(value) is not int or value < 0:
        raise ValueError("an amount of epsilon is a whole number of 1e-9, never negative")


@frozen
class Entry:
    """One study's part of the budget. `study` is its id, `aggregator` the aggregator's key."""

    study: bytes
    title: str
    aggregator: bytes
    data_set: str
    reserved: int = field(default=0, validator=_amount)
    spent: int = field(default=0, validator=_amount)
    kind: str = Measure.LOCAL

    @property
    def held(self) -> int:
        """Reserved and spent together."""
        return self.reserved + self.spent


@frozen
class Ledger:
    """The lifetime budget and every study's entry."""

    lifetime: int = field(validator=_amount)
    entries: tuple[Entry, ...] = ()

    @property
    def held(self) -> NanoEpsilon:
        """Reserved and spent over all studies of the pure local kind."""
        return NanoEpsilon(sum(entry.held for entry in self.entries if entry.kind == Measure.LOCAL))

    @property
    def available(self) -> NanoEpsilon:
        """The epsilon that a new study may still reserve; 0 when the lifetime was lowered below what is held."""
        return NanoEpsilon(max(0, self.lifetime - self.held))

    def entry(self, study: bytes) -> Entry | None:
        """The study's entry, or None."""
        return next((entry for entry in self.entries if entry.study == study), None)

    def reserve(self, wanted: Entry) -> Ledger:
        """The ledger with this new entry. Raises `Refused` beyond the budget, `Conflict` for a study that holds any."""
        known = self.entry(wanted.study)
        if known is not None and known.held:
            raise Conflict("this study already holds part of the budget; see what your budget holds")
        if wanted.kind == Measure.LOCAL and wanted.held > self.available:
            raise Refused(
                f"the study costs epsilon {format_epsilon(wanted.held)} and {format_epsilon(self.available)} of the "
                f"lifetime budget of {format_epsilon(self.lifetime)} is left; decline, or raise the budget knowingly"
            )
        others = tuple(entry for entry in self.entries if entry.study != wanted.study)
        return evolve(self, entries=(*others, wanted))

    def spend(self, study: bytes, amount: int) -> Ledger:
        """Turn part of the study's reservation into spent. Raises `Refused` when it reserved less."""
        entry = self._holding(study)
        if amount < 0 or amount > entry.reserved:
            raise Refused(
                f"a packet costs epsilon {format_epsilon(amount)} but the study has {format_epsilon(entry.reserved)} "
                "reserved; nothing is sent"
            )
        return self._with(evolve(entry, reserved=entry.reserved - amount, spent=entry.spent + amount))

    def return_rest(self, study: bytes) -> Ledger:
        """Give back what the study reserved and did not spend."""
        return self._with(evolve(self._holding(study), reserved=0))

    def forfeit_rest(self, study: bytes) -> Ledger:
        """Count the whole reservation as spent, because it may have been (after a restore)."""
        entry = self._holding(study)
        return self._with(evolve(entry, reserved=0, spent=entry.held))

    def by_data_set(self) -> dict[str, NanoEpsilon]:
        """Held per data set. A view: these sums bound nothing that the total does not."""
        sums: defaultdict[str, int] = defaultdict(int)
        for entry in self.entries:
            if entry.kind == Measure.LOCAL:
                sums[entry.data_set] += entry.held
        return {name: NanoEpsilon(total) for name, total in sums.items()}

    def _holding(self, study: bytes) -> Entry:
        entry = self.entry(study)
        if entry is None:
            raise Refused("this study holds nothing of the budget; join it first")
        return entry

    def _with(self, entry: Entry) -> Ledger:
        return evolve(self, entries=tuple(entry if known.study == entry.study else known for known in self.entries))
