"""Commands that a line hints at, with the home that was given: typed as shown, each finds the same one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import typer

HINT = re.compile(r"`(anonml ((peer|aggregator|teller|study) [a-z][^`]*))`(?! with another)")
"""A command between backquotes. One that speaks of another home than this one is none."""
HOMELESS = re.compile(
    r"aggregator (?:audit|export-model|openapi)|peer notify test|study (?!publish|dry-round|rehearse)"
)
"""The commands of these sides that take no home."""
_SIDES = {"study": "aggregator"}
_given: dict[str, Path] = {}


def noting(side: str, check: Callable[[Path], Path] = lambda home: home) -> Callable[[typer.Context, Path], Path]:
    """The callback of a side's `--home`: hints of that side name it from now on, if it was typed. `check` comes
    after."""

    def noted(context: typer.Context, home: Path) -> Path:
        source = context.get_parameter_source("home")
        _given.clear()
        if source is not None and source.name == "COMMANDLINE":
            _given[side] = home
        return check(home)

    return noted


def completed(line: str) -> str:
    """The line, with the home that was given in each hint that a home belongs to and that names none."""
    for place, words in reversed([*additions(line)]):
        line = line[:place] + words + line[place:]
    return line


def additions(line: str) -> Iterator[tuple[int, str]]:
    """The places in a line at which `completed` adds words."""
    for hint in HINT.finditer(line) if _given else ():
        home = _given.get(_SIDES.get(hint[3], hint[3]))
        if home is not None and "--home" not in hint[2] and not HOMELESS.match(hint[2]):
            yield hint.end(1), f" --home {shlex.quote(str(home))}"
