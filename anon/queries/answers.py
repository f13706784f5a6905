"""The questions of a study and their answers, in the form in which they cross a process boundary.

An answer has 9 bytes whatever it is: nothing, a finite number, or the index of a text that the study declares. So the
message of a study with n features has 9 (n + 1) bytes, and nothing in it can be longer, nested or undeclared. A text
that is none of the declared ones counts as nothing here, as it does in every category map.

Where a study has many records of each member, the message has a count and then room for the most of them. It is as long
for every data set, and what is behind the last record is zeros.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from anon.queries.lint import BOUNDS, Bounds
from anon.queries.records import Draw, drawn
from anon.queries.sandbox import MissingValue, Outcome, Sandbox

Value = float | str | None
"""A number, a text, or None where the query gave nothing usable."""

LONGEST_TEXT = 1000
"""Characters of a text that is kept; a longer one is no category of any study and counts as nothing."""
LABEL = "label"
"""The kind of a question whose answer keeps its type, beside a feature's "numeric" and "categorical"."""

_COUNT = struct.Struct("<I")
_ANSWER = struct.Struct("<cd")
_INDEX = struct.Struct("<cQ")
_NOTHING, _NUMBER, _TEXT = b"\x00", b"\x01", b"\x02"


class Question(NamedTuple):
    """One query of a study; `texts` are those that its answer may be."""

    kind: str
    query: str
    texts: tuple[str, ...] = ()


class Request(NamedTuple):
    """All that an evaluation is told. `memory` is what the queries may take beside the copy of the tables, in bytes.
    `most`: of the records, where the study has many of each member; 0 where it has one. `seed`: of their draw, hex."""

    database: Path
    tables: Mapping[str, tuple[str, ...]]
    questions: tuple[Question, ...]
    as_of: int
    memory: int = 400 * 2**20
    bounds: Bounds = BOUNDS
    most: int = 0
    seed: str = ""

    def __repr__(self) -> str:
        """Without the seed, which is secret."""
        return f"Request({self.database}, {self.questions}, as_of={self.as_of}, most={self.most})"

    def to_bytes(self) -> bytes:
        """JSON, for a program of ours."""
        questions = [question._asdict() for question in self.questions]
        plain = {**self._asdict(), "questions": questions, "bounds": self.bounds._asdict()}
        return json.dumps(plain, default=str).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Request:
        """Read back what `to_bytes` wrote."""
        fields = json.loads(data.decode("utf-8"))
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
            fields["most"],
            fields["seed"],
        )

    @property
    def size(self) -> int:
        """Bytes of the message that answers it."""
        each = _ANSWER.size * len(self.questions)
        return _COUNT.size + each * self.most if self.most else each


def answered(sandbox: Sandbox | None, request: Request) -> bytes:
    """The whole message, from queries that run here. Total: what gives no value is answered with nothing."""
    if sandbox is None:
        return nothing(request)
    if request.most:
        return _answered_many(sandbox, request)
    return b"".join(_encoded(question, value_of(question.kind, sandbox.scalar(question.query, request.as_of)))
                    for question in request.questions)


def _answered_many(sandbox: Sandbox, request: Request) -> bytes:
    draw = Draw(request.most, bytes.fromhex(request.seed))
    records = drawn(sandbox, [question.query for question in request.questions], request.as_of, draw)
    none = bytes(_ANSWER.size)
    parts = [
        none if outcome is None else _encoded(question, value_of(question.kind, outcome))
        for outcomes in records
        for question, outcome in zip(request.questions, outcomes, strict=True)
    ]
    message = _COUNT.pack(len(records)) + b"".join(parts)
    return message + bytes(request.size - len(message))


def nothing(request: Request) -> bytes:
    """The message in which every value is missing, or without a record."""
    return bytes(request.size)


def parse_answers(request: Request, message_untrusted: bytes) -> tuple[Value, ...]:
    """The values, in the order of the questions; all missing when any byte of the message is not as it must be. Of many
    records one after the other: as many times the questions as there are records, none when a byte is wrong."""
    none = () if request.most else (None,) * len(request.questions)
    if len(message_untrusted) != request.size:
        return none
    count, start = 1, 0
    if request.most:
        (count,), start = _COUNT.unpack_from(message_untrusted), _COUNT.size
    end = start + _ANSWER.size * len(request.questions) * count
    if count > max(request.most, 1) or any(message_untrusted[end:]):
        return none
    parts = (message_untrusted[at : at + _ANSWER.size] for at in range(start, end, _ANSWER.size))
    try:
        return tuple(_decoded(question, part) for question, part in zip(request.questions * count, parts, strict=True))
    except (ValueError, IndexError):
        return none


def value_of(kind: str, outcome: Outcome) -> Value:
    """A categorical feature gives a text, or an integer written as text; a numeric one a number; the label keeps its
    type. Everything else is nothing."""
    if isinstance(outcome, MissingValue) or (isinstance(outcome, str) and len(outcome) > LONGEST_TEXT):
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
