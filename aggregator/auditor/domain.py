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
from itertools import combinations, islice, product
from math import prod
from random import Random
from typing import Any

from attrs import frozen

from anon.errors import InvalidValue

Input = Any
"""A value of JSON's kinds."""
MOST_PAIRS = 64
MOST_VALUES = 64
_RANGE = re.compile(r"(-?[\d.]+(?:e-?\d+)?)\.\.(-?[\d.]+(?:e-?\d+)?)")
_TIMES = re.compile(r"(\d+)\s*\*\s*(.*)", re.DOTALL)
_WITHIN = "within:"
_EVERY, _PRODUCT = 10, 20  # whole numbers of a range, and rows of several values: all of so many are tried
_PLACES, _DRAWN = 6, 8  # places that are changed alone, and inputs that are drawn
_COUNTS, _FEW = 20, 11  # how many counts of rows with the second value there are, and the first that are all tried
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
        rest = range(start, end) if end - start < _EVERY else ()
        return tuple(dict.fromkeys((start, end, (start + end) // 2, *rest)))
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
        found = _within(domain, _number(neighbours[len(_WITHIN) :]), random)
    else:
        raise InvalidValue("neighbours are any, one or lacks (of a list), or within:D (of numbers)")
    some = [pair for pair in islice(found, 4 * MOST_PAIRS) if json.dumps(pair[0]) != json.dumps(pair[1])]
    distinct = {frozenset(map(json.dumps, pair)): pair for pair in some}
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
        both = list(combinations(domain.values, 2))
        yield from random.sample(both, len(both))
        return
    most = min(max(len(_leaves(part)) for part in domain.parts), 4)
    for i, j in combinations(range(most), 2):
        yield _filled(domain, i), _filled(domain, j)
        yield _crossed(domain, i, j), _crossed(domain, j, i)
    for place in range(min(len(domain.parts), _PLACES)):
        for i, j in ((0, 1), (1, 0)):
            alone = _alone(domain, i, j, place)
            yield _filled(domain, i), alone
            yield alone, _alone(domain, j, i, place)
    for _ in range(_DRAWN):
        first, second = _drawn_pair(domain, random)
        yield first, second
        place = random.randrange(len(first))
        yield first, [*first[:place], second[place], *first[place + 1 :]]


def _changed(domain: InputList, lacks: bool, random: Random) -> Iterator[tuple[Input, Input]]:
    """One row is changed, or left out: in each place; beside each count of others like it; by each of its values."""
    rows = [_leaves(part) for part in domain.parts]
    ends = list(dict.fromkeys((0, len(rows) - 1, *range(len(rows)))))[:_PLACES]

    def pair(base: list[Input], place: int, i: int, j: int) -> tuple[Input, Input]:
        before, after = base[:place], base[place + 1 :]
        changed = [] if lacks else [_at(rows[place], j)]
        return [*before, _at(rows[place], i), *after], [*before, *changed, *after]

    def like(number: int) -> list[Input]:
        return [_at(row, number) for row in rows]

    others = len(rows) - 1
    few, many = range(min(_FEW, others)), range(_FEW, others)
    counts = dict.fromkeys((0, others, others // 2, *few, *random.sample(many, len(many))))
    for count in islice(counts, _COUNTS):
        chosen = {1 + place for place in random.sample(range(others), count)}
        yield pair([_at(row, int(place in chosen)) for place, row in enumerate(rows)], 0, 1, 0)
    for place in ends[1:]:
        yield pair(like(0), place, 1, 0)
    wide = max(len(row) for row in rows)
    changes = [(i, i) for i in range(wide)] if lacks else list(combinations(range(wide), 2))
    for turn in range(4):
        for i, j in random.sample(changes, len(changes)):
            place = random.choice(ends)
            x, y = _at(rows[place], i), _at(rows[place], j)
            shared = [_shared(_at(rows[place], k), x) + _shared(_at(rows[place], k), y) for k in range(wide)]
            unlike = random.choice([k for k in range(wide) if shared[k] == min(shared)])
            drawn = [random.choice(row) for row in rows]
            yield pair((like(unlike), drawn, like(i), like(j))[turn], place, i, j)


def _shared(row: Input, other: Input) -> int:
    """How many values two rows have in common."""
    both = [set(map(json.dumps, each if isinstance(each, list) else [each])) for each in (row, other)]
    return len(both[0] & both[1])


def _within(domain: InputChoice, distance: float, random: Random) -> Iterator[tuple[Input, Input]]:
    low, high = min(domain.values), max(domain.values)
    whole = all(isinstance(value, int) for value in domain.values)
    step: Input = int(distance) if whole else distance
    if not 0 < step <= high - low:
        raise InvalidValue("no two numbers of the domain are the neighbours' distance apart")
    last = high - step
    drawn = [random.randint(low, last) if whole else random.uniform(low, last) for _ in range(_COUNTS)]
    for base in (low, last, *domain.values, low + step, *drawn[::2]):
        if base + step <= high:
            yield base, base + step
    for base in (low, last, *drawn[1::2]):
        yield base, base + (random.randint(1, step) if whole else random.uniform(0, step))


def _leaves(part: Domain) -> list[Input]:
    """The values that are tried as one row."""
    if isinstance(part, InputChoice):
        return list(part.values)
    values = [_leaves(inner) for inner in part.parts]
    wide = max(map(len, values))
    mixed = [row for i, j in ((0, 1), (1, 0)) for row in (_crossed(part, i, j), _alone(part, i, j, 0))]
    stairs = [[_filled(inner, i + place) for place, inner in enumerate(part.parts)] for i in range(min(wide, 4))]
    every = product(*values) if prod(map(len, values)) <= _PRODUCT else ()
    rows = [*(_filled(part, number) for number in range(wide)), *mixed, *stairs, *map(list, every)]
    return list({json.dumps(row): row for row in rows}.values())


def _at(values: Sequence[Input], number: int) -> Input:
    return values[number % len(values)]


def _filled(part: Domain, number: int) -> Input:
    if isinstance(part, InputList):
        return [_filled(inner, number) for inner in part.parts]
    return _at(part.values, number)


def _crossed(part: InputList, number: int, other: int) -> Input:
    """Two values in turn."""
    return [_filled(inner, other if place % 2 else number) for place, inner in enumerate(part.parts)]


def _alone(part: InputList, number: int, other: int, alone: int) -> Input:
    """One value in all places but one."""
    return [_filled(inner, other if place == alone else number) for place, inner in enumerate(part.parts)]


def _drawn_pair(part: Domain, random: Random) -> tuple[Input, Input]:
    """Two inputs that differ in every place that has a second value."""
    if isinstance(part, InputList):
        both = [_drawn_pair(inner, random) for inner in part.parts]
        return [x for x, _ in both], [y for _, y in both]
    x, y = random.sample(part.values, 2) if len(part.values) > 1 else part.values * 2
    return x, y
