"""A study inferred from a data file, so that `simulate` runs on any CSV. For simulation only.

Ranges, categories and the guess of the base rate are read from the data here. A real study must declare them from
public knowledge before anybody is asked: what is read from the peers' own data is not protected by anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from attrs import frozen

from aggregator.simulation.people import Cell, Column, People, read_columns
from anon.errors import Malformed
from anon.protocols.histogram.categories import label_category
from anon.study.parts import Cohort, Feature, Label, Learning, Table
from anon.study.proposal import OnePacket, Proposal, Schedule
from anon.study.structure import Unfit

MOST_CATEGORIES = 6
"""Rarer texts become one category with missing values."""

FEW_NUMBERS = 6
"""Columns of so few different numbers are categories."""

WARNING = (
    "Ranges, categories and base rate were read from the data. That is fine for a simulation on data you hold; a real "
    "study must declare them from public knowledge."
)


@frozen
class Inferred:
    """The study, and what was left out of it and why."""

    proposal: Proposal
    notes: tuple[str, ...]


def infer_study(path: Path, label: str, positive: Iterable[str], epsilon: float) -> Inferred:
    """A one-packet study of every usable column of a CSV file. Raises `Malformed` for a label that cannot be one."""
    columns = read_columns(path)
    if label not in columns:
        raise Malformed(f"{path.name}: no column {label}; it has {', '.join(columns)}")
    target = _label(label, columns[label], tuple(positive))
    features: list[Feature] = []
    notes: list[str] = []
    for name, cells in columns.items():
        if name == label:
            continue
        try:
            found = _feature(name, cells, epsilon)
        except Unfit as fault:
            notes.append(f"{name}: left out ({fault})")
            continue
        features.append(found)
    if not features:
        raise Malformed(f"{path.name}: no column besides {label} can be a feature: {'; '.join(notes)}")
    rate = float(np.mean([label_category(target, _plain(cell)) for cell in columns[label]]))
    guess = min(max(round(20 * rate) / 20, 0.05), 0.95)
    return Inferred(_proposal(target, tuple(features), epsilon, guess), tuple(notes))


def people_of(proposal: Proposal, path: Path) -> People:
    """The people of a file for a study whose queries are plain columns: no query is run. Raises `Malformed`."""
    columns = read_columns(path)
    wanted = [*(feature.name for feature in proposal.features), proposal.label.name]
    absent = [name for name in wanted if name not in columns]
    if absent:
        raise Malformed(f"{path.name}: expected the columns {', '.join(absent)}")
    kinds = {feature.name: feature.kind for feature in proposal.features}
    found = {name: _column(columns[name], kinds[name]) for name in kinds}
    labels = [label_category(proposal.label, _plain(cell)) for cell in columns[proposal.label.name]]
    return People(found, np.array(labels, dtype=np.int64))


def design_for(epsilon: float) -> OnePacket:
    """What the planner finds best on weak signals: bits for small budgets, tables of pairs for large ones."""
    if epsilon < 1.5:
        return OnePacket("one-packet", epsilon, asks="bits")
    return OnePacket("one-packet", epsilon, subset_size=2)


def _column(cells: list[Cell], kind: str) -> Column:
    places: dict[float | str | None, int] = {}
    values = [_number(cell) if kind == "numeric" else _text(cell) for cell in cells]
    index = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.int64)
    return Column(tuple(places), index)


def _number(cell: Cell) -> float | None:
    return float(cell) if isinstance(cell, (int, float)) else None


def _text(cell: Cell) -> str | None:
    return None if cell is None else str(cell)


def _plain(cell: Cell) -> float | str | None:
    return cell if isinstance(cell, str) or cell is None else float(cell)


def _label(name: str, cells: list[Cell], positive: tuple[str, ...]) -> Label:
    known = {str(cell): _plain(cell) for cell in cells if cell is not None}
    chosen = [known[text] for text in positive if text in known]
    others = [value for text, value in known.items() if text not in positive and value is not None]
    if not positive or len(chosen) != len(positive):
        shown = ", ".join(sorted(known)[:10])
        raise Malformed(f"label {name}: --positive expects one of its values ({shown})")
    # A file with one class only still simulates: the model says the base rate.
    negative = tuple(others[:1000]) or ("(none)",)
    return Label(name, f"The value of {name}.", f"SELECT {name} FROM person", tuple(v for v in chosen if v is not None),
                 negative, "negative")  # fmt: skip


def _feature(name: str, cells: list[Cell], epsilon: float) -> Feature:
    known = [cell for cell in cells if cell is not None]
    if not known:
        raise Unfit("always missing")
    different = Counter(known)
    if len(different) < 2 and len(known) == len(cells):
        raise Unfit("always the same")
    query, says = f"SELECT {name} FROM person", f"The value of {name}."
    own = len(known) < len(cells)
    if len(different) > FEW_NUMBERS and all(isinstance(cell, (int, float)) for cell in different):
        return _numeric(name, says, query, np.array([float(cell) for cell in known]), own, epsilon)
    common = [str(cell) for cell, _ in different.most_common(MOST_CATEGORIES)]
    if len(different) > max(50, len(cells) // 2):
        raise Unfit("nearly every value is different")
    rest = own or len(different) > MOST_CATEGORIES
    return Feature(name, "categorical", says, query, "own" if rest else common[0], categories=tuple(common))


def _numeric(
    name: str, says: str, query: str, known: np.ndarray[tuple[int], np.dtype[np.float64]], own: bool, epsilon: float
) -> Feature:
    low, high = float(known.min()), float(known.max())
    middle, upper = np.quantile(known, [0.5, 0.95])
    log = low >= 0 and high > 20 * max(float(middle), 1.0) and high > 4 * max(float(upper), 1.0)
    bins = 2 if epsilon < 0.8 else 4
    missing: str | float = "own" if own else float(middle)
    scale = "log" if log else "linear"
    return Feature(name, "numeric", says, query, missing, range=(low, high), bins=bins, scale=scale)


def _proposal(label: Label, features: tuple[Feature, ...], epsilon: float, rate: float) -> Proposal:
    return Proposal(
        version=1,
        title=f"Simulated: {label.name}",
        purpose="A simulation on data at hand.",
        contact="nobody: this study is never published",
        label=label,
        features=features,
        design=design_for(epsilon),
        schedule=Schedule(86400, 3600, 86400, 86400),
        cohort=Cohort(2, 1_000_000),
        tables=(Table("person", (*(feature.name for feature in features), label.name)),),
        learning=Learning("additive", "soft", "auc", 0, rate),
    )

