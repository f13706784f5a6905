"""The test against noise alone for tables that are learned one by one: the paper's votes and the soft ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from attrs import evolve

from aggregator.protocols.additive.learner import measurements
from aggregator.protocols.additive.moments import Coordinates, gather
from aggregator.protocols.additive.noise_test import p_value
from aggregator.protocols.additive.reconstruct import SurveyTally
from anon.study.features import Feature

CELL_TAUS = (0.02, 0.04, 0.08, 0.16, 0.32)

MOST_CELLS = 600
"""With more cells than this only single features are tested."""


def chance_of_tables(features: Sequence[Feature], tables: Sequence[SurveyTally], guessed_rate: float) -> float:
    """How often noise alone would count as much as these tallies, in single features or in cells of several.

    Both are tested where tables ask about several features, each at half the level.
    """
    told = [table for table in tables if table.n > 0]
    if not told:
        return 1.0
    single = _chance(features, told, guessed_rate)
    merged = [_merged(table) for table in told]
    cells = {table.features: table.cards[0] for table in merged}
    if all(len(table.features) == 1 for table in told) or sum(cells.values()) > MOST_CELLS:
        return single
    # Bonferroni: the smaller of two p-values, doubled.
    return min(1.0, 2 * min(single, _chance((), merged, guessed_rate)))


def _chance(features: Sequence[Feature], tables: Sequence[SurveyTally], guessed_rate: float) -> float:
    cards = {name: card for table in tables for name, card in zip(table.features, table.cards, strict=True)}
    numeric = {feature.name for feature in features if feature.kind == "numeric"}
    own = {feature.name for feature in features if feature.missing == "own"}
    coordinates = Coordinates(
        tuple(cards),
        tuple(cards.values()),
        tuple(name in numeric for name in cards),
        tuple(name in own for name in cards),
    )
    moments = gather(coordinates, tables, [], {}, guessed_rate)
    return p_value(measurements(moments).seen(), CELL_TAUS)


def _merged(tally: SurveyTally) -> SurveyTally:
    """Its cells as the categories of one feature."""
    return evolve(tally, features=("\n".join(tally.features),), cards=(prod(tally.cards),))
