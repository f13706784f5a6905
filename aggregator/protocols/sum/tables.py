"""The additive model of a published sum of tables, as a model of tables.

It is the histogram's additive model with another noise: effects are shrunk by what the parties' noise and the size of
the group explain, and the whole study is tested against noise alone.
"""

from __future__ import annotations

from aggregator.protocols.additive.learner import fit, measurements
from aggregator.protocols.additive.model import coordinates_of, influence_of, result_of, table_of
from aggregator.protocols.additive.results import LearnedStudy, Subject, published
from aggregator.protocols.sum.published import NoisySum
from aggregator.protocols.sum.table_moments import gather_sums
from anon.protocols.vectors.tables import TableSums
from anon.study.features import Learning

LYING_GAIN = 1.0
"""A person who lies moves a table's shares as much as one who does not: the proof of validity sees to it."""


def learn_tables(
    subject: Subject, design: TableSums, noisy: NoisySum, learning: Learning, with_influence: bool = True
) -> LearnedStudy:
    """The model that a published sum determines. Nothing of it was kept for scoring.

    Where noise alone usually counts as much, the likelier label is decided for. Raises `Malformed` for a sum of another
    length or other features.
    """
    moments = gather_sums(coordinates_of(subject.features), design, noisy, subject.shares, learning.base_rate)
    found, asked = fit(moments), measurements(moments)
    seen, tables, results = asked.seen(), [], []
    for feature in subject.features:
        moved = influence_of(asked, seen, found, feature, LYING_GAIN) if with_influence else 0.0
        result = result_of(asked, found, feature, (), moved)
        results.append(result)
        tables.append(table_of(moments, found, feature, result.scores, learning))
    model = subject.model("soft", "additive", moments.rate, moments.rate, tables)
    return published(LearnedStudy(model, tuple(results), moments.rate, found.null, found.chance))
