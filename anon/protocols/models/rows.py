"""Rows as a study's result: made-up people, drawn from what the study counted. A form that belongs to no protocol."""

from __future__ import annotations

from collections.abc import Sequence
from csv import writer
from io import StringIO
from itertools import pairwise
from typing import Final

from attrs import field

from anon.errors import InvalidValue
from anon.protocols.models import reading
from anon.study.features import Feature
from anon.text.plain_cells import plain_cell
from anon.values import frozen

FORM: Final = "rows"
VERSION: Final = 1
MOST_ROWS: Final = 1_000_000
_NUMBER, _TEXT = 32, 6
"""Bytes of a number, and of a character of the manifest's texts, in JSON at most."""


def _form(_: object, attribute: object, value: str) -> None:
    if value != FORM:
        raise InvalidValue(f"form: expected {FORM}")


@frozen
class PublishedRows:
    """A table of rows that stand for nobody. Equal rows have equal `to_json` bytes.

    `study`: the study's id in hex. `rows`: of each row a text for every column. Raises `InvalidValue` for a table that
    cannot be.
    """

    study: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    version: int = VERSION
    form: str = field(default=FORM, validator=_form)

    def __attrs_post_init__(self) -> None:
        if self.version != VERSION:
            raise InvalidValue(f"version: expected {VERSION}, got {self.version}")
        if not self.columns or len(set(self.columns)) != len(self.columns):
            raise InvalidValue("columns: expected different names, at least one")
        if len(self.rows) > MOST_ROWS or any(len(row) != len(self.columns) for row in self.rows):
            raise InvalidValue(f"rows: expected at most {MOST_ROWS}, each with a text for every column")

    def to_json(self) -> str:
        """The one spelling of these rows."""
        return reading.spelled(self)

    def to_csv(self) -> str:
        """The same as comma-separated values under a line of the columns' names, without formulas (`plain_cell`)."""
        text = StringIO()
        writer(text, lineterminator="\n").writerows(map(plain_cell, row) for row in (self.columns, *self.rows))
        return text.getvalue()


def from_json(text_untrusted: str) -> PublishedRows:
    """Valid rows from their JSON. Raises `Malformed`."""
    return reading.read_as(text_untrusted, PublishedRows)


def category_texts(feature: Feature) -> list[str]:
    """The text of each category: its own, an interval of numbers, or nothing where the value is missing."""
    if feature.kind == "categorical":
        texts = list(feature.categories)
    else:
        low, *others = (f"{edge:.15g}" for edge in (feature.range[0], *feature.cuts, feature.range[1]))
        texts = [f"[{low}, {others[0]}]", *(f"({left}, {right}]" for left, right in pairwise(others))]
    return [*texts, ""][: feature.cardinality]


def longest_rows(features: Sequence[Feature], manifest: int, many: int) -> int:
    """The bytes of so many rows, with a column for each feature and the label's one digit. `manifest`: bytes of it."""
    texts = (max(map(reading.text_length, feature.categories), default=0) for feature in features)
    row = 6 + sum(max(longest, 2 * _NUMBER) + 1 for longest in texts)
    return _TEXT * manifest + many * row
