"""`anonml support-bundle`: what somebody who helps needs to know, and nothing about anybody.

It holds versions, the findings of `doctor`, and the names of the settings that are set, never their values. For each
home it tells which of its known files are there, and whether its databases are whole. It tells how many rows their
tables have, in steps of 50. No path, no name of a machine or user, no study, key, link or tag, no value and no name of
the owner's data. It is shown before it is written.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sqlite3
import zipfile
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated, Any

import typer

from anon.errors import Refused
from anon.kit.diagnosis.installation import CHECKS
from anon.kit.terminal.printing import Terminal, styled
from anon.machine.environment import is_set
from anon.storage.home import AGGREGATOR, is_peers
from anon.storage.private_files import new_private

app = typer.Typer(
    add_completion=False, help="Pack what a helper needs to know about this installation, and nothing about anybody."
)

SETTINGS = ("ANONML_PEER_HOME", "ANONML_AGGREGATOR_HOME", "ANONML_TOR", "ANONML_TORRC", "ANONML_PASSPHRASE",
            "ANONML_CRYPTO")
KNOWN_FILES = (
    "aggregator.sqlite", "signing.key", "onion.key", "lock", "desk.link", "metrics.token", "aggregator.moved",
    "peer.sqlite", "data.sqlite",
)
COUNTED = ("aggregator.sqlite", "peer.sqlite")
"""Databases of our own tables. The owner's data (`data.sqlite`) are not looked into: their tables are the owner's."""
STEP = 50
_PATH = re.compile(r"(?:[A-Za-z]:)?(?:[/\\][^\s/\\()]+)+|~\S*")


def contents(homes: tuple[Path, ...]) -> dict[str, str]:
    """The bundle: texts by file name."""
    parts: dict[str, Any] = {
        "versions.json": _versions(),
        "doctor.json": _doctor(),
        "settings.json": {name: is_set(name) for name in SETTINGS},
        "homes.json": [_home(home) for home in homes if home.is_dir()],
    }
    return {name: json.dumps(part, indent=1, sort_keys=True) + "\n" for name, part in parts.items()}


def write(bundle: Mapping[str, str], target: Path) -> None:
    """Write it as a ZIP file of mode 0600. Raises `Refused` when the file exists."""
    if target.exists():
        raise Refused(f"{target}: already exists; name a new file")
    with new_private(target) as handle, zipfile.ZipFile(handle, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in bundle.items():
            packed.writestr(zipfile.ZipInfo(name), text)


def _versions() -> dict[str, str]:
    versions = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "release": re.sub(r"[^0-9.].*", "", platform.release()),
        "machine": platform.machine(),
        "sqlite": sqlite3.sqlite_version,
    }
    for name in ("anonml", *_needed()):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def _needed() -> list[str]:
    try:
        named = requires("anonml") or []
    except PackageNotFoundError:
        return []
    return sorted({re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0].lower() for requirement in named} - {"anonml"})


def _doctor() -> list[dict[str, object]]:
    findings = [check() for check in CHECKS]
    return [
        {"name": _without_paths(finding.name), "ok": finding.ok, "action": _without_paths(finding.action)}
        for finding in findings
    ]


def _without_paths(text: str) -> str:
    return _PATH.sub("PATH", text)


def _home(home: Path) -> dict[str, Any]:
    """One home by role; a peer's home has its aggregator's part inside it."""
    contents: dict[str, Any] = {"role": "peer" if is_peers(home) else "aggregator"}
    contents["files"] = [name for name in KNOWN_FILES if (home / name).exists()]
    contents["only the owner can read it"] = home.stat().st_mode & 0o077 == 0
    contents["databases"] = {name: _database(home / name) for name in COUNTED if (home / name).exists()}
    if is_peers(home) and (home / AGGREGATOR).is_dir():
        contents["aggregator"] = _home(home / AGGREGATOR)
    return contents


def _database(path: Path) -> dict[str, Any]:
    """Looked at read-only. Only table names of ours appear, and only counts in steps."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
        try:
            names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            plain = [name for name in names if re.fullmatch(r"[a-z_]+", name) and not name.startswith("sqlite_")]
            return {
                "whole": connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok",
                "version": connection.execute("PRAGMA user_version").fetchone()[0],
                "rows": {name: _coarse(connection, name) for name in plain},
                "phases": _phases(connection) if "studies" in plain else {},
            }
        finally:
            connection.close()
    except sqlite3.Error as error:
        return {"fault": type(error).__name__}


def _coarse(connection: sqlite3.Connection, table: str) -> str:
    count = int(connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0])
    return f"{count // STEP * STEP} or more" if count >= STEP else f"fewer than {STEP}"


def _phases(connection: sqlite3.Connection) -> dict[str, int]:
    columns = {row[1] for row in connection.execute("PRAGMA table_info(studies)")}
    if "phase" not in columns:
        return {}
    return dict(connection.execute("SELECT phase, count(*) FROM studies GROUP BY phase ORDER BY phase").fetchall())


def _default_homes() -> list[Path]:
    peers = os.environ.get("ANONML_PEER_HOME", "~/.anonml-peer")
    staffs = os.environ.get("ANONML_AGGREGATOR_HOME", "~/.anonml-aggregator")
    return [Path(peers).expanduser(), Path(staffs).expanduser()]


@app.command()
def main(
    file: Annotated[Path, typer.Argument(help="The ZIP file to write.")] = Path("anonml-support.zip"),
    home: Annotated[list[Path] | None, typer.Option(help="A home to look at; else the usual ones.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Write it without asking.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Only show what would be written.")] = False,
) -> None:
    """Show everything that the bundle would hold, ask, and write it. Nothing is sent anywhere."""
    bundle, console = contents(tuple(home or _default_homes())), Terminal()
    for name, text in bundle.items():
        console.print(styled("[bold]{name}[/]", name=name))
        console.print(text, soft_wrap=True)
    if show:
        return
    if not yes and not typer.confirm(f"Write this into {file}?", default=False):
        raise Refused("not written")
    write(bundle, file)
    console.print(f"{file} written; send it to whom you like")
