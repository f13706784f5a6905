"""The local rule as a model: what staff declared, as far as one bit of its score bears it out, corrected by features.

Most evidence is one bit b(x) about the declared score (`anon.protocols.histogram.ruled`). Its covariance with the
label, over its standard error, is z. Errors of the base rate and of the mean of b enter as a product, so that neither
can look like an effect. z alone tests the study: no prior is in it, and nothing that is asked about single features.

The effects of features follow from bits about one feature each. Each feature is declared rightly or wrongly. All
effects along the declared way have one size mu, plus a part of size tau that nobody declared. `WRONG` says how many
features may be declared wrongly, before any answer. The score's likelihood weighs that: its covariance is 1 - 2 rho of
the one that it has if all are declared rightly. Then each feature's own bits decide about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import erf, sqrt

import numpy as np
from attrs import evolve, frozen

from aggregator.protocols.additive.learner import declared_direction, prior
from aggregator.protocols.additive.moments import BitTally, Coordinates, NoisyMoments, gather
from aggregator.protocols.additive.reconstruct import Counts, Floats
from aggregator.protocols.additive.results import LearnedStudy, Subject, published
from anon.ldp import SCALE, Mechanism
from anon.protocols.models.belief import Belief
from anon.protocols.models.tables import ModelTable
from anon.study.features import Learning

WRONG = (0.0, 0.2, 0.35, 0.5, 1.0)
"""rho: the part of the features that is declared the wrong way round."""
WEIGHTS = (0.6, 0.12, 0.15, 0.08, 0.05)
"""Their prior weights."""
SIZES = (0.02, 0.04, 0.08, 0.12, 0.18)
"""mu, in units of probability; alike in weight."""
OTHERS = (0.0, 0.04, 0.08, 0.16, 0.32)
"""tau; the first has a weight of `NONE`, the others share the rest."""
NONE = 0.7
COVARIANCES = tuple(0.03 * step for step in range(1, 11))
"""Of b with the label if all is declared rightly; alike in weight."""
RELATION = 0.2
"""The correlation assumed between features when effects become log-odds. No ranking changes with it."""
CONTRADICTED = 0.02
"""Where answers that say nothing would speak so rarely against what was declared, they are said to contradict it."""


@frozen(eq=False)
class SideTally:
    """Of `n` reports of one mechanism `plus` say that a score lies above the middle; of a score's, times the label."""

    mechanism: Mechanism
    plus: int
    n: int

    @property
    def gap(self) -> float:
        """p - q."""
        return (self.mechanism.p - self.mechanism.q) / SCALE

    @property
    def mean(self) -> float:
        """The unbiased estimate of the mean sign; 0 of no report."""
        return (2 * self.plus / self.n - 1) / self.gap if self.n else 0.0

    @property
    def variance(self) -> float:
        """Of `mean`, at most."""
        return 1 / (max(self.n, 0.1) * self.gap**2)

    @staticmethod
    def of(mechanism: Mechanism, counts: Counts) -> SideTally:
        """From the counts of minus and plus."""
        return SideTally(mechanism, int(counts[1]), int(counts.sum()))


@frozen(eq=False)
class ScoreTallies:
    """The reports about the score: with the label around `centre`, and about the side alone."""

    score: SideTally
    side: SideTally
    centre: float


@frozen
class SideEvidence:
    """The covariance of b with the label, and the variance of its error."""

    value: float
    variance: float

    @property
    def z(self) -> float:
        """Standard normal where b says nothing of the label."""
        return self.value / sqrt(self.variance)

    @property
    def against(self) -> float:
        """How often a score that says nothing would speak against what was declared as clearly: a p-value."""
        return (1 + erf(self.z / sqrt(2))) / 2

    @property
    def chance(self) -> float:
        """How often a score that says nothing would speak as clearly, one way or the other: a p-value."""
        return 2 * min(self.against, 1 - self.against)


def evidence_of(told: ScoreTallies, rate: float, rate_error: float) -> SideEvidence:
    """The evidence, given the base rate and its error.

    Where the base rate is off its guess, a b of mean not 0 looks like an effect. Their product is taken off. The
    variance of its error is estimated without bias, but for a negative estimate, which is 0.
    """
    scale, off = max(told.centre, 1 - told.centre), rate - told.centre
    lean, apart = told.side.mean, rate_error**2
    doubt = max(0.0, off**2 * told.side.variance + lean**2 * apart - apart * told.side.variance)
    return SideEvidence(scale * told.score.mean - off * lean, scale**2 * told.score.variance + doubt)


def learn_ruled(
    subject: Subject, told: ScoreTallies, bits: Sequence[BitTally], learning: Learning, coordinates: Coordinates,
    enough: int,
) -> LearnedStudy:
    """The model of a study of the local rule. `enough`: see `Belief`."""
    moments = gather(coordinates, [], bits, subject.shares, learning.base_rate)
    evidence = evidence_of(told, moments.rate, moments.rate_error)
    effects, declared = believed(moments, evidence)
    told_of = sum(map(any, coordinates.expects))
    unit = 1 / (moments.rate * (1 - moments.rate) * (1 + RELATION * max(0, told_of - 1)))
    tables = []
    for feature in subject.features:
        log_odds = tuple(float(unit * value) for value in effects[coordinates.places[feature.name]])
        votes = tuple(int(value > 0) for value in log_odds)
        reports = moments.reports[feature.name]
        tables.append(ModelTable((feature.name,), (feature.cardinality,), reports, 0.0, 0.5, 0.0, log_odds, votes))
    members = told.score.n + told.side.n + sum(bit.n for bit in bits)
    against = evidence.against
    belief = Belief(
        told_of, heard(effects, declared, coordinates), members, against, against <= CONTRADICTED, enough
    )
    made = evolve(subject.model("soft", "additive", moments.rate, moments.rate, tables), belief=belief)
    return published(LearnedStudy(made, (), moments.rate, chance=evidence.chance))


def heard(effects: Floats, declared: Floats, coordinates: Coordinates) -> float:
    """The part of the effects' variance that is not along what was declared, all categories of a feature being alike
    common. All of it where the answers turned the declared way around."""
    along = float(effects @ declared)
    if along <= 0:
        return 1.0
    own = along / float(declared @ declared) * declared
    spread = sum(float(np.var(effects[place])) for place in coordinates.places.values())
    rest = sum(float(np.var((effects - own)[place])) for place in coordinates.places.values())
    return min(1.0, rest / spread) if spread else 0.0


def believed(moments: NoisyMoments, evidence: SideEvidence) -> tuple[Floats, Floats]:
    """The posterior mean of each category's effect, in units of probability, and the declared direction. (D,) each."""
    direction = declared_direction(moments)
    size = moments.coordinates.size
    noise, kernel = moments.noise(np.zeros(size)), prior(moments.coordinates)
    places = [moments.coordinates.places[name] for name in moments.coordinates.names]
    features = [_Feature.of(moments, place, direction, noise, kernel) for place in places]
    known = np.array([[feature.seen(tau) for tau in OTHERS] for feature in features])  # (F, T, 3)
    sizes, wrong = np.array(SIZES)[:, None, None], np.array(WRONG)[:, None, None, None]
    along, square, other = known[..., 0], known[..., 1], known[..., 2]
    right = sizes * along - sizes**2 / 2 * square  # (M, F, T)
    turned = -sizes * along - sizes**2 / 2 * square
    with np.errstate(divide="ignore"):
        ways = np.log(1 - wrong) + right, np.log(wrong) + turned  # (R, M, F, T)
    told = np.array([bool(feature.direction.any()) for feature in features])[:, None]
    both = np.where(told, np.logaddexp(*ways), 0.0)
    lean = np.where(told, np.exp(ways[0] - np.logaddexp(*ways)) - np.exp(ways[1] - np.logaddexp(*ways)), 0.0)
    prior_tau = np.array([NONE, *[(1 - NONE) / (len(OTHERS) - 1)] * (len(OTHERS) - 1)])
    scores = np.log(WEIGHTS) + np.log(_of_score(evidence))
    total = (both + other).sum(axis=2) + scores[:, None, None] + np.log(prior_tau)
    weights = np.exp(total - total.max())
    weights /= weights.sum()
    effects = np.zeros(size)
    sized = np.einsum("rmt,rmft->ft", weights, lean * sizes[None])
    by_tau = weights.sum(axis=(0, 1))
    for feature, own in zip(features, sized, strict=True):
        for tau, part, weight in zip(OTHERS, own, by_tau, strict=True):
            effects[feature.place] += feature.mean(tau, part, weight)
    return effects, direction


def _of_score(evidence: SideEvidence) -> Floats:
    """The likelihood of each rho, (R,)."""
    expected = (1 - 2 * np.array(WRONG))[:, None] * np.array(COVARIANCES)
    found = -((evidence.value - expected) ** 2) / 2 / evidence.variance
    likely: Floats = np.exp(found - found.max()).mean(axis=1)
    return np.maximum(likely, 1e-300)


@frozen(eq=False)
class _Feature:
    """The bits about one feature: `values` (k,) = `design` (k, card) @ effects + noise."""

    place: slice
    values: Floats
    design: Floats
    noise: Floats
    kernel: Floats
    direction: Floats

    @staticmethod
    def of(moments: NoisyMoments, place: slice, direction: Floats, noise: Floats, kernel: Floats) -> _Feature:
        asked = np.flatnonzero(moments.signs[:, place].any(axis=1))
        shares = moments.shares[place]
        design = moments.signs[asked][:, place] @ (np.diag(shares) - np.outer(shares, shares))
        own = noise[np.ix_(asked, asked)]
        return _Feature(place, moments.bits[asked], design, own, kernel[place, place], direction[place])

    def seen(self, tau: float) -> tuple[float, float, float]:
        """Of the values: the part along the direction, the direction's square, and the log Bayes factor of tau."""
        covariance = self.noise + tau**2 * self.design @ self.kernel @ self.design.T
        along = self.design @ self.direction
        sharp = np.linalg.solve(covariance, np.column_stack([self.values, along])) if len(along) else np.zeros((0, 2))
        plain = np.linalg.solve(self.noise, self.values)
        wide = np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(self.noise)[1]
        return (
            float(along @ sharp[:, 0]), float(along @ sharp[:, 1]),
            float(self.values @ (plain - sharp[:, 0]) - wide) / 2,
        )  # fmt: skip

    def mean(self, tau: float, part: float, weight: float) -> Floats:
        """The mean effect, times `weight`, where that along the direction, times the weight, is `part`."""
        covariance = self.noise + tau**2 * self.design @ self.kernel @ self.design.T
        rest = weight * self.values - part * self.design @ self.direction
        found: Floats = part * self.direction + tau**2 * self.kernel @ self.design.T @ np.linalg.solve(covariance, rest)
        return found
