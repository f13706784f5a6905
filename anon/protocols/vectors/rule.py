"""The rule of declared directions, calibrated by a noisy table of score by label, then corrected by noisy residuals.

The score r of a person is the sum of the declared directions of its categories, over the root of their number. A first
table counts bins of r by label. It says how far the log-odds b + s r may lean on the rule (`calibrated`). In each round
that follows a member adds the clipped residual of its label, times a code of its categories. Corrections w are shrunk
by the noise that is known to be in these sums (`corrected`). The published log-odds are b + s r + X w.

Plain Python, in double precision: members and every audit find the same corrections. Published numbers are rounded to
units of 2^-16, far above the last bits in which two machines can differ.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from functools import lru_cache
from math import ceil, erf, exp, fsum, log, log10, sqrt
from typing import Final

from anon.values import frozen

UNIT: Final = 2**16
"""The number that stands for a log-odds of 1."""
CUTS: Final = (-0.75, -0.1, 0.6)
MIDDLES: Final = (-1.25, -0.4, 0.25, 1.1)
"""The bins of a score, and the score that stands for each."""
BINS: Final = len(MIDDLES)
WAY: Final = 0.98
"""The prior chance that the declared way is right; no way at all and the opposite share the rest."""
SLOPE, SLOPE_ERROR, INTERCEPT_ERROR = 1.0, 0.6, 0.7
"""The prior of the slope's size, and of the intercept around the log-odds of the base rate."""
CURVED: Final = 0.5
"""The part of a residual's expected fall with a correction that is counted on."""
SPIKE: Final = 0.8
"""The prior weight of no correction at all."""
CHANCES: Final = (0.1, 0.25, 0.5, 1.0)
SIZES: Final = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""The prior chances that a feature is corrected, and the sizes tau of a correction; alike in weight."""
GUESS_ERROR, UNKNOWN_ERROR = 0.1, 0.3
"""The standard errors of a declared guess of the base rate, and of 1/2, which is no guess."""
RAREST: Final = 0.02
"""The least share of a bin, and of a label."""
CONTRADICTED: Final = 0.015
"""Where answers that say nothing would speak so rarely against what was declared, they are said to contradict it."""
_WEAK, _FAR = 0.5, 2.17 + 1.645
"""The slope of a rule that is found out if it is the wrong way round, and how far its z lies: by a normal z, beyond the
level in 95 of 100 studies. Measured are 93 where scores fill all bins alike, and 86 with shares of .3, .3, .25 and .15.
"""

Floats = tuple[float, ...]


@frozen
class DeclaredRule:
    """The rule of a study: of each feature, in order, the declared direction of each category, from -1 to 1.

    Where nothing is expected of a feature its directions are zeros. `guess`: of the base rate; 1/2 is none.
    """

    directions: tuple[Floats, ...]
    guess: float

    @property
    def cards(self) -> tuple[int, ...]:
        """The categories of each feature."""
        return tuple(map(len, self.directions))

    @property
    def parts(self) -> tuple[Floats, ...]:
        """The part of each category in the score: directions over the root of the number of features that have one."""
        unit = sqrt(max(1, sum(map(any, self.directions))))
        return tuple(tuple(told / unit for told in own) for own in self.directions)

    def bin(self, categories: Sequence[int]) -> int:
        """The bin of the score of a person with these categories."""
        return bisect(CUTS, fsum(own[at] for own, at in zip(self.parts, categories, strict=True)))

    def model(self, found: Calibration, corrections: Floats) -> RuleModel:
        """The calibrated rule with these corrections, in whole units."""
        tables, start = list[tuple[int, ...]](), 0
        for own in self.parts:
            wide = len(own) - 1
            moved = corrections[start : start + wide]
            start += wide
            tables.append(tuple(
                round(UNIT * (found.slope * told + fsum(w * c for w, c in zip(moved, code, strict=True))))
                for told, code in zip(own, codes(len(own)), strict=True)
            ))
        return RuleModel(round(UNIT * found.intercept), tuple(tables))


@frozen
class RuleModel:
    """Log-odds in units of 2^-16: of everybody, and what each category of each feature adds."""

    intercept: int
    tables: tuple[tuple[int, ...], ...]

    def chance(self, categories: Sequence[int]) -> float:
        """The probability of the positive label for a person with these categories."""
        return sigmoid((self.intercept + sum(own[at] for own, at in zip(self.tables, categories, strict=True))) / UNIT)


@frozen
class ScoreEvidence:
    """A noisy table of score by label as evidence for the declared way, or against it.

    `rate`: the estimated share of the positive label. `z`: the score's covariance with the label in standard errors.
    Where the score says nothing of the label it is standard normal.
    """

    rate: float
    z: float

    @property
    def against(self) -> float:
        """How often a score that says nothing would speak against what was declared as clearly: a p-value."""
        return normal(self.z)

    @property
    def chance(self) -> float:
        """How often a score that says nothing would speak as clearly, one way or the other: a p-value."""
        return min(1.0, 2 * normal(-abs(self.z)))


@frozen
class Calibration:
    """Log-odds `intercept` + `slope` r of a score r, and the evidence that they rest on."""

    evidence: ScoreEvidence
    slope: float
    intercept: float


def normal(z: float) -> float:
    """The standard normal's chance to lie below z."""
    return (1 + erf(z / sqrt(2))) / 2


def sigmoid(log_odds: float) -> float:
    """The probability of these log-odds."""
    return 1 / (1 + exp(-log_odds)) if log_odds >= 0 else exp(log_odds) / (1 + exp(log_odds))


@lru_cache(maxsize=64)
def codes(card: int) -> tuple[Floats, ...]:
    """The corners of a regular simplex, each of length 1: `card` categories in `card` - 1 numbers."""
    stretch = sqrt(card / (card - 1)) if card > 1 else 0.0
    return tuple(
        tuple(
            stretch * (1 if category < place else -place if category == place else 0) / sqrt(place * (place + 1))
            for place in range(1, card)
        )
        for category in range(card)
    )


def evidence_of(cells: Sequence[float], people: int, noise: float, guess: float) -> ScoreEvidence:
    """The evidence of a table of bins with the label, the label varying fastest, with `noise` variance on each cell.

    `guess`: of the base rate; 1/2 is none.
    """
    no, yes = cells[::2], cells[1::2]
    rate = _rate(fsum(no), fsum(yes), people, noise, guess)
    wide = noise * ((1 - rate) ** 2 + rate**2)
    apart = [own * (1 - rate) - other * rate for own, other in zip(yes, no, strict=True)]
    alike = [own * rate + other * (1 - rate) for own, other in zip(yes, no, strict=True)]
    shares = _shares(alike, wide)
    centre = fsum(share * middle for share, middle in zip(shares, MIDDLES, strict=True))
    moved = [middle - centre for middle in MIDDLES]
    spread = people * rate * (1 - rate) * fsum(q * m * m for q, m in zip(shares, moved, strict=True))
    error = sqrt(wide * fsum(m * m for m in moved) + spread)
    return ScoreEvidence(rate, fsum(m * d for m, d in zip(moved, apart, strict=True)) / error)


def enough(noise: float, guess: float) -> int:
    """From about how many people on a rule that is wrong as a whole is found out. `noise`: the variance of a cell."""
    centre = fsum(MIDDLES) / BINS
    squares = fsum((middle - centre) ** 2 for middle in MIDDLES)
    told = guess * (1 - guess) * squares / BINS * _WEAK**2
    wide = noise * ((1 - guess) ** 2 + guess**2) * squares
    people = _FAR * (_FAR + sqrt(_FAR**2 + 4 * wide * _WEAK**2)) / (2 * told)
    step: int = 10 ** max(0, int(log10(people)) - 1)
    return ceil(people / step) * step


def calibrated(cells: Sequence[float], people: int, noise: float, guess: float) -> Calibration:
    """The calibration by the same table."""
    found, no, yes = evidence_of(cells, people, noise, guess), cells[::2], cells[1::2]
    shares = _shares([own + other for own, other in zip(yes, no, strict=True)], 2 * noise)
    differences = [own - other for own, other in zip(yes, no, strict=True)]
    return Calibration(found, *_line(differences, shares, people, noise, found.rate))


def _rate(no: float, yes: float, people: int, noise: float, guess: float) -> float:
    """The share of the positive label: counted, with the guess, each by its precision."""
    told = (1 + (yes - no) / people) / 2
    doubt = BINS * noise / (2 * people**2) + guess * (1 - guess) / people
    known = 1 / (UNKNOWN_ERROR if guess == 0.5 else GUESS_ERROR) ** 2
    found = (guess * known + told / doubt) / (known + 1 / doubt)
    return min(max(found, RAREST), 1 - RAREST)


def _shares(counts: Sequence[float], noise: float) -> Floats:
    """Shares of noisy counts, drawn towards being alike by the noise (James and Stein)."""
    mean = fsum(counts) / BINS
    squares = fsum((count - mean) ** 2 for count in counts)
    kept = max(0.0, 1 - (BINS - 1) * noise / squares) if mean > 0 and squares > 0 else 0.0
    found = [max(RAREST, (1 + kept * (count - mean) / mean) / BINS) if kept else 1 / BINS for count in counts]
    return tuple(share / fsum(found) for share in found)


_SLOPES: Final = tuple(0.05 + 0.1 * step for step in range(30))
_STEPS: Final = tuple(-2.1 + 0.2 * step for step in range(22))
"""The grid: sizes of a slope, and intercepts in prior standard deviations."""


def _line(differences: Sequence[float], shares: Floats, people: int, noise: float, rate: float) -> tuple[float, float]:
    """Slope and intercept: the mean over a grid, given the likelier way."""
    centre = log(rate / (1 - rate))
    sizes = {size: -((size - SLOPE) ** 2) / (2 * SLOPE_ERROR**2) for size in _SLOPES}
    total = log(fsum(map(exp, sizes.values())))
    ways: dict[int, list[tuple[float, float, float]]] = {1: [], -1: []}
    for way, prior in ((1, WAY), (-1, (1 - WAY) / 2)):
        for size, weight in sizes.items():
            for step in _STEPS:
                intercept = centre + INTERCEPT_ERROR * step
                told = _likelihood(differences, shares, people, noise, way * size, intercept)
                ways[way].append((log(prior) + weight - total - step * step / 2 + told, way * size, intercept))
    top = max(score for found in ways.values() for score, _, _ in found)
    weighed = {way: [(exp(score - top), s, b) for score, s, b in found] for way, found in ways.items()}
    sums = {way: fsum(weight for weight, _, _ in found) for way, found in weighed.items()}
    way = 1 if sums[1] >= sums[-1] else -1
    slope = fsum(weight * s for weight, s, _ in weighed[way]) / sums[way]
    intercept = fsum(weight * b for weight, _, b in weighed[way]) / sums[way]
    return slope, intercept


def _likelihood(
    differences: Sequence[float], shares: Floats, people: int, noise: float, slope: float, intercept: float
) -> float:
    found = 0.0
    for told, share, middle in zip(differences, shares, MIDDLES, strict=True):
        chance = sigmoid(intercept + slope * middle)
        held = people * share
        variance = 2 * noise + 4 * held * chance * (1 - chance)
        found -= (told - held * (2 * chance - 1)) ** 2 / (2 * variance) + log(variance) / 2
    return found


@frozen
class MeanResidual:
    """A round's sum as the mean of u phi over the people, in the order of the features; `noise`: its variance."""

    means: Floats
    noise: float


def corrected(cards: Sequence[int], calibration: Calibration, people: int, rounds: Sequence[MeanResidual]) -> Floats:
    """The corrections w after these rounds, `card` - 1 numbers of each feature; zeros before the first.

    Each round's residuals are of the corrections after the one before it.
    """
    spent = calibration.evidence.rate * (1 - calibration.evidence.rate)
    falls = tuple(CURVED * (0.5 * spent + 0.075) / (card - 1) for card in cards for _ in range(card - 1))
    pulled = [0.0] * len(falls)
    weights: Floats = (0.0,) * len(falls)
    for number, heard in enumerate(rounds, 1):
        pulled = [z + g + h * w for z, g, h, w in zip(pulled, heard.means, falls, weights, strict=True)]
        chance = tuple(
            heard.noise / number + 0.6 * spent / (people * (card - 1)) for card in cards for _ in range(card - 1)
        )
        weights = _shrunk(cards, tuple(z / number for z in pulled), falls, chance)
    return weights


def _shrunk(cards: Sequence[int], pulled: Floats, falls: Floats, noise: Floats) -> Floats:
    """Posterior means: of each feature all corrections are 0, or normal of size tau, averaged over both."""
    places, start = [], 0
    for card in cards:
        places.append(slice(start, start + card - 1))
        start += card - 1
    scores, means = [0.0], [(0.0,) * len(pulled)]
    prior = log((1 - SPIKE) / SPIKE / len(CHANCES) / len(SIZES))
    for size in SIZES:
        odds = [_odds(pulled[place], falls[place], noise[place], size) for place in places]
        kept = [h * size**2 * z / (h * h * size**2 + v) for z, h, v in zip(pulled, falls, noise, strict=True)]
        for chance in CHANCES:
            each = [_mixed(chance, held) for held in odds]
            scores.append(prior + fsum(score for score, _ in each))
            mean: list[float] = []
            for place, (_, held) in zip(places, each, strict=True):
                mean += [held * value for value in kept[place]]
            means.append(tuple(mean))
    top = max(scores)
    weights = [exp(score - top) for score in scores]
    total = fsum(weights)
    columns = zip(*means, strict=True)
    return tuple(fsum(weight * mean for weight, mean in zip(weights, own, strict=True)) / total for own in columns)


def _odds(pulled: Floats, falls: Floats, noise: Floats, size: float) -> float:
    """The log Bayes factor of corrections of this size against none."""
    found = 0.0
    for z, h, v in zip(pulled, falls, noise, strict=True):
        wide = h * h * size**2 + v
        found += (z * z / v - z * z / wide - log(wide / v)) / 2
    return found


def _mixed(chance: float, odds: float) -> tuple[float, float]:
    """The log of 1 - chance + chance exp(odds), and the part of it that is a correction."""
    if chance == 1.0:
        return odds, 1.0
    top = max(0.0, odds)
    apart, own = (1 - chance) * exp(-top), chance * exp(odds - top)
    return top + log(apart + own), own / (apart + own)
