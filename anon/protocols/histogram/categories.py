"""The total map from a record's values to categories (design section 3, step 6).

Every value has a category: missing becomes the declared one, out of range is clamped, an unknown text is missing.
Nothing here raises on account of data.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import isfinite

from anon.ldp import RawCategory
from anon.study.manifest import Manifest, Survey
from anon.study.parts import Feature, Label

Value = float | str | None


def feature_category(feature: Feature, value: Value, cuts: Sequence[float]) -> int:
    """The category, 0 to `feature.cardinality - 1`. `cuts` are the declared or the published ones (numeric only).

    Numeric: the number of cuts below the clamped value (x <= cut stays left; erratum 6).
    """
    if feature.kind == "categorical":
        text = _text(value)
        if text is None or text not in feature.categories:
            return _missing_categorical(feature)
        return feature.categories.index(text)
    number = _number(value)
    if number is None:
        if feature.missing == "own":
            return len(cuts) + 1
        number = float(feature.missing)
    return bisect_left(cuts, clamp(feature, number))


def label_category(label: Label, value: Value) -> int:
    """1 for a positive value, 0 for a negative one; anything else is what `label.missing` says."""
    if _matches(value, label.positive):
        return 1
    if _matches(value, label.negative):
        return 0
    return 1 if label.missing == "positive" else 0


def cell(cards: Sequence[int], feature_categories: Sequence[int], label: int) -> int:
    """Mixed radix over the features in the survey's order, label last."""
    index = 0
    for card, category in zip(cards, feature_categories, strict=True):
        index = index * card + category
    return index * 2 + label


def histogram_category(
    manifest: Manifest,
    survey: Survey,
    values: Mapping[str, Value],
    label_value: Value,
    cuts: Mapping[str, Sequence[float]],
) -> RawCategory:
    """What a histogram survey asks: the survey's features in bins, with the label, as one category of m."""
    found = [
        feature_category(feature, values.get(feature.name), cuts.get(feature.name, feature.cuts))
        for feature in (manifest.feature(name) for name in survey.features)
    ]
    return RawCategory(cell(survey.cards, found, label_category(manifest.label, label_value)), survey.m)


def level_category(feature: Feature, value: Value, edges: Sequence[float]) -> int:
    """The level, 0 to len(edges), of a value for a binning survey. A missing value counts as the one in the middle
    of the range, unless the feature declares a number for it."""
    number = _number(value)
    if number is None:
        number = sum(feature.range) / 2 if feature.missing == "own" else float(feature.missing)
    return bisect_left(edges, clamp(feature, number))


def clamp(feature: Feature, number: float) -> float:
    """The value moved into the declared range."""
    low, high = feature.range
    return min(max(number, low), high)


def _number(value: Value) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if isfinite(value) else None


def _text(value: Value) -> str | None:
    if isinstance(value, str):
        return value
    number = _number(value)
    if number is None:
        return None
    return str(int(number)) if number == int(number) else str(number)


def _missing_categorical(feature: Feature) -> int:
    if feature.missing == "own":
        return len(feature.categories)
    return feature.categories.index(str(feature.missing))


def _matches(value: Value, wanted: Sequence[str | int | float]) -> bool:
    if isinstance(value, str):
        return value in wanted
    number = _number(value)
    return number is not None and any(not isinstance(one, str) and float(one) == number for one in wanted)
