"""From a table X to the features of a study: what the caller declares, and what is read from the data instead.

Whatever is read from the data is not protected by epsilon; `declare` says of each feature whether that happened.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aggregator.lab.simulation.inference import MOST_CATEGORIES
from aggregator.lab.simulation.people import FeatureColumn
from anon.errors import InvalidValue
from anon.protocols.categories import Value
from anon.study.features import LARGEST_NUMBER, Feature

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")
_NUMERAL = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*", re.ASCII)
_MISSING = frozenset({"", "nan", "none", "<na>"})
"""Texts that a table of texts has where nothing was given; numpy and pandas spell it so."""
LABEL = "target_label"
FINE_EPSILON = 0.8
"""Below it a coarse answer heard clearly tells more than a fine one in noise: two bins, else four."""


@frozen
class DeclaredFeature:
    """One column's feature. `read`: its range, categories or missing values were read from the data.

    `constant`: as far as the data goes, nothing can be learned from it.
    """

    feature: Feature
    read: bool
    constant: bool = False


@frozen
class Declarations:
    """The caller's knowledge without looking at the data, by column position."""

    ranges: Mapping[int, tuple[float, float]]
    categories: Mapping[int, tuple[str, ...]]
    missing: str
    bins: int


def safe_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names if a study can have them, else x0, x1, ... by position."""
    fit = all(_NAME.match(name) for name in names) and len(set(names)) == len(names) and LABEL not in names
    return tuple(names) if fit else tuple(f"x{index}" for index in range(len(names)))


def columns_of(table: NDArray[Any]) -> tuple[FeatureColumn, ...]:
    """The columns of X, shape (rows, columns), as numbers, texts and missing values.

    Raises `TypeError` for a cell that is none of these.
    """
    return tuple(_column(table[:, index]) for index in range(table.shape[1]))


def as_given(X: Any) -> Any:
    """X as it is; of a list with texts in it a table that keeps its numbers, which numpy would make texts."""
    rows = X if isinstance(X, (list, tuple)) else ()
    if any(isinstance(cell, str) for row in rows if isinstance(row, (list, tuple)) for cell in row):
        return np.array(X, dtype=object) if len({len(row) for row in rows}) == 1 else X
    return X


def numeric(column: FeatureColumn, title: str) -> FeatureColumn:
    """The column of a numeric feature: text that spells a number is that number, an empty one is missing.

    Raises `ValueError` for any other text: it would count as missing, and nobody would see that.
    """
    texts = [value for value in column.values if isinstance(value, str)]
    if not texts:
        return column
    wrong = {value for value in texts if not _NUMERAL.fullmatch(value) and value.strip().lower() not in _MISSING}
    if wrong:
        cells = sum(column.values[place] in wrong for place in column.index)
        raise ValueError(
            f"{title}: expected numbers, got text that is none in {cells} of {len(column.index)} rows; "
            'a missing value is None, NaN or ""'
        )
    places: dict[Value, int] = {}
    moved = [places.setdefault(_number(value), len(places)) for value in column.values]
    return FeatureColumn(tuple(places), np.array(moved, dtype=np.int64)[column.index])


def _number(value: Value) -> Value:
    if not isinstance(value, str):
        return value
    return float(value) if _NUMERAL.fullmatch(value) else None


def declare(
    columns: Sequence[FeatureColumn], names: Sequence[str], titles: Sequence[str], known: Declarations
) -> tuple[DeclaredFeature, ...]:
    """A feature for each column. Raises `InvalidValue` for a declaration that cannot be."""
    described = []
    for index, (column, name, title) in enumerate(zip(columns, names, titles, strict=True)):
        says, query = f"Column {ascii(title)[:300]}.", f"SELECT {name} FROM person"
        if index in known.categories:
            feature = Feature(name, "categorical", says, query, "own", categories=known.categories[index])
            described.append(DeclaredFeature(feature, read=False))
        elif index in known.ranges:
            described.append(_ranged(name, says, query, known.ranges[index], known))
        else:
            described.append(_read(name, says, query, column, known))
    return tuple(described)


def _column(cells: NDArray[Any]) -> FeatureColumn:
    if cells.dtype.kind in "biuf":
        values, inverse = np.unique(cells.astype(float), return_inverse=True)
        return FeatureColumn(tuple(values.tolist()), inverse.astype(np.int64))
    places: dict[Value, int] = {}
    index = [places.setdefault(_plain(cell), len(places)) for cell in cells]
    return FeatureColumn(tuple(places), np.array(index, dtype=np.int64))


def _plain(cell: object) -> Value:
    if isinstance(cell, str):
        return str(cell)
    if isinstance(cell, (Real, np.bool_)):
        number = float(cell)
        return None if math.isnan(number) else number
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return None
    raise TypeError(f"a cell of X must be missing, or be a string or a number, got {type(cell).__name__}")


def _ranged(name: str, says: str, query: str, limits: tuple[float, float], known: Declarations) -> DeclaredFeature:
    low, high = limits
    if not math.isfinite(high - low):
        raise InvalidValue("range: expected two finite numbers")
    missing: str | float = "own" if known.missing == "own" else (low + high) / 2
    return DeclaredFeature(
        Feature(name, "numeric", says, query, missing, range=(low, high), bins=known.bins), read=False
    )


def _read(name: str, says: str, query: str, column: FeatureColumn, known: Declarations) -> DeclaredFeature:
    counts = Counter(dict(zip(column.values, np.bincount(column.index, minlength=len(column.values)), strict=True)))
    gaps = any(_is_missing(value) and count for value, count in counts.items())
    present = Counter[Value]()
    for value, count in counts.items():
        if count and not _is_missing(value):
            present[_within_a_manifest(value)] += int(count)
    own = known.missing == "own" or (known.missing == "auto" and gaps)
    if len(present) < 2:
        text = next((str(value)[:100] for value in present), "(none)")
        only = Feature(name, "categorical", says, query, "own", categories=(text,))
        return DeclaredFeature(only, read=True, constant=not (present and gaps))
    if all(isinstance(value, float) for value in present):
        return DeclaredFeature(_numeric(name, says, query, present, own, known.bins), read=True)
    texts = [_shown(value) for value, _ in Counter(present).most_common()]
    if len(texts) > max(50, len(column.index) // 2):
        only = Feature(name, "categorical", says, query, "own", categories=(texts[0],))
        return DeclaredFeature(only, read=True, constant=True)
    common = tuple(dict.fromkeys(texts[:MOST_CATEGORIES]))
    rest = own or len(texts) > MOST_CATEGORIES or len(common) < 2
    return DeclaredFeature(
        Feature(name, "categorical", says, query, "own" if rest else common[0], categories=common), read=True
    )


def _within_a_manifest(value: Value) -> Value:
    """A number beyond the largest of a manifest stands at that limit, as data beyond a range do."""
    return max(-float(LARGEST_NUMBER), min(float(LARGEST_NUMBER), value)) if isinstance(value, float) else value


def _numeric(name: str, says: str, query: str, present: Mapping[Value, int], own: bool, bins: int) -> Feature:
    values = np.array(sorted(value for value in present if isinstance(value, float)))
    weights = np.array([present[float(value)] for value in values])
    low, high = float(values[0]), float(values[-1])
    ordered = np.repeat(values, weights)
    middle, upper = (float(quantile) for quantile in np.quantile(ordered, [0.5, 0.95]))
    missing: str | float = "own" if own else middle
    between = tuple(dict.fromkeys(float(left + (right - left) / 2) for left, right in pairwise(values)))
    if len(values) <= bins and all(low <= cut < high for cut in between):
        return Feature(name, "numeric", says, query, missing, range=(low, high), cuts=between)
    log = low >= 0 and high > 20 * max(middle, 1.0) and high > 4 * max(upper, 1.0)
    return Feature(
        name, "numeric", says, query, missing, range=(low, high), bins=bins, scale="log" if log else "linear"
    )


def _is_missing(value: Value) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _shown(value: Value) -> str:
    """As the category map spells a number among texts."""
    if isinstance(value, float):
        return str(int(value)) if value == int(value) else str(value)
    return str(value)
