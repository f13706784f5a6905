"""How a model is learnt: from the tallies of the surveys to the published model.

`aggregator.protocols.histogram.cohorts` first counts the accepted reports of each survey. It draws by their tags which
only score (`score_share`). Then `learn` goes these steps, where the study does not say `classifier = "additive"`:

1. Estimate each survey's shares, unbiased, with their covariance: `reconstruct`.
2. With `ensemble = "soft"`, the default, pool the surveys of one feature subset by their precision. A vote does not
   pool: it keeps one classifier for each survey, as in the paper.
3. Find the base rate, the share of positive labels, pooled over all surveys by their precision: `base_rate`.
4. Fit a classifier to each histogram: `classifiers`. The default, `soft`, takes the posterior mean of each cell's
   log-odds against the base rate, under a normal prior and the known noise. The others are `logistic` and `tree`.
5. Score each classifier on the disjoint score cohort, pooled by subset in either ensemble: `scoring`.
6. Test the whole study against noise: `table_noise_test`.
7. Claim less where noise usually counts as much: `results.published`. Votes and soft tables become the base rate alone.

With `classifier = "additive"` one model of all surveys is learnt, by `aggregator.protocols.additive.model`. Its steps:

1. Gather all tallies, one-bit packets included, as measurements with known noise: `moments.gather`. Shares, base rate
   and contrasts of the categories come from it.
2. Test all measurements together against noise: `noise_test.p_value`, within `learner.fit`.
3. Find every category's effect at once, as the average of ridge regressions over a grid of prior sizes, and make
   log-odds of them: the rest of `learner.fit`.
4. Make one table for each feature, and score it on the score cohort. One-bit packets have none: all of them train.
5. Claim less as above; effects stay, and the likelier label is decided for: `results.published`.

The published tables are combined where a person's answer is predicted: `anon.protocols.models.tables`.
Deterministic: equal tallies give an equal model, bit for bit on one machine and library version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from attrs import evolve, frozen

from aggregator.protocols.additive.empirical_bayes import smoothed
from aggregator.protocols.additive.model import learn_jointly
from aggregator.protocols.additive.moments import BitTally
from aggregator.protocols.additive.reconstruct import (
    Floats,
    Histogram,
    SurveyTally,
    base_rate,
    pool,
    pool_by_subset,
    reconstruct,
)
from aggregator.protocols.additive.results import HOSTILE_SHARE, LearnedStudy, PartitionResult, Subject, published
from aggregator.protocols.additive.scoring import Scores, score
from aggregator.protocols.histogram.classifiers import CLASSIFIERS
from aggregator.protocols.histogram.table_noise_test import chance_of_tables
from anon.protocols.models.tables import ModelTable
from anon.study.features import Learning

__all__ = ["HOSTILE_SHARE", "LearnedStudy", "PartitionResult", "Subject", "learn"]

Fit = Callable[[Histogram], Floats]


@frozen(eq=False)
class _Group:
    """The tallies that one table is fitted to, and their pooled histogram."""

    tallies: tuple[SurveyTally, ...]
    histogram: Histogram


def learn(
    subject: Subject,
    train: Sequence[SurveyTally],
    scoring: Sequence[SurveyTally],
    learning: Learning,
    with_influence: bool = True,
    bits: Sequence[BitTally] = (),
) -> LearnedStudy:
    """Fit `learning` to the training tallies and score it on the disjoint ones.

    The soft ensemble pools surveys of one subset; the vote keeps one classifier per survey, as in the paper, and scores
    all of a subset's on its pooled scoring reports. A survey without reports, one label, or a constant feature end in
    tables that say nothing; where noise alone usually counts as much the model is the base rate. The additive
    classifier is one model of all surveys and the only one that reads one-bit packets.
    """
    if learning.classifier == "additive":
        return learn_jointly(subject, train, scoring, bits, learning, with_influence)
    groups = _groups(train, pooled=learning.ensemble == "soft")
    rate = base_rate([group.histogram for group in groups])
    scored = pool_by_subset([reconstruct(tally) for tally in scoring])
    numeric = frozenset(feature.name for feature in subject.features if feature.kind == "numeric")
    classifier = CLASSIFIERS[learning.classifier]
    tables: list[ModelTable] = []
    results: list[PartitionResult] = []
    for group in groups:
        log_odds = classifier(group.histogram, rate, numeric)
        found = score(log_odds, scored.get(group.histogram.features) or _silent(group.histogram), rate)
        moved = _influence(group, log_odds, lambda h: classifier(h, rate, numeric)) if with_influence else 0.0
        tables.append(_table(group.histogram, log_odds, found, learning))
        results.append(_result(group, found, moved))
    chance = chance_of_tables(subject.features, train, learning.base_rate)
    threshold = rate if learning.ensemble == "soft" else 0.5
    model = subject.model(learning.ensemble, learning.classifier, rate, threshold, tables)
    learned = LearnedStudy(model, tuple(results), rate, chance=chance)
    return published(learned)


def _groups(tallies: Sequence[SurveyTally], pooled: bool) -> list[_Group]:
    gathered: dict[tuple[object, ...], list[SurveyTally]] = {}
    for tally in tallies:
        gathered.setdefault(tally.features if pooled else (tally.survey,), []).append(tally)
    return [_Group(tuple(group), pool([reconstruct(tally) for tally in group])) for group in gathered.values()]


def _silent(histogram: Histogram) -> Histogram:
    return evolve(histogram, n=0)


def _table(histogram: Histogram, log_odds: Floats, found: Scores, learning: Learning) -> ModelTable:
    return ModelTable(
        features=histogram.features,
        cards=histogram.cards,
        reports=histogram.n,
        f1=found.f1,
        auc=found.auc,
        weight=found.f1 if learning.score == "f1" else found.auc,
        log_odds=tuple(float(value) for value in log_odds),
        votes=tuple(int(value > 0) for value in log_odds),
    )


def _result(group: _Group, found: Scores, moved: float) -> PartitionResult:
    histogram = group.histogram
    return PartitionResult(
        surveys=tuple(tally.survey for tally in group.tallies),
        features=histogram.features,
        cards=histogram.cards,
        n=histogram.n,
        scores=found,
        shares=histogram.shares,
        standard_errors=histogram.standard_errors,
        likely=smoothed(histogram.shares, float(np.diag(histogram.covariance).mean())),
        influence=moved,
    )


def _influence(group: _Group, log_odds: Floats, fit: Fit) -> float:
    """The largest change of a cell's log-odds when 1 % of the reports name one category instead, over categories."""
    if group.histogram.n == 0:
        return 0.0
    moved = 0.0
    for category in range(len(group.histogram.shares)):
        hostile = pool([reconstruct(_poisoned(tally, category)) for tally in group.tallies])
        moved = max(moved, float(np.max(np.abs(fit(hostile) - log_odds))))
    return moved


def _poisoned(tally: SurveyTally, category: int) -> SurveyTally:
    liars = max(1, round(HOSTILE_SHARE * tally.n)) if tally.n else 0
    counts = np.rint(tally.counts * (1 - liars / max(tally.n, 1))).astype(np.int64)
    counts[category] += liars
    return evolve(tally, counts=np.minimum(counts, tally.n))
