"""One additive model of all surveys: features are weighed against each other, and against their noise.

The label is explained by a sum of effects, one per category: y - rate = sum of w + rest. With S the covariances of the
categories' indicators, the measured contrasts are S w plus known noise, so that under a normal prior for w the answer
is a ridge in closed form. The prior says that effects are moderate, that those of neighbouring bins of a numeric
feature are alike (a line plus a smooth part), and leaves their size tau to the evidence: the answer is the average over
a grid of tau, 0 among them, each weighted by how well it explains what was measured. So where nothing can be learnt the
model says the base rate. Negative and impossible estimates enter as they are.

S is known within a feature. Between two features it is measured only by tables of both, and shrunk towards none by
its noise, block by block; a study of single features or of bits is learned as if features were unrelated, which ranks
well and is too sure of itself: `ASSUMED_RELATION` takes that back when effects become log-odds.
"""

from __future__ import annotations

from itertools import combinations
from math import sqrt

import numpy as np
from attrs import frozen

from aggregator.protocols.histogram.evidence import Coordinates, Evidence
from aggregator.protocols.histogram.reconstruct import Floats

TAUS = (0.0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
"""Prior standard deviations of an effect, in units of probability. The first has a prior weight of one half: that no
feature goes with the label; the others share the rest."""

SMOOTH = 2.0
"""How far the smooth part of a numeric feature reaches, its whole range being 1."""

ASSUMED_RELATION, UNCERTAIN_RELATION = 0.25, 0.1
"""The correlation assumed between what two features say where no table asked about both. The smaller one is for the
part of a measurement that was taken for noise, and for bits, where guessed shares already make effects look larger.
Set by the calibration of simulated studies; no ranking changes with them."""

LARGEST_R2 = 0.8


@frozen(eq=False)
class Additive:
    """`log_odds` (D,): what each category adds to the log-odds of the base rate, and its posterior `errors` (D,).

    `effects`: the same as w, probabilities. `null`: the posterior weight of tau = 0, that nothing can be told apart.
    `r2`: the share of the label's variance that the model claims to explain.
    """

    log_odds: Floats
    errors: Floats
    effects: Floats
    null: float
    r2: float


def fit(evidence: Evidence) -> Additive:
    """The model that the evidence speaks for. Deterministic."""
    size = evidence.coordinates.size
    covariance, kept = indicator_covariance(evidence)
    measured = np.isfinite(evidence.contrast_variance)
    rows = np.vstack([np.eye(size)[measured], evidence.signs])
    values = np.concatenate([evidence.contrast[measured], evidence.bits])
    noise = np.concatenate([evidence.contrast_variance[measured], evidence.bit_variance])
    doubt = np.where(np.isfinite(evidence.second_variance), evidence.second_variance, 0.0) / 2
    kernel = prior(evidence.coordinates)
    fits = [_posterior(rows, values, noise, covariance, kernel * tau**2, doubt) for tau in TAUS]
    best = max(one[0] for one in fits)
    weights = np.exp([one[0] - best for one in fits])
    weights[1:] /= len(TAUS) - 1
    weights /= weights.sum()
    effects: Floats = np.sum([w * one[1] for w, one in zip(weights, fits, strict=True)], axis=0)
    spread: Floats = np.sum([w * one[2] for w, one in zip(weights, fits, strict=True)], axis=0)
    return _as_log_odds(evidence, covariance, kept, effects, spread, float(weights[0]))


def prior(coordinates: Coordinates) -> Floats:
    """The prior covariance of effects at tau = 1, shape (D, D): none between features."""
    kernel = np.zeros((coordinates.size, coordinates.size))
    described = zip(coordinates.names, coordinates.cards, coordinates.numeric, coordinates.own_missing, strict=True)
    for name, card, numeric, own in described:
        place = coordinates.places[name]
        block = np.eye(card)
        ordered = card - (1 if own else 0)
        if numeric and ordered > 2:
            at = np.linspace(-1, 1, ordered)
            smooth = 2 * np.exp(-np.abs(at[:, None] - at[None, :]) / 2 / SMOOTH)
            block[:ordered, :ordered] = smooth + np.outer(at, at)
        kernel[place, place] = block
    return kernel


def indicator_covariance(evidence: Evidence) -> tuple[Floats, dict[tuple[str, str], float]]:
    """S, positive semidefinite, and for each pair of features which part of its measured block was kept, in [0, 1]."""
    coordinates, shares = evidence.coordinates, evidence.shares
    covariance = np.zeros((coordinates.size, coordinates.size))
    for place in coordinates.places.values():
        covariance[place, place] = np.diag(shares[place]) - np.outer(shares[place], shares[place])
    kept: dict[tuple[str, str], float] = {}
    for first, other in combinations(coordinates.names, 2):
        one, two = coordinates.places[first], coordinates.places[other]
        noise = evidence.second_variance[one, two]
        kept[first, other] = 0.0
        if not np.isfinite(noise).all():
            continue
        block = evidence.second[one, two] - np.outer(shares[one], shares[two])
        block = block - block.mean(axis=0) - block.mean(axis=1)[:, None] + block.mean()
        degrees = (1 - 1 / block.shape[0]) * (1 - 1 / block.shape[1])
        size = float(np.sum(block**2))
        kept[first, other] = max(0.0, 1 - degrees * float(noise.sum()) / size) if size > 0 else 0.0
        covariance[one, two] = kept[first, other] * block
        covariance[two, one] = covariance[one, two].T
    if any(kept.values()):
        values, vectors = np.linalg.eigh(covariance)
        covariance = (vectors * np.maximum(values, 0)) @ vectors.T
    return covariance, kept


def _posterior(
    rows: Floats, values: Floats, noise: Floats, covariance: Floats, kernel: Floats, doubt: Floats
) -> tuple[float, Floats, Floats]:
    """Log evidence, posterior mean of w and its covariance, for one prior.

    `doubt`, the variance of S, becomes noise of what S w predicts, found by two rounds from w itself.
    """
    design = rows @ covariance
    effects: Floats = np.zeros(len(covariance))
    gain: Floats = np.zeros((len(covariance), len(values)))
    for _ in range(3 if doubt.any() else 1):
        total = noise + rows**2 @ (doubt @ effects**2)
        spread = design @ kernel @ design.T + np.diag(total)
        gain = np.asarray(np.linalg.solve(spread, design @ kernel).T, dtype=np.float64)
        effects = gain @ values
    logdet = float(np.linalg.slogdet(spread)[1]) if len(values) else 0.0
    fit_term = float(values @ np.linalg.solve(spread, values)) if len(values) else 0.0
    return -0.5 * (logdet + fit_term), effects, kernel - gain @ design @ kernel


def _as_log_odds(
    evidence: Evidence,
    covariance: Floats,
    kept: dict[tuple[str, str], float],
    effects: Floats,
    spread: Floats,
    null: float,
) -> Additive:
    """Effects as calibrated log-odds, by the normal discriminant with the same moments.

    With f the sum of effects, b = cov(f, y)/var f corrects f, and log-odds are (b f - (1 - 2 rate) R^2/2) / (rate
    (1 - rate) (1 - R^2)): what linear regression and linear discriminants have in common.
    """
    coordinates, rate = evidence.coordinates, evidence.rate
    centred, variances = effects.copy(), np.zeros(coordinates.size)
    for place in coordinates.places.values():
        centring = np.eye(place.stop - place.start) - evidence.shares[place]
        centred[place] = centring @ effects[place]
        variances[place] = np.maximum(np.diag(centring @ spread[place, place] @ centring.T), 0)
    claimed = float(centred @ covariance @ centred)
    variance = claimed + _assumed(evidence, covariance, kept, centred)
    correction = claimed / variance if variance > 0 else 1.0
    spent = rate * (1 - rate)
    r2 = min(correction * claimed / spent, LARGEST_R2)
    gain = correction / (spent * (1 - r2))
    offset = (1 - 2 * rate) * r2 / 2 / (spent * (1 - r2)) / len(coordinates.names)
    return Additive(gain * centred - offset, gain * np.sqrt(variances), centred, null, r2)


def _assumed(
    evidence: Evidence, covariance: Floats, kept: dict[tuple[str, str], float], effects: Floats
) -> float:
    """The variance of f that relations between features are assumed to add to those that were believed."""
    places = evidence.coordinates.places
    size = {
        name: sqrt(max(float(effects[place] @ covariance[place, place] @ effects[place]), 0.0))
        for name, place in places.items()
    }
    added = 0.0
    for (one, two), share in kept.items():
        asked = bool(np.isfinite(evidence.second_variance[places[one], places[two]]).all())
        tables = bool(np.isfinite(evidence.contrast_variance[[places[one].start, places[two].start]]).all())
        relation = ASSUMED_RELATION if tables and not asked else UNCERTAIN_RELATION
        added += 2 * (1 - share) * relation * size[one] * size[two]
    return added
