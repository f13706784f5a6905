"""What the commands of `anonml peer` share: options, opening a home, naming a study, asking the owner."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console

from anon.connecting import on_one_line
from anon.errors import Refused
from peer.app import PeerApp
from peer.glance import StudyStatus
from peer.home import PeerHome
from peer.routes import Routes
from peer.session import LAST

T = TypeVar("T")

DEFAULT_HOME = Path(os.environ.get("ANONML_PEER_HOME", "~/.anonml-peer")).expanduser()
NO_STUDIES = "no studies yet: `anonml peer join LINK`"
HomeOption = Annotated[Path, typer.Option("--home", help="Your peer's directory (data, ledger, keys).")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print machine-readable JSON.")]
RouteOption = Annotated[
    str,
    typer.Option(
        "--route",
        help="auto (Tor for onion addresses, direct for this machine's own), tor, direct, or socks://HOST:PORT.",
    ),
]
LinkArgument = Annotated[str, typer.Argument(help="The invite link that staff gave you.")]
StudyOption = Annotated[str, typer.Option("--study", help="Study id or its beginning; not needed when there is one.")]


def finished(work: Coroutine[Any, Any, T], routes: Routes | None = None) -> T:
    """The result of work that waits. The routes that it took are closed with it."""

    async def whole() -> T:
        try:
            return await work
        finally:
            if routes is not None:
                await routes.close()

    return asyncio.run(whole())


def print_json(value: object) -> None:
    """One line of JSON on standard output."""
    sys.stdout.write(json.dumps(value, sort_keys=True) + "\n")


def routes_of(text: str, home: Path) -> Routes:
    """The routes that `--route` names, with this home's own tor. Raises `Refused`."""
    return Routes(text, home / "tor", on_one_line)


def home_of(path: Path) -> PeerHome:
    """The home there, made if there is none. Raises `Refused` when it cannot be."""
    place = PeerHome(path)
    place.prepare()
    return place


def existing_home(path: Path) -> PeerHome:
    """The home there, not made if there is none. Raises `Refused` when it cannot be one."""
    return home_of(path) if path.exists() else PeerHome(path)


def open_peer(path: Path, routes: Routes | None = None) -> PeerApp:
    """The peer of a home; asks for its passphrase when it has one. Without routes it cannot fetch. Raises `Refused`."""
    place = home_of(path)
    passphrase = None
    if place.settings().salt:
        passphrase = os.environ.get("ANONML_PASSPHRASE") or secret("passphrase: ")
    taken = routes_of("auto", path) if routes is None else routes
    return PeerApp(place, lambda: taken, time.time, os.urandom, passphrase)


def secret(prompt: str) -> str:
    """What the owner types, unseen. Raises `Refused` when nobody is there."""
    try:
        typed = getpass.getpass(prompt)
    except EOFError:
        typed = ""
    if not typed:
        raise Refused("no passphrase was given; type one, or set ANONML_PASSPHRASE")
    return typed


def agreed(question: str, console: Console) -> bool:
    """Whether the owner types y or yes; n, no and nothing are a no. Raises `Refused` when nobody is there."""
    while True:
        try:
            answer = console.input(f"{question} \\[y/N]: ").strip().lower()
        except EOFError:
            raise Refused("nobody answered; nothing was stored or sent (--yes consents without being asked)") from None
        if answer in ("y", "yes", "n", "no", ""):
            return answer in ("y", "yes")
        console.print("please answer y (yes) or n (no)")


def pick(peer: PeerApp, prefix: str, active: bool = False) -> bytes:
    """The one study (of those not over, if `active`) whose id begins so. Raises `Refused` and lists them."""
    known = peer.status()
    among = [one for one in known if not active or one.state not in LAST]
    found = [one for one in among if one.study.hex().startswith(prefix.lower())]
    if len(found) == 1:
        return found[0].study
    if not among:
        raise Refused("all your studies have ended (`anonml peer status`)" if known else NO_STUDIES)
    if not found:
        raise Refused(f"none of your studies' ids begins with {prefix!r}; yours are: {_listed(among)}")
    raise Refused(f"which study? Name it by the beginning of its id: {_listed(found)}")


def _listed(studies: list[StudyStatus]) -> str:
    return "; ".join(f"{one.study.hex()[:8]} {one.title} ({one.state})" for one in studies)
