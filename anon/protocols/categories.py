"""The total map from a record's values to categories (design section 3, step 6).

Every value has a category: missing becomes the declared one, out of range is clamped, an unknown text is missing.
A `TotalMap` is made of the study and its documents alone, before any value is seen: whatever is wrong with those shows
then, whatever the data are. From then on no value can make it raise. Every use of data goes through one: packets
(`answers`), the owner's page, predictions and simulations.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import isfinite
from typing import final

from attrs import field

from anon.errors import Malformed
from anon.study.features import Feature, Label
from anon.text.sentences import say
from anon.values import frozen

Value = float | str | None
"""The result of a query for one record."""


@final
@frozen
class TotalMap:
    """From any value at all to a category, 0 to `cardinality - 1`. Never raises on account of a value.

    `rule` may give None for a value that is none of the study's. `missing` is what that counts as, and what every
    fault of the rule counts as: nothing else in the program decides it.
    """

    cardinality: int
    missing: int = field()
    rule: Callable[[Value], int | None] = field(repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.missing < self.cardinality:
            raise Malformed(say(
                "missing: expected a category from 0 to {cardinality}; do not take part",
                cardinality=self.cardinality - 1,
            ))

    def __call__(self, value: Value) -> int:
        """The category of a value; the missing one where the rule has none, fails, or leaves the categories."""
        try:
            category = self.rule(value)
        except Exception:
            return self.missing
        return category if type(category) is int and 0 <= category < self.cardinality else self.missing


def feature_map(feature: Feature, cuts: Sequence[float]) -> TotalMap:
    """The map of a feature to its bins or categories. `cuts` are the declared or the published ones (numeric only).

    Numeric: the number of cuts below the clamped value (x <= cut stays left; erratum 6).
    """
    if feature.kind == "categorical":
        return _categorical(feature)
    own = feature.missing == "own"
    bins = _bins(feature, cuts)
    missing = len(cuts) + 1 if own else bins(_declared(feature))
    return TotalMap(len(cuts) + (2 if own else 1), missing, _of_number(bins))


def level_map(feature: Feature, edges: Sequence[float]) -> TotalMap:
    """The map of a numeric feature to the levels, 0 to len(edges), of a binning survey.

    A missing value counts as the one in the middle of the range, unless the feature declares a number for it.
    """
    bins = _bins(feature, edges)
    middle = sum(feature.range) / 2 if feature.missing == "own" else _declared(feature)
    return TotalMap(len(edges) + 1, bins(middle), _of_number(bins))


def label_map(label: Label) -> TotalMap:
    """The map of the label: 1 for a positive value, 0 for a negative one, else what `label.missing` says."""

    def rule(value: Value) -> int | None:
        if _matches(value, label.positive):
            return 1
        return 0 if _matches(value, label.negative) else None

    return TotalMap(2, 1 if label.missing == "positive" else 0, rule)


def feature_category(feature: Feature, value: Value, cuts: Sequence[float]) -> int:
    """The category of one value by `feature_map`.

    The map is total: everything that a query can give has a category.

    >>> cups = Feature("cups", "numeric", "Cups.", "SELECT cups FROM diary", missing=2, range=(0, 10), cuts=(3.0,))
    >>> [feature_category(cups, value, cups.cuts) for value in (3, 4, 1000, None, "many")]
    [0, 1, 1, 0, 0]
    """
    return feature_map(feature, cuts)(value)


def level_category(feature: Feature, value: Value, edges: Sequence[float]) -> int:
    """The level of one value by `level_map`."""
    return level_map(feature, edges)(value)


def label_category(label: Label, value: Value) -> int:
    """The category of one value by `label_map`."""
    return label_map(label)(value)


def is_missing(feature: Feature, value: Value) -> bool:
    """True if a value is none of the feature's, so that its rule for missing values decides."""
    return (_number(value) if feature.kind == "numeric" else feature_map(feature, ()).rule(value)) is None


def is_missing_label(label: Label, value: Value) -> bool:
    """The same of the label: the value is neither positive nor negative."""
    return label_map(label).rule(value) is None


def is_clamped(feature: Feature, value: Value) -> bool:
    """True for a number outside of the declared range, which counts as the nearest end."""
    number = _number(value)
    return feature.kind == "numeric" and number is not None and clamp(feature, number) != number


def cell(cards: Sequence[int], feature_categories: Sequence[int], label: int) -> int:
    """Mixed radix over the features in the survey's order, label last."""
    index = 0
    for card, category in zip(cards, feature_categories, strict=True):
        index = index * card + category
    return index * 2 + label


def clamp(feature: Feature, number: float) -> float:
    """The value moved into the declared range."""
    low, high = feature.range
    return min(max(number, low), high)


def _categorical(feature: Feature) -> TotalMap:
    places = {text: place for place, text in enumerate(feature.categories)}
    own = feature.missing == "own"
    missing = len(places) if own else places.get(str(feature.missing), len(places))

    def rule(value: Value) -> int | None:
        text = _text(value)
        return None if text is None else places.get(text)

    return TotalMap(len(places) + own, missing, rule)


def _bins(feature: Feature, cuts: Sequence[float]) -> Callable[[float], int]:
    return lambda number: bisect_left(cuts, clamp(feature, number))


def _declared(feature: Feature) -> float:
    return float(feature.missing)


def _of_number(bins: Callable[[float], int]) -> Callable[[Value], int | None]:
    def rule(value: Value) -> int | None:
        number = _number(value)
        return None if number is None else bins(number)

    return rule


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


def _matches(value: Value, wanted: Sequence[str | int | float]) -> bool:
    if isinstance(value, str):
        return value in wanted
    number = _number(value)
    return number is not None and any(not isinstance(known, str) and known == number for known in wanted)


def directions(feature: Feature) -> tuple[Fraction, ...]:
    """The number from -1 to 1 that each category of a feature adds to the sum of what staff expect; 0 where nothing is.

    The bins of a number are equally spaced. A missing value of its own adds 0.
    """
    if not feature.expects:
        return (Fraction(0),) * feature.cardinality
    own = (Fraction(0),) if feature.missing == "own" else ()
    if feature.kind == "categorical":
        return (*map(Fraction, feature.expects), *own)
    bins = feature.cardinality - len(own)
    spaced = (Fraction(2 * place, bins - 1) - 1 if bins > 1 else Fraction(0) for place in range(bins))
    return (*(feature.expects[0] * position for position in spaced), *own)
