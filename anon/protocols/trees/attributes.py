"""The attributes of a record as whole numbers, by public ranges and lists, and the splits between their places.

Everything here is declared. No range, cut or category is taken from the data.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isfinite, isnan

from anon.errors import InvalidValue
from anon.noise.bernoulli import Coins
from anon.values import frozen

MOST_PLACES = 64
"""Of one attribute. A set of places is a number below 2**64."""

Places = int
"""A set of places as a number: bit k stands for place k."""


@frozen
class NumberAttribute:
    """A number between the first and the last edge. The edges between them are the only cuts of a split.

    Place k lies from edge k up to edge k + 1. A number beyond the ends counts as the nearest place. A missing value, or
    one that is no number, counts as place 0. Raises `InvalidValue` unless 2 to 64 places have increasing, finite edges.

    >>> NumberAttribute("age", (0, 20, 40, 60, 80)).place(130)
    3
    """

    name: str
    edges: tuple[float, ...]

    def __attrs_post_init__(self) -> None:
        increasing = all(low < high for low, high in pairwise(self.edges))
        if not 3 <= len(self.edges) <= MOST_PLACES + 1 or not increasing or not all(map(isfinite, self.edges)):
            raise InvalidValue(f"attribute {self.name}: expected 2 to {MOST_PLACES} places between increasing edges")

    @property
    def places(self) -> int:
        """So many."""
        return len(self.edges) - 1

    def place(self, value: object) -> int:
        """Return the place of a raw value. Never raises."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return 0
        if isinstance(value, float) and isnan(value):
            return 0
        return min(max(bisect_right(self.edges, value) - 1, 0), self.places - 1)

    def value(self, place: int) -> float:
        """Return the middle of a place."""
        return (self.edges[place] + self.edges[place + 1]) / 2

    def split(self, active: Places, coins: Coins) -> Places:
        """Return the places below a cut, drawn uniformly among the edges inside the active places."""
        inside = list(held(active))
        return sum(1 << place for place in inside[: 1 + coins.below(len(inside) - 1)])


@frozen
class TextAttribute:
    """One of the listed texts; any other value counts as the last. Raises `InvalidValue` unless 2 to 64 differ."""

    name: str
    texts: tuple[str, ...]

    def __attrs_post_init__(self) -> None:
        if not 2 <= len(self.texts) <= MOST_PLACES or len(set(self.texts)) != len(self.texts):
            raise InvalidValue(f"attribute {self.name}: expected 2 to {MOST_PLACES} different texts")

    @property
    def places(self) -> int:
        """So many."""
        return len(self.texts)

    def place(self, value: object) -> int:
        """Return the place of a raw value. Never raises."""
        return self.texts.index(value) if isinstance(value, str) and value in self.texts else self.places - 1

    def value(self, place: int) -> str:
        """Return the text."""
        return self.texts[place]

    def split(self, active: Places, coins: Coins) -> Places:
        """Return some of the active places: every set that is neither empty nor all is equally likely."""
        inside = list(held(active))
        drawn = 1 + coins.below((1 << len(inside)) - 2)
        return sum(1 << place for bit, place in enumerate(inside) if drawn >> bit & 1)


Attribute = NumberAttribute | TextAttribute
Row = tuple[int, ...]
"""The places of a record, attribute by attribute."""


@frozen
class LabelledRow:
    """The places of one record, and its class."""

    row: Row
    label: int


def held(active: Places) -> Iterator[int]:
    """The places of a set, in order."""
    return (place for place in range(active.bit_length()) if active >> place & 1)


def whole(attributes: Sequence[Attribute]) -> tuple[Places, ...]:
    """All places of every attribute."""
    return tuple((1 << attribute.places) - 1 for attribute in attributes)


def can_split(active: Places) -> bool:
    """True of two or more places."""
    return active & (active - 1) != 0
