"""A target's file: its claim, read without running it, and the options of the command, which override it.

    CLAIM = {"epsilon": 1, "domain": "0..1"}

    def mechanism(x): ...
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from attrs import evolve, fields, frozen

from aggregator.auditor.claim import PrivacyClaim
from aggregator.auditor.domain import pairs, parse_domain
from aggregator.auditor.search import Pair
from anon.errors import InvalidValue, Malformed

NAME, FUNCTION = "CLAIM", "mechanism"


@frozen
class AuditTarget:
    """A mechanism and what is claimed of it; an empty key was not said."""

    place: str
    """A file, a module, or `command` or `lines` before a command's words in JSON."""
    function: str = FUNCTION
    epsilon: float | None = None
    delta: float = 0.0
    domain: str = ""
    neighbours: str = "any"
    pairs: tuple[Pair, ...] = ()
    requirements: tuple[str, ...] = ()
    python: str = ""

    def claim(self) -> PrivacyClaim:
        """The claim; `InvalidValue` where nobody said an epsilon."""
        if self.epsilon is None:
            raise InvalidValue(f"no epsilon is claimed: name it with --epsilon, or in {NAME} of the target's file")
        return PrivacyClaim(float(self.epsilon), float(self.delta))

    def tried(self, random: Random) -> list[Pair]:
        """The pairs of neighbours; `InvalidValue` where neither pairs nor a domain were named."""
        if self.pairs:
            return list(self.pairs)
        if not self.domain:
            raise InvalidValue("no inputs: name them with --domain or --pair, such as --domain 0..1")
        return pairs(parse_domain(self.domain), self.neighbours, random)

    def source(self) -> str:
        """The file's text; empty for a module or a command."""
        return Path(self.place).read_text("utf-8") if self.place.endswith(".py") else ""


def read_target(place: str, said: Mapping[str, Any]) -> AuditTarget:
    """The target of a file, or of a function of a file or module; what is `said` overrides its file's claim.

    Raises `Malformed` for a file that is none or has another claim.
    """
    colon = place.find(":", 2)  # a drive of Windows has one before
    path, function = (place[:colon], place[colon + 1 :]) if colon > 0 else (place, "")
    target = AuditTarget(path, function or FUNCTION)
    if path.endswith(".py"):
        target = evolve(target, **_claimed(Path(path)))
    given = {key: value for key, value in said.items() if value not in (None, "", ())}
    return evolve(target, **given)


def _claimed(path: Path) -> dict[str, Any]:
    try:
        body = ast.parse(path.read_text("utf-8")).body
    except (SyntaxError, UnicodeDecodeError):
        raise Malformed(f"{path}: is no Python file") from None
    found: dict[str, Any] = {}
    for line in body:
        if isinstance(line, ast.Assign) and any(isinstance(at, ast.Name) and at.id == NAME for at in line.targets):
            try:
                found = dict(ast.literal_eval(line.value))
            except (ValueError, TypeError):
                raise Malformed(f"{path}: {NAME} is a dictionary of plain values") from None
    known = {field.name for field in fields(AuditTarget)} - {"place"}
    if unknown := found.keys() - known:
        raise Malformed(f"{path}: {NAME} has {', '.join(sorted(known))}; not {', '.join(sorted(unknown))}")
    for key in ("pairs", "requirements"):
        found[key] = tuple(found.get(key, ()))
    return found


def read_pairs(texts: Sequence[str]) -> tuple[Pair, ...]:
    """The pairs of options, each a list of two inputs in JSON; `InvalidValue` for other texts."""
    found = []
    for text in texts:
        try:
            first, second = json.loads(text)
        except (ValueError, TypeError):
            raise InvalidValue(f"--pair: expected a list of two inputs in JSON, such as '[0, 1]'; got {text}") from None
        found.append((first, second))
    return tuple(found)
