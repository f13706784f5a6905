"""The calibrated rule for many people at once: their exact sums, each teller's noise, and the protocol's own estimator.

A member's vector is made as on its own machine, but for the order of floating-point sums: an entry can differ by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from aggregator.lab.simulation.sum_noise import Integers, simulated_noise
from aggregator.protocols.additive.reconstruct import Floats
from anon.protocols.vectors.residuals import ResidualSums, ScoreSums, ruled
from anon.protocols.vectors.rule import CUTS, UNIT, DeclaredRule, RuleModel, codes


def log_odds(model: RuleModel, categories: Integers) -> Floats:
    """The log-odds (people,) of people with these categories (people, features)."""
    total = np.full(len(categories), model.intercept)
    for own, at in zip(model.tables, categories.T, strict=True):
        total += np.array(own)[at]
    found: Floats = total / UNIT
    return found


def rule_sums(
    rule: DeclaredRule,
    residuals: ResidualSums,
    noises: Sequence[Fraction],
    parties: int,
    categories: Integers,
    labels: Integers,
    generator: np.random.Generator,
) -> list[tuple[tuple[int, ...], int, Fraction]]:
    """The noisy sum of each round of these people, categories (people, features): with `noises` of each party."""
    sums: list[tuple[tuple[int, ...], int, Fraction]] = []
    phi = np.column_stack([np.array(codes(card))[own] for card, own in zip(rule.cards, categories.T, strict=True)])
    for each in noises:
        if not sums:
            exact = _scored(rule, ScoreSums(residuals), categories, labels)
        else:
            exact = _residuals(residuals, phi, labels, ruled(rule, residuals, sums)[1], categories)
        noisy = exact + simulated_noise(each, parties, len(exact), generator)
        sums.append((tuple(map(int, noisy)), len(labels), each * parties))
    return sums


def _scored(rule: DeclaredRule, table: ScoreSums, categories: Integers, labels: Integers) -> Integers:
    score = sum(np.array(part)[at] for part, at in zip(rule.parts, categories.T, strict=True))
    cells = 2 * np.searchsorted(CUTS, score, side="right") + labels
    return table.mark * np.bincount(cells, minlength=table.length)


def _residuals(
    residuals: ResidualSums, phi: Floats, labels: Integers, model: RuleModel, categories: Integers
) -> Integers:
    clip = float(residuals.clip)
    apart = np.clip(labels - 1 / (1 + np.exp(-log_odds(model, categories))), -clip, clip)
    told: Integers = np.rint(apart[:, None] * phi * residuals.scale).astype(np.int64).sum(axis=0)
    return np.concatenate([told, np.zeros(residuals.length - len(told), dtype=np.int64)])
