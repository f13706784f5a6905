"""An audit of epsilon for averaging in groups: pool, draw, shares and told sums, under the noise of one receiver.

Two tables differ in one member: all its records are replaced, or left out. The auditor knows all else, and adds up the
group of that member. It tells the tables apart by the side on which the sum lies, or by the side on which the answer of
the published ensemble lies for one row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from math import log

import pytest
from scipy.stats import beta

from aggregator.protocols.sum.groups import EnsemblePart, ensemble_of, sum_of_group
from anon.noise.discrete_gaussian import DiscreteGaussian
from anon.protocols.contract import MODEL
from anon.protocols.cost_words import epsilon_of
from anon.protocols.models.ensemble import EnsembleModel, from_json
from anon.protocols.sum.arranged import DELTA
from anon.protocols.sum.groups.drawing import Group, told
from anon.protocols.sum.groups.layout import weights_survey
from anon.protocols.sum.vector import vector_of
from tests.support.groups_study import HELD, groups_study
from tests.support.groups_table import Table, manifest
from tests.support.oblivious_table import record

TRIALS, ALARM = 60, 1e-4
"""Tables of each kind, and the chance of either interval to miss."""
STUDY = manifest(groups_study(aggregations=1, unit="person"))
Rows = tuple[tuple[object, ...], ...]
FIRST = tuple((day, 0, 0, 0) for day in range(6))
OTHERS = {"replace-one": tuple((day, 100, 12, 1) for day in range(6)), "add-remove": ()}


@cache
def vector(held: Rows) -> Sequence[int]:
    return vector_of(STUDY, weights_survey(STUDY), record(held))


Look = Callable[[Table], float]
"""Above 0 where the auditor takes the member's records for the other ones."""


def summed(table: Table, group: Group, own: Rows) -> list[int]:
    """The exact sum of a group, if the first member holds these records."""
    held = [own if tag == table.tags[0] else tuple(HELD[table.tags.index(tag)]) for tag in group.members]
    return [sum(entries) for entries in zip(*map(vector, held), strict=True)]


def by_sum(other: Rows) -> Look:
    """By the told sum of the member's group."""

    def look(table: Table) -> float:
        (group,) = [group for group in table.groups(0) if table.tags[0] in group.members]
        ends = summed(table, group, FIRST), summed(table, group, other)
        values = told(table.pages(), group) or ()
        return sum((far - near) * (value - (near + far) / 2) for value, near, far in zip(values, *ends, strict=True))

    return look


def by_answer(other: Rows) -> Look:
    """By the answer of all groups' models to one row."""

    def score(ensemble: EnsembleModel) -> float:
        return ensemble.predict({"age": 50, "sleep": 6}).probability

    def look(table: Table) -> float:
        near, far = (
            score(ensemble_of([sum_of_group(STUDY, group, len(group.members), summed(table, group, own))
                               for group in table.groups(0)]))
            for own in (FIRST, other)
        )  # fmt: skip
        published = EnsemblePart().learn(STUDY, table.documents, {}).results[MODEL].decode()
        return (far - near) * (score(from_json(published)) - (near + far) / 2)

    return look


LOOKS = {"sum": by_sum, "ensemble": by_answer}
LESS = {"sum": 50, "ensemble": 500}
"""So much shorter is the noise that is too little. An answer moves less than a sum does."""


def least_epsilon(neighbours: str, seen: str, part: Fraction, monkeypatch: pytest.MonkeyPatch) -> float:
    """A lower bound. Each of two receivers draws half of the variance: together as one honest receiver does. `part`: so
    much of the declared variance is drawn at all."""
    drawn = DiscreteGaussian.vector

    def halved(self: DiscreteGaussian, length: int, random_bytes: Callable[[int], bytes]) -> list[int]:
        return drawn(DiscreteGaussian(self.sigma_squared * part / 2), length, random_bytes)

    monkeypatch.setattr(DiscreteGaussian, "vector", halved)
    other = OTHERS[neighbours]
    look, counts = LOOKS[seen](other), list[int]()
    for number, own in enumerate((FIRST, other)):
        seeds = [b"%d %d" % (number, trial) for trial in range(TRIALS)]
        counts.append(sum(look(Table(STUDY, (own, *HELD[1:]), seed=seed).play()) > 0 for seed in seeds))
    wrong, right = counts
    above = float(beta.isf(ALARM, wrong + 1, TRIALS - wrong)) if wrong < TRIALS else 1.0
    below = float(beta.ppf(ALARM, right, TRIALS - right + 1)) if right else 0.0
    return log(max(below - float(DELTA), 1e-9) / above)


@pytest.mark.slow
@pytest.mark.parametrize("seen", LOOKS)
@pytest.mark.parametrize("neighbours", OTHERS)
def test_no_audit_finds_more_than_the_promise(neighbours: str, seen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By chance alone it does in at most 2 of 10,000 draws; the tables' seeds are fixed."""
    assert least_epsilon(neighbours, seen, Fraction(1), monkeypatch) <= epsilon_of(STUDY) / 10**9


@pytest.mark.slow
@pytest.mark.parametrize("seen", LOOKS)
@pytest.mark.parametrize("neighbours", OTHERS)
def test_the_audit_finds_noise_that_is_too_small(neighbours: str, seen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert least_epsilon(neighbours, seen, Fraction(1, LESS[seen] ** 2), monkeypatch) > epsilon_of(STUDY) / 10**9
