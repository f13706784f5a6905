"""Numbers that are read off any output. The standard library alone, and an old Python: reproductions carry these lines.

An output is first made plain: None, numbers, text, bytes, lists and dictionaries. `flat` are its leaves, in order.
"""

from __future__ import annotations

import math
import zlib
from bisect import bisect_right
from typing import Any

WIDEST = 256


def plain(value: Any, depth: int = 0) -> Any:
    """The output as JSON's kinds and bytes. Of an object it is what `tolist`, `to_numpy` or its attributes give."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    if depth > 8:
        return repr(value)
    if isinstance(value, dict):
        return {str(key): plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(inner, depth + 1) for inner in value]
    for name in ("tolist", "to_numpy", "to_bytes"):
        if hasattr(value, name):
            return plain(getattr(value, name)(), depth + 1)
    if hasattr(value, "to01"):
        return value.to01()
    return plain(vars(value), depth + 1) if hasattr(value, "__dict__") else repr(value)


def flat(y: Any) -> list[Any]:
    """The leaves of a plain output as numbers: a text is its letters, or one number inside of a list; bytes are
    bits."""
    if isinstance(y, str):
        return [ord(letter) for letter in y]
    if isinstance(y, bytes):
        return [byte >> bit & 1 for byte in y for bit in (7, 6, 5, 4, 3, 2, 1, 0)]
    leaves: list[Any] = []
    gather(y, leaves)
    return leaves


def gather(y: Any, leaves: list[Any]) -> None:
    if isinstance(y, dict):
        y = [y[key] for key in sorted(y)]
    if isinstance(y, list):
        for inner in y:
            gather(inner, leaves)
    elif isinstance(y, bytes):
        leaves += flat(y)
    else:
        leaves.append(leaf(y))


def leaf(y: Any) -> float:
    if y is None:
        return math.nan
    if isinstance(y, str):
        return code(y)
    try:
        return float(y)
    except OverflowError:
        return math.inf if y > 0 else -math.inf


def code(text: str) -> float:
    """A number that stands for a text."""
    return float(zlib.crc32(text.encode("utf-8", "replace")))


def kind(y: Any) -> str:
    """The type and the lengths of an output, two levels deep."""
    if isinstance(y, (list, dict)) and "raised" not in y:
        inner = sorted({short(each) for each in (y if isinstance(y, list) else y.values())})
        return short(y) + (": " + ", ".join(inner[:8]) if inner else "")
    return short(y)


def short(y: Any) -> str:
    if isinstance(y, dict) and "raised" in y:
        return "raised " + str(y["raised"])
    if isinstance(y, float) and not math.isfinite(y):
        return str(y)
    return type(y).__name__ + (" of %d" % len(y) if isinstance(y, (list, dict, str, bytes)) else "")  # noqa: UP031


def order(y: Any) -> str:
    """The keys of a dictionary in their order, or the places of a list in the order of its values."""
    if isinstance(y, dict):
        return "" if "raised" in y else ",".join(y)
    if isinstance(y, list) and 1 < len(y) <= 6:
        leaves = flat(y)
        return ",".join(str(place) for place in sorted(range(len(leaves)), key=lambda place: leaves[place]))
    return ""


def at(v: list[Any], place: int) -> float:
    return v[place] if place < len(v) else math.nan


def lowest_bit(x: float) -> float:
    """The exponent of a number's lowest bit that is 1; not a number for 0 and what is not finite."""
    if not math.isfinite(x) or x == 0:
        return math.nan
    top, bottom = float(x).as_integer_ratio()
    return float((top & -top).bit_length() - bottom.bit_length())


def part(x: float, unit: float) -> float:
    """The part of a number beyond whole units, in units."""
    scaled = x / unit
    return scaled - math.floor(scaled) if math.isfinite(scaled) else math.nan


def cell(x: float, edges: list[float]) -> int:
    """The interval that a number lies in: how many edges are at most the number; one more than all for no number."""
    return len(edges) + 1 if x != x else bisect_right(edges, x)  # noqa: PLR0124
