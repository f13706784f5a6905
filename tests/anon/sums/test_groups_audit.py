"""An audit of epsilon for averaging in groups: pool, draw, shares and told sums, under the noise of one receiver.

Two tables differ in one member: all its records are replaced, or left out. The auditor knows all else, and adds up the
group of that member. It tells the tables apart by the side on which the sum lies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import log

import pytest
from scipy.stats import beta

from anon.noise.discrete_gaussian import DiscreteGaussian
from anon.protocols.cost_words import epsilon_of
from anon.protocols.sum.arranged import DELTA
from anon.protocols.sum.groups.drawing import told
from anon.protocols.sum.groups.layout import weights_survey
from anon.protocols.sum.vector import vector_of
from tests.support.groups_study import HELD, groups_study
from tests.support.groups_table import Table, manifest
from tests.support.oblivious_table import record

TRIALS, ALARM = 60, 1e-4
"""Tables of each kind, and the chance of either interval to miss."""
STUDY = manifest(groups_study(aggregations=1, unit="person"))
FIRST = tuple((day, 0, 0, 0) for day in range(6))
OTHERS = {"replace-one": tuple((day, 100, 12, 1) for day in range(6)), "add-remove": ()}


def vector(held: Sequence[tuple[object, ...]]) -> list[int]:
    return list(vector_of(STUDY, weights_survey(STUDY), record(held)))


def least_epsilon(neighbours: str, part: Fraction, monkeypatch: pytest.MonkeyPatch) -> float:
    """A lower bound. Each of two receivers draws half of the variance: together as one honest receiver does. `part`: so
    much of the declared variance is drawn at all."""
    drawn = DiscreteGaussian.vector

    def halved(self: DiscreteGaussian, length: int, random_bytes: Callable[[int], bytes]) -> list[int]:
        return drawn(DiscreteGaussian(self.sigma_squared * part / 2), length, random_bytes)

    monkeypatch.setattr(DiscreteGaussian, "vector", halved)
    other, counts = OTHERS[neighbours], list[int]()
    way = [after - before for before, after in zip(vector(FIRST), vector(other), strict=True)]
    middle = [(after + before) / 2 for before, after in zip(vector(FIRST), vector(other), strict=True)]
    for number, own in enumerate((FIRST, other)):
        yes = 0
        for trial in range(TRIALS):
            table = Table(STUDY, (own, *HELD[1:]), seed=b"%d %d" % (number, trial)).play()
            (group,) = [group for group in table.groups(0) if table.tags[0] in group.members]
            rest = [vector(HELD[table.tags.index(tag)]) for tag in group.members if tag != table.tags[0]]
            left = [value - sum(column) for value, *column in zip(told(table.pages(), group) or (), *rest, strict=True)]
            yes += sum(step * (entry - half) for step, entry, half in zip(way, left, middle, strict=True)) > 0
        counts.append(yes)
    wrong, right = counts
    above = float(beta.isf(ALARM, wrong + 1, TRIALS - wrong)) if wrong < TRIALS else 1.0
    below = float(beta.ppf(ALARM, right, TRIALS - right + 1)) if right else 0.0
    return log(max(below - float(DELTA), 1e-9) / above)


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", OTHERS)
def test_no_audit_finds_more_than_the_promise(neighbours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By chance alone it does in at most 2 of 10,000 draws; the tables' seeds are fixed."""
    assert least_epsilon(neighbours, Fraction(1), monkeypatch) <= epsilon_of(STUDY) / 10**9


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", OTHERS)
def test_the_audit_finds_noise_that_is_too_small(neighbours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fiftieth of its length."""
    assert least_epsilon(neighbours, Fraction(1, 2500), monkeypatch) > epsilon_of(STUDY) / 10**9
