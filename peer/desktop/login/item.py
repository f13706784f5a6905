"""The program started at login: a command and the few variables it needs. Pure; how each system spells it is beside."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from attrs import field

from anon.errors import Refused
from anon.values import frozen

SUMMARY = "AnonML peer: does what is due at its own times"
CARRIED = ("ANONML_TOR", "ANONML_TORRC")
"""Variables that name files: they decide which tor is used. The passphrase is never among what is written."""
LAUNCHER = "AnonML.exe"
"""Of the folder for Windows (`bundle/windows`), where it lies beside the folder of the Python."""


def _plain(_item: object, _attribute: object, words: tuple[str, ...]) -> None:
    for word in words:
        if not word or not word.isprintable():
            raise Refused("a path has a line break or another control character, or is empty; rename that folder")


@frozen
class LoginItem:
    """`command` begins with an absolute path and ends with `--home`, the home; `environment` holds pairs.

    Raises `Refused` for control characters, which no format of a login item can hold safely.
    """

    home: str
    command: tuple[str, ...] = field(validator=_plain)
    environment: tuple[tuple[str, str], ...] = ()

    def __attrs_post_init__(self) -> None:
        _plain(self, None, tuple(value for _, value in self.environment))


def login_item(program: tuple[str, ...], home: Path, route: str, environment: Mapping[str, str]) -> LoginItem:
    """`anonml peer run --stay` of this home and route, with absolute paths, because it starts from another folder."""
    place = str(home.expanduser().absolute())
    files = tuple(
        (name, str(Path(environment[name]).expanduser().absolute())) for name in CARRIED if environment.get(name)
    )
    return LoginItem(place, (*program, "peer", "run", "--stay", "--route", route, "--home", place), files)


def own_program(executable: str, system: str = sys.platform) -> tuple[str, ...]:
    """The words that start this very installation: a program that brings its Python along (it is what runs, and is not
    called python, or it is Windows' `AnonML.exe` above the Python's folder), or the Python that runs it.

    `-P` keeps files that lie where it is started from being imported instead of the program's own parts.
    """
    python = Path(executable)
    if not python.name.lower().startswith(("python", "pypy")):
        return (executable,)
    launcher, windowless = python.parent.with_name(LAUNCHER), python.with_name("pythonw.exe")
    if system == "win32" and launcher.exists():
        return (str(launcher),)
    if system == "win32" and windowless.exists():
        python = windowless
    return (str(python), "-P", "-m", "anonml")
