"""Made-up people for a pilot: rows of the study's one table, with something to find in them."""

from __future__ import annotations

import re
from random import Random

from anon.errors import Malformed
from anon.study import Feature, Proposal
from anon.study.manifest import Manifest

_PLAIN = re.compile(r"\s*select\s+([a-z][a-z0-9_]*)\s+from\s+[a-z][a-z0-9_]*\s*;?\s*\Z", re.IGNORECASE)

Cell = int | float | str


def people(proposal: Proposal | Manifest, rows: int, random: Random) -> tuple[tuple[str, ...], list[list[Cell]]]:
    """Header and rows. Raises `Malformed` for a study of several tables, or whose label is computed: its pilot needs
    data of its own."""
    if len(proposal.tables) != 1:
        raise Malformed("a study of several tables: write the pilot's data yourself and import it into test peers")
    columns = proposal.tables[0].columns
    direct = {name: feature for feature in proposal.features if (name := _column(feature.query)) in columns}
    label = _column(proposal.label.query)
    if label not in columns:
        raise Malformed(
            "label.query: expected SELECT COLUMN FROM TABLE; a made-up value that a query computes with would match "
            "neither label.positive nor label.negative; write the pilot's data yourself"
        )
    return columns, [_row(proposal, columns, direct, label, random) for _ in range(rows)]


def planted(proposal: Proposal | Manifest) -> str:
    """The name of the one feature that the label of made-up people goes with: a yes has three of four people in the
    upper half of its range or categories, and one of four in the lower half. Empty where it goes with none."""
    columns = proposal.tables[0].columns
    return next((feature.name for feature in proposal.features if _column(feature.query) in columns), "")


def _column(query: str) -> str | None:
    match = _PLAIN.match(query)
    return match.group(1).lower() if match else None


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
    return tuple(feature.name for feature in proposal.features if _column(feature.query) not in columns)


def _value(feature: Feature, share: float) -> Cell:
    if feature.kind == "categorical":
        return feature.categories[min(int(share * len(feature.categories)), len(feature.categories) - 1)]
    low, high = feature.range
    return round(low + share * (high - low), 3)
