"""A study inferred from a data file, so that `simulate` runs on any CSV. For simulation only.

Ranges, categories and the guess of the base rate are read from the data here. A real study must declare them from
public knowledge before anybody is asked: what is read from the peers' own data is not protected by anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from attrs import frozen

from aggregator.lab.simulation.csv_file import read_columns, read_csv
from aggregator.lab.simulation.people import Column, People
from anon.errors import InvalidValue, Malformed
from anon.protocols.categories import label_map
from anon.study.features import LARGEST_NUMBER, Cohort, Feature, Label, Learning, Table
from anon.study.proposal import OnePacket, Proposal, Schedule
from anon.tables.columns import kind_of_text, sanitised
from anon.tables.streams import Cell

MOST_CATEGORIES = 6
"""Rarer texts become one category with missing values."""

FEW_NUMBERS = 6
"""Columns of so few different numbers are categories."""

MOST_FEATURES = 128
MOST_IN_PAIRS = 64
"""A study has no more features here, or fewer where each pair of them is a survey: each would be asked of too few."""

MISSING = frozenset({"na", "n/a", "nan", "null", "none", "?", "-", "."})
"""How files spell a missing number. Only among numbers: elsewhere they may be categories."""

PAIRS_FROM = 4.0
"""From this epsilon on tables of two features tell more than they cost in noise."""

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
    file = read_csv(path)
    columns = {name: numbers_if_any(cells) for name, cells in file.columns.items()}
    label = label if label in columns else sanitised(label)
    if label not in columns:
        raise Malformed(f"{path.name}: no column {label}; it has {', '.join(columns)}")
    target = _label(label, columns[label], tuple(positive))
    features, notes = _features({name: cells for name, cells in columns.items() if name != label}, epsilon)
    if not features:
        raise Malformed(f"{path.name}: no column besides {label} can be a feature{_said(notes)}")
    notes = [*_about_rows(file.skipped, target, columns[label]), *notes]
    rate = float(np.mean([*map(label_map(target), map(_plain, columns[label]))]))
    guess = min(max(round(20 * rate) / 20, 0.05), 0.95)
    return Inferred(_proposal(target, tuple(features), epsilon, guess), tuple(notes))


def _features(columns: Mapping[str, list[Cell]], epsilon: float) -> tuple[list[Feature], list[str]]:
    """The possible roles of each column, in the file's order, and why the others are left out."""
    found: list[Feature] = []
    notes: list[str] = []
    for name, cells in columns.items():
        try:
            found.append(_feature(name, cells, epsilon))
        except InvalidValue as fault:
            notes.append(f"{name}: left out ({fault})")
    most = MOST_FEATURES if design_for(epsilon).subset_size == 1 else MOST_IN_PAIRS
    if len(found) > most:
        notes.append(
            f"{found[most].name} and {len(found) - most - 1} columns after it: left out (only {most} are asked about); "
            "keep those you mean in the file, or write a study file"
        )
    return found[:most], notes


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


def people_of(proposal: Proposal, path: Path) -> People:
    """The people of a file for a study whose queries are plain columns: no query is run. Raises `Malformed`."""
    columns = read_columns(path)
    wanted = [*(feature.name for feature in proposal.features), proposal.label.name]
    absent = [name for name in wanted if name not in columns]
    if absent:
        raise Malformed(f"{path.name}: expected the columns {', '.join(absent)}")
    kinds = {feature.name: feature.kind for feature in proposal.features}
    columns_read = {name: _column(path, name, columns[name], kind) for name, kind in kinds.items()}
    labels = map(label_map(proposal.label), map(_plain, numbers_if_any(columns[proposal.label.name])))
    return People(columns_read, np.array([*labels], dtype=np.int64))


def design_for(epsilon: float) -> OnePacket:
    """Tables, which also measure how common categories are: probabilities are calibrated. Pairs for much budget.

    One-bit packets rank a little better below epsilon 1, and are calibrated only where shares are declared.
    """
    return OnePacket("one-packet", epsilon, subset_size=1 if epsilon < PAIRS_FROM else 2)


def _column(path: Path, name: str, cells: list[Cell], kind: str) -> Column:
    places: dict[float | str | None, int] = {}
    cells = numbers_if_any(cells)
    if kind == "numeric" and any(isinstance(cell, str) for cell in cells):
        raise Malformed(f"{path.name}: expected numbers in column {name}, as in the data the study was read from")
    values = [_number(cell) if kind == "numeric" else _text(cell) for cell in cells]
    index = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.int64)
    return Column(tuple(places), index)


def numbers_if_any(cells: list[Cell]) -> list[Cell]:
    """The cells, as numbers where all are but for marks of missing ones."""
    texts = {cell for cell in cells if isinstance(cell, str)}
    marks = {text for text in texts if text.lower() in MISSING}
    if not marks or marks == texts or not all(_is_number(text) for text in texts - marks):
        return cells
    return [None if cell is None or cell in marks else float(cell) for cell in cells]


def _number(cell: Cell) -> float | None:
    return float(cell) if isinstance(cell, (int, float)) else None


def _text(cell: Cell) -> str | None:
    return None if cell is None else str(cell)


def _plain(cell: Cell) -> float | str | None:
    return cell if isinstance(cell, str) or cell is None else float(cell)


def _label(name: str, cells: list[Cell], positive: tuple[str, ...]) -> Label:
    known = {str(cell): _plain(cell) for cell in cells if cell is not None}
    chosen = {text: value for text, value in known.items() if any(_is(text, value, wanted) for wanted in positive)}
    named = [wanted for wanted in positive if any(_is(text, value, wanted) for text, value in chosen.items())]
    if not known:
        raise Malformed(f"label {name}: no row has a value; check the column's name")
    if not positive or len(named) != len(positive):
        shown = ", ".join(sorted(known)[:10]) + (", ..." if len(known) > 10 else "")
        raise Malformed(f"label {name}: --positive expects one of its values ({shown})")
    # A file with one class only still simulates: the model says the base rate.
    others = tuple(value for text, value in known.items() if text not in chosen and value is not None and _named(value))
    values = tuple(value for value in chosen.values() if value is not None)
    negative = others[:1000] or ("(none)",)
    try:
        return Label(name, f"The value of {name}.", f"SELECT {name} FROM person", values, negative, "negative")
    except InvalidValue as fault:
        raise Malformed(f"label {name}: {fault}") from None


def _named(value: float | str) -> bool:
    """True if a study can name it. A value that it cannot name counts as negative all the same."""
    return isinstance(value, str) or abs(value) <= LARGEST_NUMBER


def _is(text: str, value: float | str | None, named: str) -> bool:
    """True if a person who writes `named` means this value: 1 means 1.0 too."""
    return text == named or (isinstance(value, float) and _is_number(named) and float(named) == value)


def _feature(name: str, cells: list[Cell], epsilon: float) -> Feature:
    known = [cell for cell in cells if cell is not None]
    if not known:
        raise InvalidValue("always missing")
    different = Counter(known)
    if len(different) < 2 and len(known) == len(cells):
        raise InvalidValue("always the same")
    query, says = f"SELECT {name} FROM person", f"The value of {name}."
    own = len(known) < len(cells)
    if len(different) > FEW_NUMBERS and all(isinstance(cell, (int, float)) for cell in different):
        return _numeric(name, says, query, np.array([float(cell) for cell in known]), own, epsilon)
    common = [str(cell) for cell, _ in different.most_common(MOST_CATEGORIES)]
    if len(different) > max(50, len(cells) // 2):
        raise InvalidValue("nearly every value is different")
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


def _is_number(text: str) -> bool:
    return kind_of_text(text) in ("INTEGER", "REAL")
