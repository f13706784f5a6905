"""Made-up people for a pilot: rows of the study's one table, with something to find in them."""

from __future__ import annotations

from random import Random

from aggregator.report.rehearsal import column_of
from anon.errors import Malformed
from anon.study import Feature, Proposal
from anon.study.manifest import Manifest

Cell = int | float | str


def people(proposal: Proposal | Manifest, rows: int, random: Random) -> tuple[tuple[str, ...], list[list[Cell]]]:
    """Header and rows. Raises `Malformed` for a study of several tables, or whose label is computed: its pilot needs
    data of its own."""
    if len(proposal.tables) != 1:
        raise Malformed("a study of several tables: write the pilot's data yourself and import it into test peers")
    columns = proposal.tables[0].columns
    direct = {name: feature for feature in proposal.features if (name := column_of(feature.query)) in columns}
    label = column_of(proposal.label.query)
    if label not in columns:
        raise Malformed(
            "label.query: expected SELECT COLUMN FROM TABLE; a made-up value that a query computes with would match "
            "neither label.positive nor label.negative; write the pilot's data yourself"
        )
    return columns, [_row(proposal, columns, direct, label, random) for _ in range(rows)]


def _row(
    proposal: Proposal | Manifest, columns: tuple[str, ...], direct: dict[str, Feature], label: str, random: Random
) -> list[Cell]:
    share = random.random()
    values: dict[str, Cell] = {name: random.randrange(101) for name in columns}
    for rank, (name, feature) in enumerate(direct.items()):
        values[name] = _value(feature, share if rank == 0 else random.random())
    positive = share > 0.5 if random.random() < 0.5 else random.random() < 0.5
    values[label] = random.choice(proposal.label.positive if positive else proposal.label.negative)
    return [values[name] for name in columns]


def computed(proposal: Proposal) -> tuple[str, ...]:
    """The features whose queries compute something: made-up numbers seldom give their values."""
    columns = {column for table in proposal.tables for column in table.columns}
    return tuple(feature.name for feature in proposal.features if column_of(feature.query) not in columns)


def _value(feature: Feature, share: float) -> Cell:
    if feature.kind == "categorical":
        return feature.categories[min(int(share * len(feature.categories)), len(feature.categories) - 1)]
    low, high = feature.range
    return round(low + share * (high - low), 3)
