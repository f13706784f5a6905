"""Commands that a line hints at, as they are typed here: each finds this program, and the home that was given."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import typer

HINT = re.compile(r"`(anonml ((peer|aggregator|teller|study) [a-z][^`]*))`(?! with another)")
"""A command between backquotes. One that speaks of another home than this one is none."""
HOMELESS = re.compile(
    r"aggregator (?:audit|export-model|openapi)|peer notify test|study (?!publish|dry-round|rehearse)"
)
"""The commands of these sides that take no home."""
PROGRAM = re.compile(r"(?<=`)anonml(?= ([a-z-]+))")
"""The name of this program in a command between backquotes, and the command's first word."""
_SIDES = {"study": "aggregator"}
_APART = {"peer", "aggregator", "teller"}
"""Sides on machines of their own: what one says of another's command is typed there."""
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


def started_as(program: str) -> str:
    """The word to type for a program that was started by these words: with its folder where a shell finds another one
    or none, as in an environment that is not activated."""
    if Path(program).name != "anonml" or not Path(program).is_file():
        return "anonml"
    found = shutil.which("anonml")
    return "anonml" if found is not None and Path(found).samefile(program) else shlex.quote(program)


def completed(line: str) -> str:
    """The line with each hint as it is typed here."""
    for place, words in reversed([*additions(line)]):
        line = line[:place] + words + line[place:]
    return line


def additions(line: str) -> Iterator[tuple[int, str]]:
    """The places in a line at which `completed` adds words, in their order."""
    yield from sorted([*_folders(line), *_homes(line)])


def _folders(line: str) -> Iterator[tuple[int, str]]:
    for name in PROGRAM.finditer(line):
        if _is_typed_elsewhere(name[1]):
            continue
        before, _, after = started_as(sys.argv[0]).rpartition("anonml")
        yield from ((place, words) for place, words in ((name.start(), before), (name.end(), after)) if words)


def _is_typed_elsewhere(word: str) -> bool:
    here, there = (_SIDES.get(one, one) for one in ("".join(sys.argv[1:2]), word))
    return here != there and {here, there} <= _APART


def _homes(line: str) -> Iterator[tuple[int, str]]:
    for hint in HINT.finditer(line) if _given else ():
        home = _given.get(_SIDES.get(hint[3], hint[3]))
        if home is not None and "--home" not in hint[2] and not HOMELESS.match(hint[2]):
            yield hint.end(1), f" --home {shlex.quote(str(home))}"
