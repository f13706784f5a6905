"""The questions of a study and their answers, in the form in which they cross a process boundary.

An answer has 9 bytes whatever it is: nothing, a finite number, or the index of a text that the study declares. So the
message of a study with n features has 9 (n + 1) bytes, and nothing in it can be longer, nested or undeclared. A text
that is none of the declared ones counts as nothing here, as it does in every category map.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import asdict, field, frozen

from anon.queries.lint import BOUNDS, Bounds
from anon.queries.sandbox import Missing, Outcome, Sandbox

Value = float | str | None
"""A number, a text, or None where the query gave nothing usable."""

LONGEST_TEXT = 1000
"""Characters of a text that is kept; a longer one is no category of any study and counts as nothing."""
LABEL = "label"
"""The kind of a question whose answer keeps its type, beside a feature's "numeric" and "categorical"."""

_ANSWER = struct.Struct("<cd")
_INDEX = struct.Struct("<cQ")
_NOTHING, _NUMBER, _TEXT = b"\x00", b"\x01", b"\x02"


@frozen
class Question:
    """One query of a study; `texts` are those that its answer may be."""

    kind: str
    query: str
    texts: tuple[str, ...] = ()


@frozen
class Request:
    """All that an evaluation is told. `memory` is what the queries may take beside the copy of the tables, in bytes."""

    database: Path
    tables: Mapping[str, tuple[str, ...]]
    questions: tuple[Question, ...]
    as_of: int
    memory: int = 400 * 2**20
    bounds: Bounds = field(default=BOUNDS, repr=False)

    def to_bytes(self) -> bytes:
        """JSON, for a program of ours."""
        return json.dumps(asdict(self), default=str).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Request:
        """Read back what `to_bytes` wrote."""
        fields = json.loads(data)
        return cls(
            Path(fields["database"]),
            {name: tuple(columns) for name, columns in fields["tables"].items()},
            tuple(
                Question(question["kind"], question["query"], tuple(question["texts"]))
                for question in fields["questions"]
            ),
            fields["as_of"],
            fields["memory"],
            Bounds(**fields["bounds"]),
        )

    @property
    def size(self) -> int:
        """Bytes of the message that answers it."""
        return _ANSWER.size * len(self.questions)


def answered(sandbox: Sandbox | None, request: Request) -> bytes:
    """The whole message, from queries that run here. Total: what gives no value is answered with nothing."""
    if sandbox is None:
        return nothing(request)
    return b"".join(_encoded(question, value_of(question.kind, sandbox.scalar(question.query, request.as_of)))
                    for question in request.questions)


def nothing(request: Request) -> bytes:
    """The message in which every value is missing."""
    return bytes(request.size)


def parse_answers(request: Request, message_untrusted: bytes) -> tuple[Value, ...]:
    """The values, in the order of the questions; all missing when any byte of the message is not as it must be."""
    none = (None,) * len(request.questions)
    if len(message_untrusted) != request.size:
        return none
    parts = [message_untrusted[start : start + _ANSWER.size] for start in range(0, request.size, _ANSWER.size)]
    try:
        return tuple(_decoded(question, part) for question, part in zip(request.questions, parts, strict=True))
    except (ValueError, IndexError):
        return none


def value_of(kind: str, outcome: Outcome) -> Value:
    """A categorical feature gives a text, or an integer written as text; a numeric one a number; the label keeps its
    type. Everything else is nothing."""
    if isinstance(outcome, Missing) or (isinstance(outcome, str) and len(outcome) > LONGEST_TEXT):
        return None
    if kind == LABEL:
        return outcome if isinstance(outcome, str) else float(outcome)
    if kind == "numeric":
        return None if isinstance(outcome, str) else float(outcome)
    return None if isinstance(outcome, float) else str(outcome)


def _encoded(question: Question, value: Value) -> bytes:
    if isinstance(value, float):
        return _ANSWER.pack(_NUMBER, value)
    return _INDEX.pack(_TEXT, question.texts.index(value)) if value in question.texts else bytes(_ANSWER.size)


def _decoded(question: Question, part: bytes) -> Value:
    kind, number = _ANSWER.unpack(part)
    if part == bytes(_ANSWER.size):
        return None
    if kind == _NUMBER and question.kind != "categorical" and math.isfinite(number):
        return float(number)
    if kind == _TEXT and question.kind != "numeric":
        return question.texts[int(_INDEX.unpack(part)[1])]
    raise ValueError


def texts_of(values: Sequence[str | int | float]) -> tuple[str, ...]:
    """The texts among declared values."""
    return tuple(value for value in values if isinstance(value, str))
