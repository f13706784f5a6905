"""The one rule for tables of two features: `simulate` without a study file, the planner and the estimator go by it."""

from __future__ import annotations

from math import comb

MOST_PAIRS = 150
"""With more pairs of features than this, tables of pairs would have too few peers each: single features are asked."""

PAIRS_FROM = 4.0
"""From this epsilon on tables of two features tell more than they cost in noise, where nothing is tried out first."""

TRIED_FROM = 0.75
"""Below this epsilon a plan does not even try tables of pairs: they lose everywhere and cost the most time."""


def few_enough(features: int) -> bool:
    """True if each pair of so many features can have a survey of its own."""
    return 0 < comb(features, 2) <= MOST_PAIRS


def asked_untried(features: int, epsilon: float) -> bool:
    """True if pairs are asked where no simulation chooses the design."""
    return epsilon >= PAIRS_FROM and few_enough(features)


def tried(features: int, epsilon: float) -> bool:
    """True if a plan tries tables of pairs beside other designs."""
    return epsilon >= TRIED_FROM and few_enough(features)
