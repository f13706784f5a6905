"""`anonml doctor`: look at this installation and say one next action per fault."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from attrs import frozen
from rich.console import Console
from rich.markup import escape

from anon.errors import AnonmlError
from anon.extras import install

app = typer.Typer(add_completion=False, help="Look at this installation and say what to do next.")
PEER_PARTS = (
    "aiohttp",
    "aiohttp_socks",
    "attrs",
    "cattrs",
    "cbor2",
    "jinja2",
    "anon.sodium",
    "anon.credential",
    "rich",
)
OLDEST_TOR = (0, 4, 9)
"""The first whose control port turns proof of work on for an onion service."""
AGGREGATOR_PARTS = ("aiosqlite", "numpy", "sklearn", "sqlalchemy")


@frozen
class Check:
    """One thing that was looked at. `action` says what to do when it is not `ok`; `needed` whether no peer can do
    without it."""

    name: str
    ok: bool
    action: str = ""
    needed: bool = True


def _parts(side: str, names: tuple[str, ...], how: str) -> Check:
    missing = [name for name in names if not _imports(name)]
    action = f"{how}: {', '.join(missing)} missing" if missing else ""
    return Check(f"parts of the {side}", not missing, action, needed=side == "peer")


def _imports(name: str) -> bool:
    try:
        import_module(name)
    except ImportError:
        return False
    return True


def _cryptography() -> Check:
    """What is underneath. The slow kind is told, and is a fault only on a machine that could have the other."""
    from anon.builds import NO_NATIVE_BUILD, PURE, VARIABLE

    try:
        from anon import sodium
        from anon.credential import curve
    except ImportError as missing:
        return Check("cryptography", False, str(missing))
    found = {"curve": curve.IMPLEMENTATION, "NaCl": sodium.IMPLEMENTATION}
    slow = [name for name, kind in found.items() if kind == PURE]
    if not slow:
        return Check("cryptography (native)", True)
    name = f"cryptography ({' and '.join(slow)} in Python: slower, and not constant-time)"
    return Check(name, sys.platform in NO_NATIVE_BUILD, f"unset {VARIABLE}, or install anonml again", needed=False)


def _token() -> Check:
    """A whole credential: commit, issue, verify, present, verify."""
    try:
        from anon.credential import Verifier, blind_sign, commit, finalize, generate_secret_key, present, public_key
    except ImportError as missing:
        return Check("tokens (made and verified)", False, str(missing))
    secret = generate_secret_key(os.urandom)
    key, header, entropy = public_key(secret), b"doctor", (1).to_bytes(32, "big")
    mine = commit(1, os.urandom)
    signature = blind_sign(secret, key, mine.commitment_with_proof, header, entropy, 1)
    token = present(finalize(key, header, signature, entropy, mine), b"context", b"packet", os.urandom)
    tag = Verifier(key, header, 1).check(token, b"context", b"packet")
    return Check("tokens (made and verified)", token.startswith(tag), "install anonml again")


def _storage() -> Check:
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "probe.sqlite")
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        connection.close()
    return Check("durable storage (SQLite WAL)", mode == "wal", "use a local disk for --home and the temporary folder")


def _clock() -> Check:
    return Check("the clock (after 2026)", time.time() > 1_767_225_600, "set the clock; windows go by it")


def _python() -> Check:
    return Check(
        f"Python {sys.version_info.major}.{sys.version_info.minor}",
        sys.version_info >= (3, 11),
        "use Python 3.11 or later",
    )


def _tor() -> Check:
    """Where tor is and whether it is one that AnonML can own. A missing one fails nothing on a single machine."""
    from anon.route.tor import find_tor

    try:
        program = find_tor()
    except AnonmlError as missing:
        return Check("tor", False, str(missing), needed=False)
    said = _version_of(program)
    found = re.search(r"(\d+)\.(\d+)\.(\d+)(\.\d+)?", said)
    if found is None:
        return Check(f"tor ({program})", False, "it does not say its version; install tor again", needed=False)
    recent = tuple(int(part) for part in found.groups()[:3]) >= OLDEST_TOR
    oldest = ".".join(map(str, OLDEST_TOR))
    return Check(f"tor {found[0]} ({program})", recent, f"update tor to {oldest} or later", needed=False)


def _version_of(program: Path) -> str:
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=20)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


PEER_CHECKS: tuple[Callable[[], Check], ...] = (
    _python,
    lambda: _parts("peer", PEER_PARTS, "install anonml again"),
    _clock,
    _storage,
    _cryptography,
    _token,
    _tor,
)
CHECKS: tuple[Callable[[], Check], ...] = (
    *PEER_CHECKS[:2],
    lambda: _parts("aggregator", AGGREGATOR_PARTS, f"`{install('aggregator')}` (only staff need it)"),
    *PEER_CHECKS[2:],
)


@app.command()
def main(as_json: Annotated[bool, typer.Option("--json", help="Print machine-readable JSON.")] = False) -> None:
    """Exit code 1 when something a peer needs does not work."""
    found = [check() for check in CHECKS]
    if as_json:
        import json

        sys.stdout.write(json.dumps([{"name": one.name, "ok": one.ok, "action": one.action} for one in found]) + "\n")
    else:
        for one in found:
            mark = "[green]ok[/]  " if one.ok else "[red]no[/]  "
            said = one.name if one.ok else f"{one.name}: {one.action}"
            Console().print(mark + escape(said), highlight=False, soft_wrap=True)
    if not all(one.ok for one in found if one.needed):
        raise typer.Exit(1)
