"""Shares with 95 % confidence intervals from the accepted packets of one survey, for the desk."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from attrs import frozen

from aggregator.protocols.tally import Tally
from aggregator.rules.counters import STEP
from anon.ldp import SCALE
from anon.study.manifest import Survey

NORMAL_95 = 1.959964
MOST_ROWS = 64


@frozen
class EstimateRow:
    """One category's share with its standard error (mechanism's noise and who happened to be asked)."""

    name: str
    share: float
    error: float

    @property
    def low(self) -> float:
        """The lower end of the 95 % confidence interval."""
        return self.share - NORMAL_95 * self.error

    @property
    def high(self) -> float:
        """The upper end."""
        return self.share + NORMAL_95 * self.error


@frozen
class Estimate:
    """One survey's estimate. `reports` is rounded down to a step of 50 unless `final`."""

    survey: int
    title: str
    reports: int
    final: bool
    rows: tuple[EstimateRow, ...]
    categories: int


def estimate(survey: Survey, title: str, names: Sequence[str], tally: Tally, final: bool) -> Estimate:
    """The unbiased shares from accepted packets, at least one, as `tally.tallied` counts them. `names` are those of the
    last categories; a yes/no question names its yes alone."""
    mechanism = survey.build()
    n, *counts = tally.tolist()
    gap, floor = (mechanism.p - mechanism.q) / SCALE, mechanism.q / SCALE
    rates = [min(max(count / n, floor / 2), 1 - floor / 2) for count in counts]
    shares = [(count / n - floor) / gap for count in counts]
    errors = [sqrt(rate * (1 - rate) / n) / gap for rate in rates]
    start = len(shares) - len(names)
    rows = [EstimateRow(*cells) for cells in zip(names, shares[start:], errors[start:], strict=True)][:MOST_ROWS]
    shown = n if final else n // STEP * STEP
    return Estimate(survey.survey, title, shown, final, tuple(rows), len(names))
