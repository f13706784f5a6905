"""From what is publicly known about a data set to the two studies that are compared on it.

Ranges, scales and groups are what staff would declare from a data dictionary; nothing is read off the people. The
paper's study has two categories for every feature, ours as many bins of a number as are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from anon.protocols.histogram.sections import OnePacket, Paper
from anon.study.features import Cohort, Feature, Label, Learning, Table
from anon.study.proposal import Proposal, Schedule
from examples.protocols import PROTOCOLS

DAY = 86400
TABLE = "person"


@frozen
class Number:
    """A numeric column with its declared range; a missing value counts as `missing`."""

    column: str
    low: float
    high: float
    scale: str = "linear"
    missing: float | None = None


@frozen
class Text:
    """A column of texts. `yes`: the group that is told from all others."""

    column: str
    yes: tuple[str, ...]


@frozen
class Dictionary:
    """A data set's columns and label, as its publisher describes them."""

    title: str
    label: str
    positive: tuple[str | int | float, ...]
    negative: tuple[str | int | float, ...]
    guess: float
    """A round public guess of the share of positive labels."""
    columns: tuple[Number | Text, ...]

    def papers(self) -> Proposal:
        """Every feature binary; medians by Algorithm 1. `at_record_level` sets the epsilons."""
        design = Paper("paper", epsilon_histogram=0.5, epsilon_binning=0.5)
        learning = Learning("logistic", "vote", "f1", 0.3)
        return self._proposal([_binary(one) for one in self.columns], design, learning)

    def ours(self, bins: int) -> Proposal:
        """One packet per peer, single features, quantile bins; texts in the same two groups as the paper's."""
        design = OnePacket("one-packet", epsilon=1.0)
        features = [_fine(one, bins) if isinstance(one, Number) else _binary(one) for one in self.columns]
        return self._proposal(features, design, Learning(score_share=0.1))

    def _proposal(self, features: Sequence[Feature], design: OnePacket | Paper, learning: Learning) -> Proposal:
        return proposal(self.title, self.sqlite_label(), features, design, learning, self.table())

    def sqlite_label(self) -> Label:
        """The label by its own column."""
        query = f"SELECT {self.label} FROM {TABLE}"
        return Label(self.label, "What is to be learnt.", query, self.positive, self.negative, "negative")

    def table(self) -> tuple[Table, ...]:
        """The one table, a row for each person."""
        return (Table(TABLE, (*(one.column for one in self.columns), self.label)),)


def proposal(
    title: str,
    label: Label,
    features: Sequence[Feature],
    design: OnePacket | Paper,
    learning: Learning,
    tables: tuple[Table, ...],
) -> Proposal:
    """A study file's content with schedule and cohort that a simulation does not use."""
    return PROTOCOLS.proposed(Proposal(
        version=1,
        title=title,
        purpose="A measurement.",
        contact="none",
        label=label,
        features=tuple(features),
        design=design,
        schedule=Schedule(enrol=DAY, settle=DAY, collect=DAY, binning=DAY),
        cohort=Cohort(minimum=2, maximum=1_000_000),
        tables=tables,
        learning=learning,
    ))


def at_record_level(study: Proposal, epsilon: float) -> Proposal:
    """The study with its whole release at this record-level epsilon; the paper's is split evenly over its slots."""
    design = study.design
    if isinstance(design, OnePacket):
        return evolve(study, design=evolve(design, epsilon=epsilon))
    assert isinstance(design, Paper)
    share = int(epsilon / (design.subsets_per_partition + len(study.binned)) * 1e9) / 1e9
    return evolve(study, design=evolve(design, epsilon_histogram=share, epsilon_binning=share))


def _binary(column: Number | Text) -> Feature:
    if isinstance(column, Number):
        return _fine(column, 2)
    listed = ", ".join("'" + value.replace("'", "''") + "'" for value in column.yes)
    query = f"SELECT CASE WHEN {column.column} IN ({listed}) THEN 'yes' ELSE 'no' END FROM {TABLE}"
    return Feature(column.column, "categorical", f"{column.column} in a group.", query, "no", categories=("yes", "no"))


def _fine(column: Number, bins: int) -> Feature:
    query = f"SELECT {column.column} FROM {TABLE}"
    missing = (column.low + column.high) / 2 if column.missing is None else column.missing
    span = (float(column.low), float(column.high))
    return Feature(column.column, "numeric", f"{column.column}.", query, missing, span, bins, scale=column.scale)



def rounded(value: float) -> float:
    """To three digits. No cut is finer, and the simulation takes time for every different value of a column."""
    return float(f"{value:.3g}")
