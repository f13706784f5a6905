"""Estimates from accepted packets, for the desk: shares with 95 % confidence intervals.

While a survey is open its estimate moves only when at least 50 more packets have come than it was made from, and none
is shown for the first packets that a restarted program finds (it cannot know which estimate was shown before). Once no
packet of the survey is accepted any more, the estimate is final and exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

from attrs import frozen

from aggregator.counters import STEP
from aggregator.protocols.histogram.tally import tally
from aggregator.report.names import cell_names, interval_names, survey_title, with_label
from anon.ldp import SCALE
from anon.messages import parse_packet
from anon.protocols.histogram.cuts import Answers, asked_before, asked_edges, feature_cuts
from anon.study.manifest import Manifest, Survey

NORMAL_95 = 1.959964
MOST_ROWS = 64


@frozen
class Row:
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
    rows: tuple[Row, ...]
    categories: int


def estimate(
    manifest: Manifest, survey: Survey, published: Mapping[int, Answers], plaintexts: Sequence[bytes], final: bool
) -> Estimate | None:
    """The estimate from these accepted packets of a survey; None without any."""
    n, mechanism = len(plaintexts), survey.build()
    if not n:
        return None
    counts = tally(mechanism, [mechanism.parse(parse_packet(one).report) for one in plaintexts])
    gap, floor = (mechanism.p - mechanism.q) / SCALE, mechanism.q / SCALE
    rates = [min(max(int(count) / n, floor / 2), 1 - floor / 2) for count in counts]
    shares = [(int(count) / n - floor) / gap for count in counts]
    errors = [sqrt(rate * (1 - rate) / n) / gap for rate in rates]
    names = _names(manifest, survey, published)
    start = len(shares) - len(names)  # a yes/no question shows its yes alone
    rows = [Row(*one) for one in zip(names, shares[start:], errors[start:], strict=True)][:MOST_ROWS]
    shown = n if final else n // STEP * STEP
    return Estimate(survey.survey, survey_title(manifest, survey), shown, final, tuple(rows), len(names))


def _names(manifest: Manifest, survey: Survey, published: Mapping[int, Answers]) -> list[str]:
    feature = survey.features[0]
    if survey.kind == "bit":
        return ["answered plus"]
    if survey.kind == "threshold":
        return [f"{feature} > {asked_edges(manifest, survey, published)[0]:.6g}"]
    if survey.kind == "quantile":
        return interval_names(feature, asked_edges(manifest, survey, published))
    cuts = [feature_cuts(manifest, name, published) if manifest.feature(name).kind == "numeric" else ()
            for name in survey.features]
    return with_label(manifest, cell_names(manifest, survey.features, survey.cards, cuts))


def can_be_named(manifest: Manifest, survey: Survey, published: Mapping[int, Answers]) -> bool:
    """Whether the documents that say what the survey asks are published."""
    return all(one.survey in published for one in asked_before(manifest, survey))


class Steps:
    """Decides when an open survey's estimate may move."""

    def __init__(self) -> None:
        self._seen: dict[tuple[bytes, int], int] = {}

    def may_move(self, study: bytes, survey: int, accepted: int) -> bool:
        """True when at least 50 packets came since the last time it was, or since this program first looked."""
        before = self._seen.setdefault((study, survey), accepted)
        if accepted - before < STEP:
            return False
        self._seen[study, survey] = accepted
        return True
