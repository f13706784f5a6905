"""A study inferred from a data file, so that `simulate` runs on any CSV. For simulation only.

Ranges, categories, rules for missing values and the guess of the base rate are read from the data here, from the rows
of the peers alone: nothing is known of the rows that are scored on. A real study must declare them from public
knowledge before anybody is asked: what is read from the peers' own data is not protected by anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
from attrs import frozen

from aggregator.lab.simulation.csv_file import read_columns, read_csv
from aggregator.lab.simulation.pairs import asked_untried
from aggregator.lab.simulation.people import FeatureColumn, People, split
from aggregator.lab.simulation.target import Bound, is_number, label_of, plain
from aggregator.protocols.installed import PROTOCOLS
from anon.errors import InvalidValue, Malformed
from anon.protocols.categories import label_map
from anon.protocols.histogram.sections import OnePacket
from anon.study.features import Cohort, Feature, Label, Learning, Table
from anon.study.proposal import Proposal, Schedule
from anon.tables.columns import sanitised
from anon.tables.streams import Cell

MOST_CATEGORIES = 6
"""Rarer texts become one category with missing values."""

FEW_NUMBERS = 6
"""Columns of so few different numbers are categories."""

MOST_FEATURES = 128
"""A study has no more features here: each would be asked of too few."""

LONGEST_NAME = 40
"""Characters of a name in a study."""

FEWEST_TOLD_APART, ENOUGH_TOLD_APART = 50, 100
"""From the first number of rows on, whole numbers that differ in every row and leave few gaps tell people apart; from
the second on, all that differ in every row."""

MISSING = frozenset({"na", "n/a", "nan", "null", "none", "?", "-", "."})
"""How files spell a missing number. Only among numbers: elsewhere they may be categories."""

WARNING = (
    "Ranges, categories and base rate were read from the data. That is fine for a simulation on data you hold; a real "
    "study must declare them from public knowledge."
)


@frozen
class InferredStudy:
    """The study, what was left out of it and why, the people who would be peers, and those held out to score on.

    `bound`: the number that the label's column is compared with, where it is one.
    """

    proposal: Proposal
    notes: tuple[str, ...]
    people: People
    held_out: People | None = None
    bound: Bound | None = None


def infer_study(
    path: Path, label: str, positive: Iterable[str], epsilon: float, held_out: float = 0.0, seed: int = 0
) -> InferredStudy:
    """A one-packet study of every usable column of a CSV file, from the rows that are not among the share `held_out`.

    The label's values are those of all rows: which of them count is on the command line. Raises `Malformed` for a label
    that cannot be one.
    """
    file = read_csv(path)
    columns = {named(name): numbers_if_any(cells) for name, cells in file.columns.items()}
    label = column_of(path, columns, label)
    target, bound = label_of(label, columns[label], tuple(positive))
    kept, scored = split(len(columns[label]), held_out, np.random.default_rng(seed))
    others = {name: [cells[row] for row in kept] for name, cells in columns.items() if name != label}
    features, notes = _features(others, epsilon)
    if not features:
        raise Malformed(f"{path.name}: no column besides {label} can be a feature{_said(notes)}")
    notes = [*_about_rows(file.skipped, target, columns[label]), *notes]
    everybody = _people(path, features, target, columns, bound)
    people = everybody.take(kept)
    guess = min(max(round(20 * float(people.labels.mean())) / 20, 0.05), 0.95)
    proposal = _proposal(target, tuple(features), epsilon, guess)
    return InferredStudy(proposal, tuple(notes), people, everybody.take(scored) if len(scored) else None, bound)


def _features(columns: Mapping[str, list[Cell]], epsilon: float) -> tuple[list[Feature], list[str]]:
    """The possible roles of each column, in the file's order, and why the others are left out."""
    found: list[Feature] = []
    notes: list[str] = []
    for name, cells in columns.items():
        try:
            found.append(_feature(name, cells, epsilon))
        except InvalidValue as fault:
            notes.append(f"{name}: left out ({fault})")
    if len(found) > MOST_FEATURES:
        notes.append(
            f"{found[MOST_FEATURES].name} and {len(found) - MOST_FEATURES - 1} columns after it: left out (only "
            f"{MOST_FEATURES} are asked about); keep those you mean in the file, or write a study file"
        )
    return found[:MOST_FEATURES], notes


def _about_rows(skipped: int, label: Label, cells: list[Cell]) -> list[str]:
    """Notes for a person about the counting of rows."""
    missing, others = sum(cell is None for cell in cells), len(label.negative)
    notes = [f"{skipped} rows left out: they have more or fewer cells than the header"] if skipped else []
    if missing:
        notes.append(f"{label.name}: {missing} of {len(cells)} rows have no value, which counts as negative")
    if others > 1:
        notes.append(f"{label.name}: all {others} other values count as negative")
    return notes


def _said(notes: list[str]) -> str:
    return f": {'; '.join(notes[:5])}{' ...' if len(notes) > 5 else ''}" if notes else ""


def people_of(proposal: Proposal, path: Path, bound: Bound | None = None) -> People:
    """The people of a file for an inferred study, whose queries are plain columns: no query is run. `bound`: as the
    study was inferred with. Raises `Malformed`."""
    columns = {named(name): cells for name, cells in read_columns(path).items()}
    return _people(path, proposal.features, proposal.label, columns, bound)


def column_of(path: Path, columns: Mapping[str, list[Cell]], label: str) -> str:
    """The name in a study of the column that somebody calls `label`. Raises `Malformed` where there is none."""
    label = label if label in columns else named(sanitised(label))
    if label not in columns:
        raise Malformed(f"{path.name}: no column {label}; it has {', '.join(columns)}")
    return label


def named(column: str) -> str:
    """A column's name in a study: of one that is too long the beginning, and eight digits that no other name has."""
    if len(column) <= LONGEST_NAME:
        return column
    return f"{column[: LONGEST_NAME - 9]}_{sha256(column.encode()).hexdigest()[:8]}"


def _people(
    path: Path, features: Sequence[Feature], label: Label, columns: Mapping[str, list[Cell]], bound: Bound | None
) -> People:
    absent = [name for name in (*(feature.name for feature in features), label.name) if name not in columns]
    if absent:
        raise Malformed(f"{path.name}: expected the columns {', '.join(absent)}")
    read = {feature.name: _column(path, feature.name, columns[feature.name], feature.kind) for feature in features}
    told = numbers_if_any(columns[label.name])
    labels = map(label_map(label), map(plain, told if bound is None else bound.reached(told)))
    return People(read, np.array([*labels], dtype=np.int64))


def design_for(features: int, epsilon: float) -> OnePacket:
    """Tables, which also measure how common categories are: probabilities are calibrated. Pairs for much budget, where
    they are few (`pairs`).

    One-bit packets rank a little better below epsilon 1, and are calibrated only where shares are declared.
    """
    return OnePacket("one-packet", epsilon, subset_size=2 if asked_untried(features, epsilon) else 1)


def _column(path: Path, name: str, cells: list[Cell], kind: str) -> FeatureColumn:
    places: dict[float | str | None, int] = {}
    cells = numbers_if_any(cells)
    if kind == "numeric" and any(isinstance(cell, str) for cell in cells):
        raise Malformed(f"{path.name}: expected numbers in column {name}, as in the data the study was read from")
    values = [_number(cell) if kind == "numeric" else _text(cell) for cell in cells]
    index = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.int64)
    return FeatureColumn(tuple(places), index)


def numbers_if_any(cells: list[Cell]) -> list[Cell]:
    """The cells, as numbers where all are but for marks of missing ones."""
    texts = {cell for cell in cells if isinstance(cell, str)}
    marks = {text for text in texts if text.lower() in MISSING}
    if not marks or marks == texts or not all(is_number(text) for text in texts - marks):
        return cells
    return [None if cell is None or cell in marks else float(cell) for cell in cells]


def _number(cell: Cell) -> float | None:
    return float(cell) if isinstance(cell, (int, float)) else None


def _text(cell: Cell) -> str | None:
    return None if cell is None else str(cell)


def _feature(name: str, cells: list[Cell], epsilon: float) -> Feature:
    known = [cell for cell in cells if cell is not None]
    if not known:
        raise InvalidValue("always missing")
    different = Counter(known)
    if len(different) < 2 and len(known) == len(cells):
        raise InvalidValue("always the same")
    if _tells_apart(name, known):
        raise InvalidValue("its numbers tell rows apart, as those of people or orders do; ask about it in a study file")
    query, says = f"SELECT {name} FROM person", f"The value of {name}."
    own = len(known) < len(cells)
    if len(different) > FEW_NUMBERS and all(isinstance(cell, (int, float)) for cell in different):
        return _numeric(name, says, query, np.array([float(cell) for cell in known]), own, epsilon)
    common = [str(cell) for cell, _ in different.most_common(MOST_CATEGORIES)]
    if len(different) > max(50, len(cells) // 2):
        raise InvalidValue("nearly every value is different")
    rest = own or len(different) > MOST_CATEGORIES
    return Feature(name, "categorical", says, query, "own" if rest else common[0], categories=tuple(common))


def _tells_apart(name: str, known: Sequence[Cell]) -> bool:
    """True if the column seems to number rows or people: whole numbers, nearly all of them different."""
    numbers = [float(cell) for cell in known if isinstance(cell, (int, float))]
    if len(numbers) < max(len(known), FEWEST_TOLD_APART) or not all(number.is_integer() for number in numbers):
        return False
    different = len(set(numbers))
    if {"id", "ids", "nr", "key", "uuid"} & set(name.split("_")):
        return 2 * different >= len(numbers)
    dense = max(numbers) - min(numbers) < 2 * len(numbers)
    return different == len(numbers) and (dense or len(numbers) >= ENOUGH_TOLD_APART)


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
    inferred = Proposal(
        version=1,
        title=f"Simulated: {label.name}",
        purpose="A simulation on data at hand.",
        contact="nobody: this study is never published",
        label=label,
        features=features,
        design=design_for(len(features), epsilon),
        schedule=Schedule(86400, 3600, 86400, 86400),
        cohort=Cohort(2, 1_000_000),
        tables=(Table("person", (*(feature.name for feature in features), label.name)),),
        learning=Learning("additive", "soft", "auc", 0, rate),
    )
    return PROTOCOLS.proposed(inferred)
