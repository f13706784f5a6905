"""The charge of a study: its privacy cost, with the measure, unit, neighbours and condition that give it a meaning.

Amounts of one measure and unit add up. Nothing is ever added across measures or units: an epsilon of perturbed answers
holds by itself, and one of noisy sums holds if somebody else keeps to the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, final

from attrs import evolve, field

from anon.errors import InvalidValue
from anon.ldp.epsilon import NANO
from anon.study.features import demand_line
from anon.text.foreign import Marked
from anon.text.sentences import Term
from anon.values import frozen


class Measure(StrEnum):
    """The definition of privacy that an amount is measured by."""

    LOCAL = "pure-local"  # epsilon (1e-9) of everything that leaves: holds whatever anybody else does
    CENTRAL = "pure-central"  # epsilon (1e-9) of what is published
    ZCDP = "zcdp"  # rho (1e-9) of what is published: zero-concentrated differential privacy


class Unit(StrEnum):
    """The part of the data that neighbours differ in."""

    PERSON = "person"  # everything that a peer holds; a peer with one record is its record
    RECORD = "record"  # one row of the many that a peer may hold


class Neighbours(StrEnum):
    """The change that makes one data set of another."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"


_REPLACING: Final = {Measure.LOCAL: 2, Measure.CENTRAL: 2, Measure.ZCDP: 4}
"""To replace is to remove and to add: epsilon doubles, and rho grows by the square (Bun and Steinke 2016, arXiv
1605.02065, proposition 1.9)."""


@final
@frozen
class Budget:
    """A measure and a unit: the amounts that may be added up, under one lifetime limit."""

    measure: Measure = field(converter=Measure)
    unit: Unit = field(converter=Unit)

    @property
    def symbol(self) -> Term:
        """The name of the amount."""
        return Term("rho") if self.measure is Measure.ZCDP else Term("epsilon")


LOCAL: Final = Budget(Measure.LOCAL, Unit.PERSON)
"""The budget of perturbed answers."""

USUAL_LIMITS: Final[Mapping[Budget, tuple[int, int]]] = {
    LOCAL: (10 * NANO, 5 * NANO),
    Budget(Measure.CENTRAL, Unit.PERSON): (4 * NANO, 2 * NANO),
    Budget(Measure.ZCDP, Unit.PERSON): (3 * NANO // 10, 101 * NANO // 1000),  # 3.93 and 2.16 at delta 1e-6
}
"""Limits that a member's program begins with: of all studies, and of one. A budget that is not here has limit 0."""


def _amount(_: object, attribute: object, value: int) -> None:
    if type(value) is not int or value < 0:
        raise InvalidValue("charge: expected a whole number of 1e-9, never negative")


@final
@frozen
class Charge:
    """The most that one unit can lose by something that leaves. Raises `InvalidValue` for a charge that cannot be.

    `amount`: a whole number of 1e-9 epsilon or 1e-9 rho, rounded up. `condition`: when it holds, in words that follow
    "if"; empty for local charges, which hold without one, and for no other.
    """

    measure: Measure
    amount: int = field(validator=_amount)
    unit: Unit = Unit.PERSON
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    condition: str = ""

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.condition, Marked):
            demand_line("charge.condition", self.condition)
        if bool(self.condition.strip()) == (self.measure is Measure.LOCAL):
            raise InvalidValue("charge: a local charge holds without a condition, and every other one names its own")

    @property
    def budget(self) -> Budget:
        """The budget that it is taken from."""
        return Budget(self.measure, self.unit)

    def replacing(self) -> Charge:
        """The same between neighbours of which one is replaced: as every budget adds up. At least the amount itself."""
        if self.neighbours is Neighbours.REPLACE_ONE:
            return self
        amount = self.amount * _REPLACING[self.measure]
        return evolve(self, amount=amount, neighbours=Neighbours.REPLACE_ONE)


def local(amount: int) -> Charge:
    """The charge of packets that are perturbed before they leave: so many 1e-9 of pure local epsilon."""
    return Charge(Measure.LOCAL, amount)
