"""The files of `deploy/`, as their programs read them."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.command_line import ROOT
from tests.support.postgres import Server

DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "anonml-aggregator.service"
PROGRAM, HOME, SOCKETS = "/opt/anonml/bin/anonml", "/var/lib/anonml/home", "/run/postgresql"
"""The places that the unit names."""


def settings_of(path: Path) -> list[tuple[str, str]]:
    """The `name=value` lines of a unit or of PostgreSQL's settings, in order, without sections and comments."""
    lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    pairs = (line.partition("=") for line in lines if line and line[0] not in "#[")
    return [(name.strip(), value.strip()) for name, _, value in pairs]


def unit_words(name: str, home: Path, sockets: Path) -> list[str]:
    """The words after the program of a unit's command, with places of a test's own."""
    (line,) = [value for setting, value in settings_of(UNIT) if setting == name]
    program, *words = shlex.split(line)
    assert program == PROGRAM
    return [word.replace(HOME, str(home)).replace(SOCKETS, str(sockets)) for word in words]


@contextmanager
def database_set_up(server: Server) -> Iterator[None]:
    """The role and database of `deploy/database.sql`, on a server of the tests."""
    psql = [server.programs / "psql", "-h", server.folder, "-U", "tester", "-XAtq", "-v", "ON_ERROR_STOP=1"]
    subprocess.run([*psql, "-f", DEPLOY / "database.sql", "postgres"], check=True, capture_output=True, text=True)
    try:
        yield
    finally:
        server.run("DROP DATABASE anonml WITH (FORCE)")
        server.run("DROP ROLE anonml")
