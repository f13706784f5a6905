"""One additive model of all surveys: features are weighed against each other, and against their noise.

The label is explained by a sum of effects, one per category: y - rate = sum of w + rest. With S the covariances of the
categories' indicators, the measured contrasts are S w plus known noise. So under a normal prior for w the answer is a
ridge in closed form. The prior says that effects are moderate. Those of neighbouring bins of a numeric feature are
alike (a line plus a smooth part). It leaves their size tau to the moments. The answer is the average over a grid of
tau, 0 among them. Each is weighted by how well it explains the measurements. So where nothing can be learnt the model
says the base rate. Negative and impossible estimates enter as they are.

Staff may declare directions (`Feature.expects`). Then most of the prior weight of any effect (`noise_test.DECLARED`)
goes to w ~ N(mu d, tau^2 K), d being the declared direction, and to w ~ N(-mu d, tau^2 K), should all be the wrong way
round, over a grid of mu. The measurements decide which way, and how much each part counts. Of tau they decide as
without directions (`_sized_without_directions`).

S is known within a feature. Between two features it is measured only by tables of both. It is shrunk towards none by
its noise, block by block. A study of single features or of bits is learned as if features were unrelated. That ranks
well and is too sure of itself. `ASSUMED_RELATION` takes that back when effects become log-odds.
"""

from __future__ import annotations

from itertools import combinations
from math import sqrt

import numpy as np
from attrs import evolve, frozen

from aggregator.protocols.additive.moments import Coordinates, NoisyMoments
from aggregator.protocols.additive.noise_test import DECLARED, LEVEL, WhitenedMeasurements, p_value
from aggregator.protocols.additive.reconstruct import Floats

TAUS = (0.0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
"""Prior standard deviations of an effect, in units of probability. The first has a prior weight of one half: that no
feature goes with the label; the others share the rest."""

SHIFTS = (0.01, 0.02, 0.04, 0.08, 0.12)
"""The sizes mu of an effect along a declared direction, or against it, in units of probability, alike a priori.
Together they have `DECLARED` of the weight of any effect; the rest is that of effects around 0."""

SMOOTH = 2.0
"""How far the smooth part of a numeric feature reaches, its whole range being 1."""

ASSUMED_RELATION, UNCERTAIN_RELATION = 0.2, 0.1
"""The correlation assumed between what two features say where no table asked about both. The smaller one is for the
part of a measurement that was taken for noise, and for bits, where guessed shares already make effects look larger.
Set by the calibration of simulated studies; no ranking changes with them."""

LARGEST_R2 = 0.8

ROUNDS = 2
"""How often the noise is found again from what was learned: contrasts are noisy against their own category's rate."""


@frozen(eq=False)
class Additive:
    """`log_odds` (D,): what each category adds to the log-odds of the base rate, and its posterior `errors` (D,).

    `effects`: the same as w, probabilities. `null`: the posterior weight of tau = 0, that nothing can be told apart.
    `chance`: how often noise alone counts as much (`noise_test.p_value`). `r2`: the share of the label's variance that
    the model claims to explain.
    """

    log_odds: Floats
    errors: Floats
    effects: Floats
    null: float
    chance: float
    r2: float


def fit(moments: NoisyMoments) -> Additive:
    """The model that the moments speak for, however likely noise alone is. Deterministic."""
    asked = measurements(moments)
    weights, effects, found, chance = _fitted(asked, asked.seen())
    spread = _spread(asked, found, weights, effects)
    return _as_log_odds(moments, asked.covariance, asked.relations, effects, spread, weights[0], chance)


def refit(asked: Measurements, seen: WhitenedMeasurements, contrast: Floats, bits: Floats) -> Floats:
    """The log-odds (D,) of `fit` to the same moments with another contrast and other bits. `seen`: those of `asked`.

    The noise of no effect is the same. It is found once for many of these fits, and none has its errors found.
    """
    moments = evolve(asked.moments, contrast=contrast, bits=bits)
    other = evolve(asked, moments=moments, values=_values(moments))
    weights, effects, _found, chance = _fitted(other, seen.of_others(other.values))
    return _as_log_odds(moments, asked.covariance, asked.relations, effects, None, weights[0], chance).log_odds


def _fitted(asked: Measurements, seen: WhitenedMeasurements) -> tuple[Floats, Floats, _Posteriors, float]:
    """Weights and mean effects over the priors, what they are of, and the chance that noise alone counts as much."""
    chance = p_value(seen, TAUS[1:], SHIFTS)
    weights, effects, found = _averaged(asked, seen)
    for _ in range(ROUNDS):
        weights, effects, found = _averaged(asked, asked.seen(effects, seen), chance <= LEVEL)
    return weights, effects, found, chance


@frozen(eq=False)
class Measurements:
    """The measurements, as `values` (M,) = `rows` (M, D) @ `covariance` S (D, D) @ effects w (D,) + noise.

    `kernel`: the prior covariance of w at tau = 1. `direction`: d (D,), of which the prior mean of w is a multiple.
    `relations`: for each pair of features what part of the product of their sizes `_assumed` adds.
    """

    moments: NoisyMoments
    rows: Floats
    values: Floats
    covariance: Floats
    relations: dict[tuple[str, str], float]
    kernel: Floats
    direction: Floats

    def seen(self, effects: Floats | None = None, before: WhitenedMeasurements | None = None) -> WhitenedMeasurements:
        """The measurements with the noise that they have if these are the effects; by default, none.

        The errors of S between features become noise of what S w predicts. `before`: the same design as it was seen
        with some noise; nothing is whitened again where it is this one.
        """
        if effects is None:
            noise = self.moments.noise(np.zeros(self.moments.coordinates.size))
        else:
            second = self.moments.second_variance
            doubt = np.where(np.isfinite(second), second, 0.0) / 2 @ effects**2
            noise = self.moments.noise(centred(self.moments, effects)) + np.diag(self.rows**2 @ doubt)
        if before is not None and np.array_equal(before.noise, noise):
            return before.of_others(self.values)
        design = self.rows @ self.covariance
        return WhitenedMeasurements.of(self.values, design, self.kernel, noise, self.direction)


def measurements(moments: NoisyMoments) -> Measurements:
    """All moments as linear measurements of effects."""
    covariance, kept = indicator_covariance(moments)
    rows = np.vstack([np.eye(moments.coordinates.size)[moments.measured], moments.signs])
    kernel, direction = prior(moments.coordinates), declared_direction(moments)
    return Measurements(moments, rows, _values(moments), covariance, _relations(moments, kept), kernel, direction)


def _values(moments: NoisyMoments) -> Floats:
    return np.concatenate([moments.contrast[moments.measured], moments.bits])


def centred(moments: NoisyMoments, effects: Floats) -> Floats:
    """Effects against their mean over the people, feature by feature, (D,)."""
    found = effects.copy()
    for place in moments.coordinates.places.values():
        found[place] -= moments.shares[place] @ effects[place]
    return found


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


def declared_direction(moments: NoisyMoments) -> Floats:
    """d (D,): what the declared signs say of each category, against the mean over the people of its feature.

    The bins of a numeric feature are equally spaced from -1 to 1, times its sign; a category of a categorical feature
    has its own sign. Of a missing value as a category of its own nothing is expected.
    """
    coordinates = moments.coordinates
    found = np.zeros(coordinates.size)
    for name, numeric, own, signs in zip(
        coordinates.names, coordinates.numeric, coordinates.own_missing, coordinates.expects, strict=False
    ):
        place = coordinates.places[name]
        told = slice(place.start, place.stop - (1 if own else 0))
        if not signs or told.stop == told.start:
            continue
        at = signs[0] * np.linspace(-1, 1, told.stop - told.start) if numeric else np.array(signs, dtype=float)
        found[told] = at - moments.shares[told] @ at / moments.shares[told].sum()
    return found


def indicator_covariance(moments: NoisyMoments) -> tuple[Floats, dict[tuple[str, str], float]]:
    """S, positive semidefinite, and for each pair of features which part of its measured block was kept, in [0, 1]."""
    coordinates, shares = moments.coordinates, moments.shares
    covariance = np.zeros((coordinates.size, coordinates.size))
    for place in coordinates.places.values():
        covariance[place, place] = np.diag(shares[place]) - np.outer(shares[place], shares[place])
    kept: dict[tuple[str, str], float] = {}
    for first, other in combinations(coordinates.names, 2):
        rows, columns = coordinates.places[first], coordinates.places[other]
        noise = moments.second_variance[rows, columns]
        kept[first, other] = 0.0
        if not np.isfinite(noise).all():
            continue
        block = moments.second[rows, columns] - np.outer(shares[rows], shares[columns])
        block = block - block.mean(axis=0) - block.mean(axis=1)[:, None] + block.mean()
        degrees = (1 - 1 / block.shape[0]) * (1 - 1 / block.shape[1])
        size = float(np.sum(block**2))
        kept[first, other] = max(0.0, 1 - degrees * float(noise.sum()) / size) if size > 0 else 0.0
        covariance[rows, columns] = kept[first, other] * block
        covariance[columns, rows] = covariance[rows, columns].T
    if any(kept.values()):
        values, vectors = np.linalg.eigh(covariance)
        # Blocks that were shrunk apart may not fit: the nearest matrix that is semidefinite (Higham 1988).
        covariance = (vectors * np.maximum(values, 0)) @ vectors.T
    return covariance, kept


@frozen(eq=False)
class _Posteriors:
    """Of each prior (P,) its tau, the part of each z that it keeps (P, M), and the mean effects (P, D)."""

    seen: WhitenedMeasurements
    taus: Floats
    kept: Floats
    means: Floats


def _posterior(asked: Measurements, seen: WhitenedMeasurements, certain: bool = False) -> tuple[Floats, Floats, Floats]:
    """The weight of each prior, that of no effect first, and the mean (D,) and covariance (D, D) of w over them.

    `certain`: that there is any effect was tested, and no effect is out of question.
    """
    weights, effects, found = _averaged(asked, seen, certain)
    return weights, effects, _spread(asked, found, weights, effects)


def _averaged(
    asked: Measurements, seen: WhitenedMeasurements, certain: bool = False
) -> tuple[Floats, Floats, _Posteriors]:
    """`_posterior` without the covariance, and all that it is found from."""
    shifts, taus, prior_weights = _priors(seen)
    if seen.directed:
        ways = shifts[1 :: len(TAUS) - 1]
        scores = np.append(0.0, seen.log_bayes_factors(TAUS[1:], ways.tolist()))
    else:
        scores = np.array([seen.log_bayes_factor(tau) for tau in taus.tolist()])
    weights = np.exp(scores - scores.max()) * prior_weights
    weights[0] *= not certain
    weights /= weights.sum()
    if seen.directed:
        weights[1:] = weights[1:].sum() * _sized_without_directions(scores[1:], prior_weights[1:])
    kept = np.array([tau**2 / (1 + tau**2 * seen.strengths) for tau in taus.tolist()])
    means = (kept * (seen.z - shifts[:, None] * seen.expected)) @ seen.gain.T
    if seen.directed:
        means += shifts[:, None] * asked.direction
    return weights, weights @ means, _Posteriors(seen, taus, kept, means)


def _spread(asked: Measurements, found: _Posteriors, weights: Floats, effects: Floats) -> Floats:
    """The covariance (D, D) of w over all priors."""
    within, gain = asked.kernel * float(weights @ found.taus**2), found.seen.gain
    told = weights @ (found.kept * found.taus[:, None] ** 2)
    apart = found.means - effects
    return within - (gain * told) @ gain.T + (apart * weights[:, None]).T @ apart


def _sized_without_directions(scores: Floats, prior_weights: Floats) -> Floats:
    """The weights of all effects, (P - 1,), with those of tau as effects around 0 have them; within each tau, of mu.

    Effects around mu d would speak for a smaller tau: a line explains most. With many answers that took away what they
    said besides the line.
    """
    by_size = scores.reshape(-1, len(TAUS) - 1)
    within = np.exp(by_size - by_size.max(axis=0)) * prior_weights.reshape(by_size.shape)
    sizes = np.exp(by_size[0] - by_size[0].max())
    found: Floats = (within / within.sum(axis=0) * (sizes / sizes.sum())).ravel()
    return found


def _priors(seen: WhitenedMeasurements) -> tuple[Floats, Floats, Floats]:
    """mu, tau and the weight of each prior, that of no effect first; then by mu, 0 first, and within it by tau."""
    sizes = np.array(TAUS[1:])
    around_zero = 0.5 * (1 - DECLARED) if seen.directed else 0.5
    found = [(0.0, 0.0, 0.5), *((0.0, tau, around_zero / len(sizes)) for tau in sizes)]
    for way, share in ((1, 1 - seen.reversed), (-1, seen.reversed)) if seen.directed else ():
        weight = share * 0.5 * DECLARED / len(sizes) / len(SHIFTS)
        found += [(way * shift, tau, weight) for shift in SHIFTS for tau in sizes]
    shifts, taus, weights = np.array(found).T
    return shifts, taus, weights


def _as_log_odds(
    moments: NoisyMoments,
    covariance: Floats,
    relations: dict[tuple[str, str], float],
    effects: Floats,
    spread: Floats | None,
    null: float,
    chance: float,
) -> Additive:
    """Effects as calibrated log-odds, by the normal discriminant with the same moments.

    With f the sum of effects, b = cov(f, y)/var f corrects f. Log-odds are (b f - (1 - 2 rate) R^2/2) / (rate (1 -
    rate) (1 - R^2)). Linear regression and linear discriminants have this in common. The errors are those of f and of
    R^2 together, to first order; zeros without a `spread`.
    """
    coordinates, rate = moments.coordinates, moments.rate
    plain = centred(moments, effects)
    claimed = float(plain @ covariance @ plain)
    variance = claimed + _assumed(moments, covariance, relations, plain)
    correction = claimed / variance if variance > 0 else 1.0
    spent = rate * (1 - rate)
    r2 = min(correction * claimed / spent, LARGEST_R2)
    gain = correction / (spent * (1 - r2))
    lean = (1 - 2 * rate) / 2 / spent / len(coordinates.names)
    log_odds = gain * plain - lean * r2 / (1 - r2)
    if spread is None:
        return Additive(log_odds, np.zeros_like(plain), plain, null, chance, r2)
    slope = np.zeros_like(covariance)
    for place in coordinates.places.values():
        slope[place, place] = gain * (np.eye(place.stop - place.start) - moments.shares[place])
    if r2 < LARGEST_R2:
        by_r2 = gain * plain / (1 - r2) - lean / (1 - r2) ** 2
        slope += np.outer(by_r2, 2 * correction / spent * (covariance @ plain))
    errors = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", slope, spread, slope, optimize=True), 0))
    return Additive(log_odds, errors, plain, null, chance, r2)


def _relations(moments: NoisyMoments, kept: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """`kept`: as in `indicator_covariance`."""
    places, found = moments.coordinates.places, {}
    for (first, second), share in kept.items():
        asked = bool(np.isfinite(moments.second_variance[places[first], places[second]]).all())
        tables = bool(np.isfinite(moments.contrast_variance[[places[first].start, places[second].start]]).all())
        relation = ASSUMED_RELATION if tables and not asked else UNCERTAIN_RELATION
        found[first, second] = 2 * (1 - share) * relation
    return found


def _assumed(
    moments: NoisyMoments, covariance: Floats, relations: dict[tuple[str, str], float], effects: Floats
) -> float:
    """The variance of f that relations between features are assumed to add to those that were believed."""
    places = moments.coordinates.places
    size = {
        name: sqrt(max(float(effects[place] @ covariance[place, place] @ effects[place]), 0.0))
        for name, place in places.items()
    }
    added = 0.0
    for (first, second), relation in relations.items():
        added += relation * size[first] * size[second]
    return added
