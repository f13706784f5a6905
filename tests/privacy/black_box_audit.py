"""A black-box audit: run a perturbation many times and bound its privacy loss from below by what comes out.

Nothing is read but reports, so it judges what the code does and not what it states. It proves nothing by silence: a
loss it does not find may be in an event it does not count, or too small for the trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from attrs import frozen

from anon.ldp.epsilon import NANO
from anon.ldp.mechanism import PerturbedReport, RandomBytes, RawCategory

Perturb = Callable[[RawCategory, RandomBytes], PerturbedReport]

View = Callable[[bytes], str]
"""Spells a report as m characters 0 or 1: which of the m categories it supports."""


@frozen
class Finding:
    """The event in which two categories were told apart best, and a lower confidence bound of that loss in nats."""

    event: str
    likelier_from: int
    than_from: int
    loss: float

    def exceeds(self, epsilon: int) -> bool:
        """True if the loss is above so many nano-epsilon, at the audit's false-alarm rate."""
        return self.loss > epsilon / NANO


def unary_view(m: int) -> View:
    """Return the view of a report of m bits."""
    return lambda report: f"{int.from_bytes(report, 'big') >> (-m % 8):0{m}b}"


def one_hot_view(m: int) -> View:
    """Return the view of a report that names one of m categories."""
    spellings = {index.to_bytes(2, "big"): f"{1 << (m - 1 - index):0{m}b}" for index in range(m)}
    return spellings.__getitem__


def audit(
    perturb: Perturb, view: View, m: int, trials: int, false_alarm: float, random_bytes: RandomBytes
) -> Finding:
    """Return the largest privacy loss seen over every event and every ordered pair of the m categories.

    Events: each position set, each clear, and each ordered pair of positions with the first set and the second clear,
    which is where unary encodings attain their loss; a k-ary response attains its own at one position set. Each
    category is perturbed `trials` times. All confidence bounds hold together with probability 1 - `false_alarm`
    (Bonferroni over all events, categories and both sides), so `Finding.exceeds(true loss)` is at most that probable.
    """
    counts = [_count_events(_columns(perturb, view, RawCategory(value, m), trials, random_bytes), trials)
              for value in range(m)]  # fmt: skip
    risk = false_alarm / (2 * m * len(counts[0]))
    findings = (_largest_loss(event, [counted[event] for counted in counts], trials, risk) for event in counts[0])
    return max(findings, key=lambda finding: finding.loss)


def _columns(perturb: Perturb, view: View, category: RawCategory, trials: int, random_bytes: RandomBytes) -> list[int]:
    """Return, for each position, an integer with one bit for each trial."""
    spelled = "".join([view(perturb(category, random_bytes).data) for _ in range(trials)])
    return [int(spelled[position :: category.m], 2) for position in range(category.m)]


def _count_events(columns: list[int], trials: int) -> dict[str, int]:
    counts = {}
    for first, column in enumerate(columns):
        counts[f"{first} set"] = column.bit_count()
        counts[f"{first} clear"] = trials - column.bit_count()
        for second, other in enumerate(columns):
            if first != second:
                counts[f"{first} set, {second} clear"] = column.bit_count() - (column & other).bit_count()
    return counts


def _largest_loss(event: str, counts: list[int], trials: int, risk: float) -> Finding:
    likelier, rarer = counts.index(max(counts)), counts.index(min(counts))
    lower = 1 - upper_bound(trials - counts[likelier], trials, risk)
    loss = math.log(lower / upper_bound(counts[rarer], trials, risk)) if lower > 0 else -math.inf
    return Finding(event, likelier, rarer, loss)


@lru_cache(maxsize=2**16)
def upper_bound(count: int, trials: int, risk: float) -> float:
    """Return a value above the true probability except with probability `risk`, for `count` successes in `trials`.

    The Chernoff bound in its Kullback-Leibler form: valid for every n, and never tighter than Clopper-Pearson.
    """
    share, allowed = count / trials, math.log(1 / risk) / trials
    low, high = share, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(share, middle) < allowed else (low, middle)
    return high


def divergence(share: float, chance: float) -> float:
    """Return the Kullback-Leibler divergence of one coin from another, in nats."""
    if chance in (0.0, 1.0):
        return 0.0 if share == chance else math.inf
    hit = share * math.log(share / chance) if share else 0.0
    miss = (1 - share) * math.log((1 - share) / (1 - chance)) if share < 1 else 0.0
    return hit + miss
