"""How far a model's log-odds would move if the same people answered again: a parametric bootstrap of the tallies.

The learner's own posterior errors leave out what it takes as given: how common categories are, the base rate, how
effects become log-odds. Drawing the tallies again from what was counted, and learning from each draw, has all of it.
The cuts stay as they were found.
"""

from __future__ import annotations

import numpy as np
from attrs import evolve

from aggregator.protocols.histogram.evidence import BitTally
from aggregator.protocols.histogram.learned import LearnedStudy
from aggregator.protocols.histogram.reconstruct import Floats, SurveyTally
from aggregator.simulate import learn_collected
from aggregator.simulation.run import Collected, Plan
from anon.model import Model

DRAWS = 25
"""So many give a standard error to within about 14 %."""


def standard_errors(plan: Plan, collected: Collected, generator: np.random.Generator) -> tuple[Floats, ...]:
    """Of each table's log-odds, in the model's order."""
    drawn = [
        [np.array(table.log_odds) for table in learn_collected(plan, _again(collected, generator)).model.tables]
        for _ in range(DRAWS)
    ]
    return tuple(np.std(table, axis=0, ddof=1) for table in zip(*drawn, strict=True))


def with_errors(model: Model, learned: LearnedStudy, errors: tuple[Floats, ...]) -> Model:
    """The model with each table's `errors`: the larger of the standard and the posterior error of each cell.

    Where noise is strong the estimate is drawn towards 0 and repeats itself well; there the posterior error is larger.
    """
    tables = [
        evolve(table, errors=tuple(float(one) for one in np.maximum(known.errors or 0.0, error)))
        for table, known, error in zip(model.tables, learned.model.tables, errors, strict=True)
    ]
    return evolve(model, tables=tuple(tables))


def _again(collected: Collected, generator: np.random.Generator) -> Collected:
    return evolve(
        collected,
        train=tuple(_redrawn(one, generator) for one in collected.train),
        bits=tuple(_redrawn_bit(one, generator) for one in collected.bits),
    )


def _redrawn(tally: SurveyTally, generator: np.random.Generator) -> SurveyTally:
    """One category in each report: multinomial. Several: each position apart, which ignores that their sum is fixed."""
    if tally.n == 0:
        return tally
    shares = tally.counts / tally.n
    one = tally.mechanism.name == "krr"
    counts = generator.multinomial(tally.n, shares) if one else generator.binomial(tally.n, np.minimum(shares, 1.0))
    return evolve(tally, counts=counts.astype(np.int64))


def _redrawn_bit(tally: BitTally, generator: np.random.Generator) -> BitTally:
    if tally.n == 0:
        return tally
    return evolve(tally, counts=generator.multinomial(tally.n, tally.counts / tally.n).astype(np.int64))
