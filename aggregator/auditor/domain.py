"""Inputs of a mechanism, and the pairs of neighbours among them that are tried.

    0..9             a number of a range; 0.0..9.0 for numbers with a point
    red|green|blue   one of these; JSON where it can be read as such, with nan: 1|2 are numbers, "1"|"2" texts
    0..9; a|b        a list of several
    20 * (0..1; a|b) so many of the same

Neighbours are `any` two inputs (a local mechanism), two that differ in `one` place of the list, two of which one
`lacks` a place, or two numbers `within:D` of each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from random import Random
from typing import Any

from attrs import frozen

from anon.errors import InvalidValue

Input = Any
"""A value of JSON's kinds."""
MOST_PAIRS = 24
MOST_VALUES = 64
_RANGE = re.compile(r"(-?[\d.]+(?:e-?\d+)?)\.\.(-?[\d.]+(?:e-?\d+)?)")
_TIMES = re.compile(r"(\d+)\s*\*\s*(.*)", re.DOTALL)
_WITHIN = "within:"
_MIXED = (0.17, 0.33, 0.5, 0.67, 0.83)  # of the rows that have the second value
_INSIDE = (0.3, 0.75)  # one in each half; the bits of the first fill a double


@frozen
class InputChoice:
    """One place, and the values that are tried in it."""

    values: tuple[Input, ...]


@frozen
class InputList:
    """A list with a place for each part."""

    parts: tuple[InputChoice | InputList, ...]


Domain = InputChoice | InputList


def parse_domain(text: str) -> Domain:
    """The domain of these words; `InvalidValue` for others."""
    parts = _split(text.strip(), ";")
    if len(parts) > 1:
        return InputList(tuple(parse_domain(part) for part in parts))
    whole = parts[0].strip()
    if times := _TIMES.fullmatch(whole):
        return InputList((parse_domain(_bare(times[2])),) * int(times[1]))
    if _bare(whole) != whole:
        return parse_domain(_bare(whole))
    values = tuple(value for one_of in _split(whole, "|") for value in _values(one_of.strip()))
    if not values or len(values) > MOST_VALUES:
        raise InvalidValue(f"a domain has 1 to {MOST_VALUES} values in a place, got {len(values)}")
    return InputChoice(values)


def _bare(text: str) -> str:
    inner = text[1:-1]
    closed = text.startswith("(") and text.endswith(")")
    depths = [inner.count("(", 0, end) - inner.count(")", 0, end) for end in range(len(inner) + 1)]
    return inner if closed and min(depths) >= 0 else text


def _split(text: str, mark: str) -> list[str]:
    depth, found = 0, [""]
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == mark and not depth:
            found.append("")
        else:
            found[-1] += letter
    return found


def _values(text: str) -> tuple[Input, ...]:
    if found := _RANGE.fullmatch(text):
        if re.search(r"\.|e", found[1] + found[2]):
            low, high = float(found[1]), float(found[2])
            return (low, high, *(low + share * (high - low) for share in _INSIDE))
        start, end = int(found[1]), int(found[2])
        return tuple(dict.fromkeys((start, end, (start + end) // 2)))
    try:
        return (json.loads(text if '"' in text else text.replace("nan", "NaN")),)
    except ValueError:
        if not text:
            raise InvalidValue("a place of a domain is empty: write its values, such as 0..1 or a|b") from None
        return (text,)


def pairs(domain: Domain, neighbours: str, random: Random) -> list[tuple[Input, Input]]:
    """The pairs that are tried, at most `MOST_PAIRS`, those most worth it first; none stands twice."""
    if neighbours == "any":
        found = _any(domain, random)
    elif neighbours in ("one", "lacks") and isinstance(domain, InputList):
        found = _changed(domain, neighbours == "lacks", random)
    elif neighbours.startswith(_WITHIN) and isinstance(domain, InputChoice):
        found = _within(domain, _number(neighbours[len(_WITHIN) :]))
    else:
        raise InvalidValue("neighbours are any, one or lacks (of a list), or within:D (of numbers)")
    distinct = {frozenset((json.dumps(x), json.dumps(y))): (x, y) for x, y in found if json.dumps(x) != json.dumps(y)}
    if not distinct:
        raise InvalidValue("the domain has no two neighbours: name a second value")
    return list(distinct.values())[:MOST_PAIRS]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidValue("neighbours within:D need a number, such as within:1") from None


def _any(domain: Domain, random: Random) -> Iterator[tuple[Input, Input]]:
    """Whole inputs changed first, then single places."""
    if isinstance(domain, InputChoice):
        # Each value once first, so that one that alone is unprotected is not left out.
        yield from zip(domain.values[::2], domain.values[1::2], strict=False)
        both = [(x, y) for place, x in enumerate(domain.values) for y in domain.values[place + 1 :]]
        yield from random.sample(both, len(both))
        return
    most = min(max(len(_leaves(part)) for part in domain.parts), 4)
    for i, j in combinations(range(most), 2):
        yield _filled(domain, i), _filled(domain, j)
        yield _crossed(domain, i, j), _crossed(domain, j, i)
    for _ in range(4):
        yield _drawn_pair(domain, random)
    first, second = _filled(domain, 0), _filled(domain, 1)
    for place in range(min(len(domain.parts), 4)):
        yield first, [second[i] if i == place else value for i, value in enumerate(first)]


def _changed(domain: InputList, lacks: bool, random: Random) -> Iterator[tuple[Input, Input]]:
    """Bases of like rows and of two values mixed; the first place is changed to, or left out of, each of its values."""
    rows = [_leaves(part) for part in domain.parts]
    bases = [[_at(row, number) for row in rows] for number in range(min(len(rows[0]), 6))]
    bases += [[_at(row, int(random.random() < share)) for row in rows] for share in _MIXED]
    bases += [[random.choice(row) for row in rows]]
    changes = [(x, None) for x in rows[0][1::-1]] if lacks else list(combinations(rows[0], 2))
    found = []
    for x, y in changes:
        found += [([x, *base[1:]], base[1:] if lacks else [y, *base[1:]]) for base in bases]
    yield from found[: len(bases)]
    last = random.choice(bases)
    yield last, [*last[:-1], _at(rows[-1], 1)]
    yield from random.sample(found, len(found))


def _within(domain: InputChoice, distance: float) -> Iterator[tuple[Input, Input]]:
    low, high = min(domain.values), max(domain.values)
    step: Input = int(distance) if all(isinstance(value, int) for value in domain.values) else distance
    if low + step > high:
        raise InvalidValue("the neighbours' distance is larger than the domain")
    for base in dict.fromkeys((low, high - step, *domain.values, low + step)):
        if base + step <= high:
            yield base, base + step


def _leaves(part: Domain) -> list[Input]:
    """The values that are tried as one row."""
    if isinstance(part, InputChoice):
        return list(part.values)
    wide = max(len(_leaves(inner)) for inner in part.parts)
    return [*(_filled(part, number) for number in range(wide)), _crossed(part, 0, 1), _crossed(part, 1, 0)]


def _at(values: Sequence[Input], number: int) -> Input:
    return values[number % len(values)]


def _filled(part: Domain, number: int) -> Input:
    if isinstance(part, InputList):
        return [_filled(inner, number) for inner in part.parts]
    return _at(part.values, number)


def _crossed(part: InputList, number: int, other: int) -> Input:
    """Two values in turn."""
    return [_filled(inner, other if place % 2 else number) for place, inner in enumerate(part.parts)]


def _drawn_pair(part: Domain, random: Random) -> tuple[Input, Input]:
    """Two inputs that differ in every place that has a second value."""
    if isinstance(part, InputList):
        both = [_drawn_pair(inner, random) for inner in part.parts]
        return [x for x, _ in both], [y for _, y in both]
    x, y = random.sample(part.values, 2) if len(part.values) > 1 else part.values * 2
    return x, y
