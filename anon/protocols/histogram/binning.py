"""Finding cuts from perturbed answers: pure functions of published counts, so that every peer recomputes them.

One round (default): a small histogram whose quantiles are read off. Many rounds: Algorithm 1 of Cyphers &
Veeramachaneni 2017 with its errata. (2) It starts at (min+max)/2. (3) It debiases the fraction. (4) It takes the margin
of one proportion. (5) An undecided round keeps the step and pools its evidence. (6) It asks x <= t against x > t with t
>= min.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1, log1p, sqrt

from attrs import evolve

from anon.ldp.simplex import nearest_shares
from anon.study.features import Feature
from anon.values import frozen


def level_edges(feature: Feature, levels: int) -> tuple[float, ...]:
    """`levels - 1` increasing inner edges that divide the declared range evenly, or evenly in log(1 + x)."""
    low, high = _scaled(feature)
    return tuple(_unscaled(feature, low + (high - low) * k / levels) for k in range(1, levels))


def edges_from_histogram(edges: Sequence[float], estimates: Sequence[float], n: int, bins: int) -> tuple[float, ...]:
    """`bins - 1` of the level edges, chosen so that bins hold equal shares as nearly as the levels allow.

    After each cut the rest is divided anew among the bins left. So a value held by most peers takes one bin and the
    others share the rest. No bin is empty of levels (erratum 6). `estimates`: unbiased counts per level of `n` answers;
    without any answer the levels count alike.
    """
    shares = nearest_shares([estimate / max(n, 1) for estimate in estimates])
    cuts: list[float] = []
    start = 0
    for left in range(bins, 1, -1):
        target = sum(shares[start:]) / left
        best, reached, miss = start, 0.0, float("inf")
        for level in range(start, len(shares) - left + 1):
            reached += shares[level]
            if abs(reached - target) < miss:
                best, miss = level, abs(reached - target)
        cuts.append(edges[best])
        start = best + 1
    return tuple(cuts)


@frozen
class MedianSearch:
    """Where Algorithm 1 stands: `estimate` and `step` in the feature's scale, evidence pooled since the last move."""

    estimate: float
    step: float
    asked: int = 0
    said_yes: int = 0


def median_start(feature: Feature) -> MedianSearch:
    """The middle of the declared range (erratum 2)."""
    low, high = _scaled(feature)
    return MedianSearch((low + high) / 2, (high - low) / 2)


def median_step(search: MedianSearch, asked: int, said_yes: int, p: float, q: float) -> MedianSearch:
    """The search after one more round of ISGREATER answers by binary random response with probabilities p, q."""
    pooled = evolve(search, asked=search.asked + asked, said_yes=search.said_yes + said_yes)
    if pooled.asked == 0:
        return pooled
    raw = pooled.said_yes / pooled.asked
    fraction = (raw - q) / (p - q)
    margin = sqrt(max(raw * (1 - raw), 1 / (4 * pooled.asked)) / pooled.asked) / (p - q)
    if abs(fraction - 0.5) <= margin:
        return pooled
    step = search.step / 2
    return MedianSearch(search.estimate + (step if fraction > 0.5 else -step), step)


def threshold(feature: Feature, search: MedianSearch) -> float:
    """The current estimate as a value of the feature, at least the minimum and below the maximum."""
    low, high = feature.range
    value = _unscaled(feature, search.estimate)
    return value if low <= value < high else low


def _scaled(feature: Feature) -> tuple[float, float]:
    low, high = feature.range
    return (log1p(low), log1p(high)) if feature.scale == "log" else (low, high)


def _unscaled(feature: Feature, value: float) -> float:
    return expm1(value) if feature.scale == "log" else value
