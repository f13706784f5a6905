"""The label of an inferred study: some values of a column against all others, or a bound that numbers reach."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from anon.errors import InvalidValue, Malformed
from anon.protocols.categories import Value
from anon.study.features import LARGEST_NUMBER, Label
from anon.tables.columns import kind_of_text
from anon.tables.streams import Cell

MOST_CLASSES = 20
"""A column of more different numbers is an amount: one of them against all others is not a question anybody means."""

_RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_BOUND = re.compile(r"(>=|<=|>|<)\s*(\S+)")


@frozen
class Bound:
    """A number that the column's numbers are compared with, as in `>=100`."""

    relation: str
    limit: float

    @staticmethod
    def of(text: str) -> Bound | None:
        """The bound that a text spells, or None."""
        found = _BOUND.fullmatch(text.strip())
        return Bound(found[1], float(found[2])) if found and is_number(found[2]) else None

    def reached(self, cells: Sequence[Cell]) -> list[Cell]:
        """1 for each number that fulfils it, 0 for the others, and nothing where there is none."""
        holds = _RELATIONS[self.relation]
        return [float(holds(float(cell), self.limit)) if isinstance(cell, (int, float)) else None for cell in cells]


def bound_of(positive: Sequence[str]) -> Bound | None:
    """The bound among the values that count as positive. Raises `Malformed` where there is more beside it."""
    bounds = [bound for text in positive if (bound := Bound.of(text))]
    if bounds and len(positive) > 1:
        raise Malformed("--positive: expected values of the column, or one bound such as '>=100'")
    return bounds[0] if bounds else None


def label_of(name: str, cells: Sequence[Cell], positive: tuple[str, ...]) -> tuple[Label, Bound | None]:
    """The label, and the bound that its column is to be compared with first, where there is one. Raises `Malformed`."""
    bound = bound_of(positive)
    if bound is None:
        return _of_values(name, cells, positive), None
    if any(isinstance(cell, str) for cell in cells):
        raise Malformed(f"label {name}: --positive {positive[0]} needs a column of numbers")
    query = f"SELECT {name} {bound.relation} {bound.limit:g} FROM person"
    return Label(name, f"Is {name} {bound.relation} {bound.limit:g}?", query, (1.0,), (0.0,), "negative"), bound


def _of_values(name: str, cells: Sequence[Cell], positive: tuple[str, ...]) -> Label:
    known = {str(cell): plain(cell) for cell in cells if cell is not None}
    chosen = {text: value for text, value in known.items() if any(_is(text, value, wanted) for wanted in positive)}
    named = [wanted for wanted in positive if any(_is(text, value, wanted) for text, value in chosen.items())]
    if not known:
        raise Malformed(f"label {name}: no row has a value; check the column's name")
    if not positive or len(named) != len(positive):
        shown = ", ".join(sorted(known)[:10]) + (", ..." if len(known) > 10 else "")
        raise Malformed(f"label {name}: --positive expects one of its values ({shown})")
    if len(known) > MOST_CLASSES and not any(isinstance(value, str) for value in known.values()) and len(chosen) == 1:
        others = len(known) - 1
        raise Malformed(
            f"label {name}: {positive[0]} would be one number against {others} others; "
            f"--positive '>={positive[0]}' names all numbers from it on"
        )
    # A file with one class only still simulates: the model says the base rate.
    others_named = tuple(value for text, value in known.items() if text not in chosen and _can_be_named(value))
    values = tuple(value for value in chosen.values() if value is not None)
    negative = tuple(value for value in others_named if value is not None)[:1000] or ("(none)",)
    try:
        return Label(name, f"The value of {name}.", f"SELECT {name} FROM person", values, negative, "negative")
    except InvalidValue as fault:
        raise Malformed(f"label {name}: {fault}") from None


def _can_be_named(value: Value) -> bool:
    """True if a study can name it. A value that it cannot name counts as negative all the same."""
    return isinstance(value, str) or (value is not None and abs(value) <= LARGEST_NUMBER)


def _is(text: str, value: Value, named: str) -> bool:
    """True if a person who writes `named` means this value: 1 means 1.0 too."""
    return text == named or (isinstance(value, float) and is_number(named) and float(named) == value)


def plain(cell: Cell) -> Value:
    """A cell as a query's result."""
    return cell if isinstance(cell, str) or cell is None else float(cell)


def is_number(text: str) -> bool:
    """True if the text is one number."""
    return kind_of_text(text) in ("INTEGER", "REAL")
