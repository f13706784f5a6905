"""The functions a feature query may call: every one a function of its arguments alone.

SQLite's authorizer sees a function's name and never its arguments, so `datetime('now')` cannot be told from
`datetime(ts)`. The built-in date functions are therefore all absent, and `epoch` and `julian` of our own stand for
them. Some string functions have a cost that is not linear. Some have a result that can be far longer than their
arguments. They are absent (`group_concat`, `printf`, `hex`, `zeroblob`), or replaced here. The replacements charge
their work to the query's budget of steps. Mathematics is ours too, because not every SQLite is built with it.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

Charge = Callable[[int], None]
"""Takes units of work, of the size of one SQLite instruction, from the running query's budget; raises when spent."""

LONGEST_PATTERN = 128
"""Characters in a LIKE pattern or a set of characters to trim."""

LONGEST_TIMESTAMP = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CHARACTERS_PER_STEP = 64

BUILT_IN = {
    "abs": "abs(x)",
    "avg": "avg(x): mean of the numbers in a group",
    "coalesce": "coalesce(x, y, ...): the first that is not NULL",
    "count": "count(*), count(x), count(distinct x)",
    "dense_rank": "window function",
    "first_value": "window function",
    "ifnull": "ifnull(x, y)",
    "iif": "iif(condition, yes, no)",
    "json_array_length": "json_array_length(json [, path])",
    "json_extract": "json_extract(json, path): the value at a path such as '$.a.b'",
    "json_type": "json_type(json [, path])",
    "json_valid": "json_valid(text)",
    "->": "json -> path: the part as JSON",
    "->>": "json ->> path: the part as a value",
    "lag": "window function: the row before",
    "last_value": "window function",
    "lead": "window function: the row after",
    "length": "length(text): characters",
    "lower": "lower(text)",
    "max": "max(x) of a group, or max(x, y, ...)",
    "min": "min(x) of a group, or min(x, y, ...)",
    "nth_value": "window function",
    "ntile": "window function",
    "nullif": "nullif(x, y)",
    "rank": "window function",
    "round": "round(x [, digits])",
    "row_number": "window function",
    "substr": "substr(text, start [, length])",
    "substring": "substring(text, start [, length])",
    "sum": "sum(x): NULL for an empty group",
    "total": "total(x): 0.0 for an empty group",
    "typeof": "typeof(x)",
    "upper": "upper(text)",
}
"""SQLite's own functions that are permitted, each with what it does."""

OWN = {
    "ceil": "ceil(x)",
    "epoch": "epoch(t): seconds since 1970 UTC of an ISO 8601 text (a text without offset is UTC) or of a number",
    "exp": "exp(x)",
    "floor": "floor(x)",
    "instr": "instr(text, part): place of the first occurrence, from 1; 0 if none",
    "julian": "julian(t): Julian day number of what epoch(t) accepts",
    "like": f"text LIKE pattern: ASCII letters alike in either case; pattern up to {LONGEST_PATTERN} characters",
    "ln": "ln(x): natural logarithm",
    "log": "log(x): logarithm to base 10, as in SQLite",
    "log10": "log10(x)",
    "log2": "log2(x)",
    "median": "median(x): of the numbers in a group; NULL for an empty one",
    "pow": "pow(x, y)",
    "power": "power(x, y)",
    "replace": "replace(text, part, other)",
    "sign": "sign(x): -1, 0 or 1",
    "sqrt": "sqrt(x)",
    "stddev": "stddev(x): square root of variance(x)",
    "trim": "trim(text [, characters])",
    "variance": "variance(x): sample variance (divisor n - 1) of the numbers in a group; NULL below two",
}
"""Functions we register, some in place of SQLite's of that name. NULL in, NULL out; outside their domain NULL."""

PERMITTED = frozenset(BUILT_IN) | frozenset(OWN)


def describe() -> str:
    """The permitted functions as a Markdown list, for documentation and for messages to a study's author."""
    both = {**BUILT_IN, **OWN}
    return "\n".join(f"- `{name}`: {both[name]}" for name in sorted(both))


def register(connection: sqlite3.Connection, charge: Charge, longest: int) -> None:
    """Give `connection` our functions. `charge` receives their work; no text longer than `longest` is made."""
    for name, function in _NUMERIC.items():
        connection.create_function(name, 1, _number_or_null(function), deterministic=True)
    for name in ("pow", "power"):
        connection.create_function(name, 2, _power, deterministic=True)
    texts = _Texts(charge, longest)
    connection.create_function("epoch", 1, _epoch, deterministic=True)
    connection.create_function("julian", 1, _julian, deterministic=True)
    connection.create_function("instr", 2, texts.instr, deterministic=True)
    for arguments in (2, 3):
        connection.create_function("like", arguments, texts.like, deterministic=True)
    connection.create_function("replace", 3, texts.replace, deterministic=True)
    for arguments in (1, 2):
        connection.create_function("trim", arguments, texts.trim, deterministic=True)
    for name, finish in (("variance", _variance), ("stddev", _stddev), ("median", _median)):
        connection.create_aggregate(name, 1, _aggregate(finish, charge))


def _number_or_null(function: Callable[[float], float]) -> Callable[[object], float | None]:
    def guarded(value: object) -> float | None:
        if not isinstance(value, int | float):
            return None
        try:
            result = function(value)
        except (ValueError, OverflowError):
            return None
        return result if math.isfinite(result) else None

    return guarded


_NUMERIC: dict[str, Callable[[float], float]] = {
    "ceil": lambda value: float(math.ceil(value)),
    "exp": math.exp,
    "floor": lambda value: float(math.floor(value)),
    "ln": math.log,
    "log": math.log10,
    "log10": math.log10,
    "log2": math.log2,
    "sign": lambda value: (value > 0) - (value < 0),
    "sqrt": math.sqrt,
}


def _power(base: object, exponent: object) -> float | None:
    if not isinstance(exponent, int | float):
        return None
    return _number_or_null(lambda value: math.pow(value, exponent))(base)


def _epoch(value: object) -> float | None:
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str) or len(value) > LONGEST_TIMESTAMP:
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
        return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH).total_seconds()
    except (ValueError, OverflowError):
        return None


def _julian(value: object) -> float | None:
    seconds = _epoch(value)
    return None if seconds is None else seconds / 86400 + 2440587.5


def _as_text(value: object) -> str | None:
    """A value as SQLite would read it where text is expected; None for NULL and for blobs."""
    return None if value is None or isinstance(value, bytes) else str(value)


class _Texts:
    """Text functions of bounded cost: each charges in proportion to what it reads and writes."""

    def __init__(self, charge: Charge, longest: int) -> None:
        self._charge = charge
        self._longest = longest

    def instr(self, text: object, part: object) -> int | None:
        haystack, needle = _as_text(text), _as_text(part)
        if haystack is None or needle is None:
            return None
        self._work(len(haystack) + len(needle))
        return haystack.find(needle) + 1

    def replace(self, text: object, part: object, other: object) -> str | None:
        haystack, needle, substitute = _as_text(text), _as_text(part), _as_text(other)
        if haystack is None or needle is None or substitute is None:
            return None
        if not needle:
            return haystack
        self._work(2 * len(haystack) + len(needle))
        length = len(haystack) + haystack.count(needle) * (len(substitute) - len(needle))
        if length > self._longest:
            raise ValueError("text too long")
        self._work(length)
        return haystack.replace(needle, substitute)

    def trim(self, text: object, characters: object = " ") -> str | None:
        subject, unwanted = _as_text(text), _as_text(characters)
        if subject is None or unwanted is None:
            return None
        if len(unwanted) > LONGEST_PATTERN:
            raise ValueError("too many characters to trim")
        self._work(len(subject) * (8 + len(unwanted)))  # each character is looked for in the whole set
        return subject.strip(unwanted) if unwanted else subject

    def like(self, pattern: object, text: object, escape: object = "") -> bool | None:
        wanted, subject, escaping = _as_text(pattern), _as_text(text), _as_text(escape)
        if wanted is None or subject is None or escaping is None:
            return None
        if len(wanted) > LONGEST_PATTERN:
            raise ValueError("pattern too long")
        self._work(len(subject) * (len(wanted) if "_" in wanted else 1 + wanted.count("%")))
        return like(wanted, subject, escaping)

    def _work(self, characters: int) -> None:
        self._charge(characters // _CHARACTERS_PER_STEP)


_Part = list[str | None]
"""Characters to find side by side; None stands for any one."""


def like(pattern: str, text: str, escape: str = "") -> bool:
    """SQL's LIKE: % is any run, _ any one character, ASCII letters alike in either case.

    Parts between % are found leftmost first, which never needs to go back: the cost is at most the product of the two
    lengths. Raises `ValueError` if `escape` is longer than one character.
    """
    parts = _parts(_lowered(pattern), _lowered(escape))
    subject = _lowered(text)
    if len(parts) == 1:
        first = parts[0]
        return len(subject) == len(first) and _find(first, subject, 0, len(subject)) == 0
    first, *middle, last = parts
    end = len(subject) - len(last)
    if end < len(first) or _find(first, subject, 0, len(first)) != 0 or _find(last, subject, end, len(subject)) != end:
        return False
    position = len(first)
    for part in middle:
        hit = _find(part, subject, position, end)
        if hit < 0:
            return False
        position = hit + len(part)
    return True


def _lowered(text: str) -> str:
    """With ASCII letters made small, and no others; by bytes, which costs the same for every alphabet."""
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def _parts(pattern: str, escape: str) -> list[_Part]:
    if len(escape) > 1:
        raise ValueError("an escape is one character")
    parts: list[_Part] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            parts[-1].append(next(characters, ""))
        elif character == "%":
            parts.append([])
        else:
            parts[-1].append(None if character == "_" else character)
    return parts


def _find(part: _Part, subject: str, start: int, end: int) -> int:
    if None not in part:
        return subject.find("".join(character or "" for character in part), start, end)
    wildcard = re.compile("".join("." if character is None else re.escape(character) for character in part), re.DOTALL)
    match = wildcard.search(subject, start, end)
    return match.start() if match else -1


def _aggregate(finish: Callable[[list[float]], float | None], charge: Charge) -> Any:
    class Collected:
        """Keeps a group's numbers; charges for the memory, so that the step budget bounds it."""

        def __init__(self) -> None:
            self.values: list[float] = []

        def step(self, value: object, /) -> None:
            if isinstance(value, int | float):
                charge(8)
                self.values.append(float(value))

        def finalize(self) -> float | None:
            charge(8 * len(self.values))
            result = finish(self.values)
            return result if result is not None and math.isfinite(result) else None

    return Collected


def _variance(values: list[float]) -> float | None:
    if len(values) < 2:
        return None
    try:
        mean = math.fsum(values) / len(values)
        return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    except (OverflowError, ValueError):
        return None


def _stddev(values: list[float]) -> float | None:
    variance = _variance(values)
    return None if variance is None else math.sqrt(variance)


def _median(values: list[float]) -> float | None:
    if not values:
        return None
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
