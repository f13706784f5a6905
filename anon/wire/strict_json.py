"""JSON of one spelling, for every document and file that comes from outside this process.

Python's reader guesses an encoding from bytes, takes the last of two equal keys and knows numbers that are none. So two
readers could find two documents in the same bytes.
"""

from __future__ import annotations

import json
from typing import Any

from anon.errors import InvalidValue


def text_of(data_untrusted: bytes | str) -> str:
    """The text of UTF-8. Raises `InvalidValue` for anything else."""
    try:
        return data_untrusted if isinstance(data_untrusted, str) else data_untrusted.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidValue("no UTF-8") from None


def read_json(data_untrusted: bytes | str) -> Any:
    """The values. Raises `ValueError`: no UTF-8 or no JSON, a byte order mark, a repeated key, a number that is not
    finite, too deep."""
    text = text_of(data_untrusted)
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        raise InvalidValue("nested too deeply") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) != len(pairs):
        raise InvalidValue("a repeated key")
    return plain


def _refuse_constant(text: str) -> Any:
    raise InvalidValue("a number that is not finite")


def _finite(text: str) -> float:
    """Also 1e999 is infinite."""
    number = float(text)
    return number if abs(number) != float("inf") else _refuse_constant(text)
