"""The JSON of published models: one spelling each, and a strict reader."""

from __future__ import annotations

import json
from typing import Any

from anon.errors import InvalidValue, Malformed
from anon.text.sentences import say


def spelled(plain: object) -> str:
    """Sorted keys, no blanks, ASCII, shortest floats, a final newline. Raises `ValueError` for a number that is not
    finite."""
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False) + "\n"


def read(text_untrusted: str) -> Any:
    """The values in a text. Raises `Malformed`: no JSON, a repeated key, a number that is not finite."""
    try:
        return json.loads(text_untrusted, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = f" ({error})" if isinstance(error, InvalidValue) else ""
        raise Malformed(say("model: not the JSON of a model{reason}; fetch it again", reason=reason)) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) != len(pairs):
        raise InvalidValue("a repeated key")
    return plain


def _refuse_constant(text: str) -> Any:
    raise InvalidValue("a number that is not finite")
