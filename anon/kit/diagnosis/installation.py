"""Checks of a whole installation, a peer's or the staff's. `anonml doctor` and the page show them."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from anon.kit.diagnosis.checks import SERVICE_CHECKS, Check
from anon.machine.extras import install
from anon.text.sentences import Ours, Term, say

PEER_PARTS = (
    "aiohttp",
    "attrs",
    "cattrs",
    "cbor2",
    "h11",
    "jinja2",
    "python_socks",
    "anon.crypto.nacl",
    "anon.credential",
    "rich",
)
PATIENCE = 30.0
"""Seconds for a child process to start and to answer."""
AGGREGATOR_PARTS = ("aiosqlite", "numpy", "sklearn", "sqlalchemy")
_INSTALL = say("install anonml again")


def _parts(name: str, parts: tuple[str, ...], how: Ours, needed: bool) -> Check:
    missing = [part for part in parts if not _imports(part)]
    action = say("{how}: {parts} missing", how=how, parts=Term(", ".join(missing))) if missing else ""
    return Check(name, not missing, action, needed)


def _imports(name: str) -> bool:
    try:
        import_module(name)
    except ImportError:
        return False
    return True


def _queries() -> Check:
    """A check that the program that evaluates queries away from every key starts and answers here."""
    from anon.queries import process
    from anon.queries.answers import Question, Request

    if not process.has_children():
        return Check(say("feature queries (in this process: there are no child processes here)"), True)
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "probe.sqlite"
        sqlite3.connect(database).close()
        answers = process.at_once(Request(database, {}, (Question("numeric", "SELECT 1"),), 0), PATIENCE)
    action = say("install anonml again; until then every value that a study asks for counts as missing")
    return Check(say("feature queries (in a child process)"), answers == (1.0,), action)


PEER_CHECKS: tuple[Callable[[], Check], ...] = (
    *SERVICE_CHECKS[:1],
    lambda: _parts(say("parts of the peer"), PEER_PARTS, _INSTALL, needed=True),
    *SERVICE_CHECKS[1:3],
    _queries,
    *SERVICE_CHECKS[3:],
)
CHECKS: tuple[Callable[[], Check], ...] = (
    *PEER_CHECKS[:2],
    lambda: _parts(
        say("parts of the aggregator"),
        AGGREGATOR_PARTS,
        say("`{command}` (only staff need it)", command=install("aggregator")),
        needed=False,
    ),
    *PEER_CHECKS[2:],
)
