"""A file of vectors: its kind, what its cases share, and the cases, one a line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from anon.wire.cbor import decode, encode

Plain = Mapping[str, Any]
Change = Callable[[Any], Any]


@define
class Stream:
    """Bytes that follow from a seed: SHAKE-256 of the seed and a counter. For vectors alone, which have no secrets."""

    seed: str
    _calls: int = field(default=0, init=False)

    def __call__(self, size: int) -> bytes:
        """The next bytes."""
        self._calls += 1
        return hashlib.shake_256(f"{self.seed} {self._calls}".encode()).digest(size)

    def below(self, end: int) -> int:
        """The next number from 0 to below `end`, as good as uniform."""
        return int.from_bytes(self(16), "big") % end


@frozen
class Case:
    """One case. `given`: its inputs by name, bytes as bytes; "@name" stands for what the file shares under that name.
    `why`: the rule that a failing case breaks; empty where it holds. `gives`: what follows from a case that holds."""

    name: str
    given: Plain
    why: str = ""
    gives: Plain = field(factory=dict)


@frozen
class Kind:
    """One file."""

    kind: str
    about: str
    cases: tuple[Case, ...]
    shared: Plain = field(factory=dict)

    def to_json(self) -> str:
        """A line for each case, and for each thing that they share. Bytes are hexadecimal."""
        if len({case.name for case in self.cases}) != len(self.cases):
            raise ValueError(f"{self.kind}: two cases have one name")
        shared = ",\n".join(f"{json.dumps(name)}:{_spelled(value)}" for name, value in self.shared.items())
        cases = ",\n".join(_spelled(_row(case)) for case in self.cases)
        head = f'"kind":{json.dumps(self.kind)},\n"about":{json.dumps(self.about)},\n"shared":{{\n{shared}\n}},\n'
        return f'{{{head}"cases":[\n{cases}\n]}}\n'


def _row(case: Case) -> Plain:
    row: dict[str, Any] = {"name": case.name, "holds": not case.why}
    row |= {"why": case.why} if case.why else {}
    return row | {"given": case.given} | ({"gives": case.gives} if case.gives else {})


def _spelled(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def read(path: Path) -> Kind:
    """A file of vectors. Shared values stand in their places. Raises `ValueError` where `holds` and `why` differ."""
    plain = json.loads(path.read_text("utf-8"))
    shared = plain["shared"]
    if any(row["holds"] is bool(row.get("why")) for row in plain["cases"]):
        raise ValueError(f"{path.name}: a case that holds breaks no rule, and any other one breaks one")

    def filled(value: Any) -> Any:
        if isinstance(value, str) and value.startswith("@"):
            return shared[value[1:]]
        return [filled(one) for one in value] if isinstance(value, list) else value

    cases = [
        Case(row["name"], {n: filled(v) for n, v in row["given"].items()}, row.get("why", ""), row.get("gives", {}))
        for row in plain["cases"]
    ]
    return Kind(plain["kind"], plain["about"], tuple(cases), shared)


def flipped(data: bytes, place: int = -1, bit: int = 1) -> bytes:
    """The bytes with one bit turned over."""
    at = place % len(data)
    return data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]


def changed(data: bytes, change: Change) -> bytes:
    """A document with another value, in its one spelling."""
    return encode(change(decode(data)))


def replaced(items: Sequence[Any], place: int, item: Any) -> list[Any]:
    """The list with another item in one place."""
    at = place % len(items)
    return [*items[:at], item, *items[at + 1 :]]
