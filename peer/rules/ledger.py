"""The privacy ledger: lifetime budgets of one installation, for local answers and for exact sums.

They hold across data sets, studies and aggregators.

Pure. There is one budget for each measure and unit (`anon.protocols.charge.Budget`), with a lifetime limit of its own.
Amounts are integer counts of 1e-9 of the measure's epsilon or rho, between neighbours of which one is replaced. A
study's entry holds what is reserved and what is spent; the two together count against its budget's limit. Entries of
different budgets are listed beside each other, and never added up (design section 4).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType

from attrs import evolve, field

from anon.errors import Conflict, Refused
from anon.ldp import NanoEpsilon, format_epsilon
from anon.protocols.charge import LOCAL, Budget, Measure, Unit
from anon.text.sentences import Sentence, attributed, say
from anon.values import frozen


def _amount(_: object, attribute: object, value: int) -> None:
    if type(value) is not int or value < 0:
        raise ValueError("an amount of epsilon is a whole number of 1e-9, never negative")


def _fixed(limits: Mapping[Budget, int]) -> Mapping[Budget, int]:
    for limit in limits.values():
        _amount(None, None, limit)
    return MappingProxyType(dict(limits))


@frozen
class Entry:
    """One study's part of a budget. `study` is its id, `aggregator` the aggregator's key.

    `condition`: when the study's promise holds, in words that follow "if"; empty for a local one.
    """

    study: bytes
    title: str
    aggregator: bytes
    data_set: str
    reserved: int = field(default=0, validator=_amount)
    spent: int = field(default=0, validator=_amount)
    measure: Measure = field(default=Measure.LOCAL, converter=Measure)
    unit: Unit = field(default=Unit.PERSON, converter=Unit)
    condition: str = ""

    @property
    def held(self) -> int:
        """Reserved and spent together."""
        return self.reserved + self.spent

    @property
    def budget(self) -> Budget:
        """The budget that it is a part of."""
        return Budget(self.measure, self.unit)


@frozen
class Ledger:
    """The lifetime limits and every study's entry.

    `lifetime` is that of the local budget (`LOCAL`), `others` those of the others; a budget without one has limit 0.

    >>> from anon.ldp import nano
    >>> ledger = Ledger(nano(3)).reserve(Entry(b"study 1", "Coffee", b"", "default", reserved=nano(2)))
    >>> str(format_epsilon(ledger.available)), str(format_epsilon(ledger.return_rest(b"study 1").available))
    ('1', '3')
    >>> ledger.reserve(Entry(b"study 2", "Tea", b"", "default", reserved=nano(2)))
    Traceback (most recent call last):
    anon.errors.Refused: the study costs epsilon 2 and 1 of the lifetime budget of 3 is left; decline, or raise ...
    """

    lifetime: int = field(validator=_amount)
    entries: tuple[Entry, ...] = ()
    others: Mapping[Budget, int] = field(factory=dict, converter=_fixed)

    @property
    def held(self) -> NanoEpsilon:
        """Reserved and spent of the local budget over all studies."""
        return NanoEpsilon(self.held_of(LOCAL))

    @property
    def available(self) -> NanoEpsilon:
        """The local epsilon that a new study may still reserve."""
        return NanoEpsilon(self.available_of(LOCAL))

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """The local budget, then every other that has a limit or an entry."""
        named = [*self.others, *(entry.budget for entry in self.entries)]
        return tuple(dict.fromkeys([LOCAL, *named]))

    def lifetime_of(self, budget: Budget) -> int:
        """The most that all studies together may hold of a budget."""
        return self.lifetime if budget == LOCAL else self.others.get(budget, 0)

    def held_of(self, budget: Budget) -> int:
        """Reserved and spent of a budget over all studies."""
        return sum(entry.held for entry in self.entries if entry.budget == budget)

    def available_of(self, budget: Budget) -> int:
        """The rest that a new study may reserve; 0 when the limit was lowered below what is held."""
        return max(0, self.lifetime_of(budget) - self.held_of(budget))

    def entry(self, study: bytes) -> Entry | None:
        """The study's entry, or None."""
        return next((entry for entry in self.entries if entry.study == study), None)

    def reserve(self, wanted: Entry) -> Ledger:
        """The ledger with this new entry. Raises `Refused` beyond its budget, `Conflict` for a study that holds any."""
        known = self.entry(wanted.study)
        if known is not None and known.held:
            raise Conflict(say("this study already holds part of the budget; see what your budget holds"))
        budget, left = wanted.budget, self.available_of(wanted.budget)
        if wanted.held > left:
            raise Refused(
                say(
                    "the study costs {symbol} {held} and {left} of the lifetime budget of {budget} is left; "
                    "decline, or raise the budget knowingly",
                    symbol=budget.symbol,
                    held=format_epsilon(wanted.held),
                    left=format_epsilon(left),
                    budget=format_epsilon(self.lifetime_of(budget)),
                )
            )
        others = tuple(entry for entry in self.entries if entry.study != wanted.study)
        return evolve(self, entries=(*others, wanted))

    def spend(self, study: bytes, amount: int) -> Ledger:
        """Turn part of the study's reservation into spent. Raises `Refused` when it reserved less.

        >>> entry = Entry(b"study 1", "Coffee", b"", "default", reserved=2)
        >>> after = Ledger(3, (entry,)).spend(b"study 1", 2)
        >>> after.entries[0].reserved, after.entries[0].spent, after.available
        (0, 2, 1)
        """
        entry = self._holding(study)
        if amount < 0 or amount > entry.reserved:
            raise Refused(
                say(
                    "a packet costs {symbol} {amount} but the study has {reserved} reserved; nothing is sent",
                    symbol=entry.budget.symbol,
                    amount=format_epsilon(amount),
                    reserved=format_epsilon(entry.reserved),
                )
            )
        return self._with(evolve(entry, reserved=entry.reserved - amount, spent=entry.spent + amount))

    def return_rest(self, study: bytes) -> Ledger:
        """Give back what the study reserved and did not spend."""
        return self._with(evolve(self._holding(study), reserved=0))

    def forfeit_rest(self, study: bytes) -> Ledger:
        """Count the whole reservation as spent, because it may have been (after a restore)."""
        entry = self._holding(study)
        return self._with(evolve(entry, reserved=0, spent=entry.held))

    def all_spent(self, title: str, name: bytes) -> tuple[Entry, ...]:
        """Entries that take up all that is left of every budget, because it may have been spent (after a restore).

        `title` says why, and `name` is the beginning of their ids, unlike that of any other entry.
        """
        left = [(budget, self.available_of(budget)) for budget in self.budgets]
        return tuple(
            Entry(name + bytes([place]), _set_aside(title, rest), b"", "", 0, rest, *_kind(budget))
            for place, (budget, rest) in enumerate(left)
            if rest
        )

    def by_data_set(self) -> dict[str, NanoEpsilon]:
        """Held of the local budget per data set. A view: these sums bound nothing that the total does not."""
        sums: defaultdict[str, int] = defaultdict(int)
        for entry in self.entries:
            if entry.budget == LOCAL:
                sums[entry.data_set] += entry.held
        return {name: NanoEpsilon(total) for name, total in sums.items()}

    def _holding(self, study: bytes) -> Entry:
        entry = self.entry(study)
        if entry is None:
            raise Refused(say("this study holds nothing of the budget; join it first"))
        return entry

    def _with(self, entry: Entry) -> Ledger:
        return evolve(self, entries=tuple(entry if known.study == entry.study else known for known in self.entries))


def _set_aside(title: str, amount: int) -> Sentence:
    return say("{title} ({amount})", title=attributed(title), amount=format_epsilon(amount))


def _kind(budget: Budget) -> tuple[Measure, Unit]:
    return budget.measure, budget.unit
