"""The JSON of published models, one spelling each, with a strict reader; and the logistic function of their scores."""

from __future__ import annotations

import json
import math
from typing import Any, TypeVar

from attrs import AttrsInstance, fields

from anon.errors import InvalidValue, Malformed, in_brackets
from anon.study.structuring import make_converter, structure
from anon.text.sentences import NOTHING, attributed, say
from anon.wire.strict_json import read_json

Model = TypeVar("Model", bound=AttrsInstance)


def text_length(text: str) -> int:
    """Bytes of a text as `spelled` writes it."""
    return len(json.dumps(text))


def spelled(model: AttrsInstance) -> str:
    """Sorted keys, no blanks, ASCII, shortest floats, a final newline. Raises `ValueError` for a number that is not
    finite."""
    plain = _CONVERTER.unstructure(model)
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False) + "\n"


def read_as(text_untrusted: str, kind: type[Model]) -> Model:
    """A valid model of this class. Raises `Malformed`: no JSON, unknown or repeated keys, NaN, inconsistent values."""
    plain = read(text_untrusted)
    try:
        return structure(_CONVERTER, plain, kind, "model")
    except Malformed as fault:
        newer = isinstance(plain, dict) and plain.keys() - {field.name for field in fields(kind)}
        raise Malformed(f"{fault}{'; a newer program may have written it: update this one' * bool(newer)}") from None


def logistic(log_odds: float) -> float:
    """The probability of log-odds, without overflow."""
    if log_odds >= 0:
        return 1 / (1 + math.exp(-log_odds))
    return math.exp(log_odds) / (1 + math.exp(log_odds))


def read(text_untrusted: bytes | str) -> Any:
    """The values in a text. Raises `Malformed`: no UTF-8, no JSON, a repeated key, a number that is not finite."""
    try:
        return read_json(text_untrusted)
    except ValueError as error:
        reason = in_brackets(attributed(str(error))) if isinstance(error, InvalidValue) else NOTHING
        raise Malformed(say("model: not the JSON of a model{reason}; fetch it again", reason=reason)) from None


_CONVERTER = make_converter()
