"""The common parts of the commands of `anonml peer`: options, opening a home, naming a study, asking the owner."""

from __future__ import annotations

import getpass
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anon.errors import Refused
from anon.kit.terminal.hints import noting
from anon.kit.terminal.options import picked
from anon.kit.terminal.printing import Terminal
from anon.kit.terminal.progress import on_one_line
from anon.machine import environment
from peer.rules.lifecycle import LAST
from peer.store.home import PeerHome
from peer.view import HomeView, made_ready

if TYPE_CHECKING:
    from peer.app import PeerApp
    from peer.network.routes import Routes

# Connections take time to import: a command that only shows does without.

START, WATCH, PRIVACY, DEVICES = "Start", "Watch", "Privacy", "Devices"
"""The groups of commands in `anonml peer --help`."""

DEFAULT_HOME = Path(os.environ.get("ANONML_PEER_HOME", "~/.anonml-peer")).expanduser()
NO_STUDIES = "no studies yet: `anonml peer join LINK`"
HomeOption = Annotated[
    Path, typer.Option("--home", callback=noting("peer"), help="Your peer's directory (data, ledger, keys).")
]
RouteOption = Annotated[
    str,
    typer.Option(
        "--route",
        help="auto (Tor for onion addresses, direct for this machine's own), tor, direct, or socks://HOST:PORT.",
    ),
]
LanguageOption = Annotated[str, typer.Option(help="Such as de: the study's own texts in it, where it has them.")]
LinkArgument = Annotated[str, typer.Argument(help="The invite link that staff gave you.")]


def routes_of(text: str, home: Path) -> Routes:
    """The routes that `--route` names, with this home's own tor. Raises `Refused`."""
    from peer.network.routes import Routes

    return Routes(text, home / "tor", on_one_line)


def home_of(path: Path) -> PeerHome:
    """The home there, made if there is none. Raises `Refused` when it cannot be."""
    peer_home = PeerHome(path)
    peer_home.prepare()
    return peer_home


def existing_home(path: Path) -> PeerHome:
    """The home there, not made if there is none. Raises `Refused` when it cannot be one."""
    return home_of(path) if path.exists() else PeerHome(path)


def open_peer(path: Path, routes: Routes | None = None) -> PeerApp:
    """The peer of a home; asks for its passphrase when it has one. Without routes it cannot fetch. Raises `Refused`."""
    from anon.machine.clock import elapsed_seconds
    from peer.app import PeerApp

    peer_home = home_of(path)
    passphrase = None
    if peer_home.settings().salt:
        passphrase = environment.secret(environment.PASSPHRASE) or secret("passphrase: ")
    taken = routes_of("auto", path) if routes is None else routes
    return PeerApp(peer_home, lambda: taken, time.time, os.urandom, passphrase, elapsed=elapsed_seconds)


def open_view(path: Path) -> HomeView:
    """The view of a home, made if there is none; it asks for no passphrase. Raises `Refused`."""
    peer_home = home_of(path)
    made_ready(peer_home)
    return HomeView(peer_home, time.time, os.urandom)


def secret(prompt: str) -> str:
    """The owner's input, unseen. Raises `Refused` when nobody is there."""
    try:
        typed = getpass.getpass(prompt)
    except EOFError:
        typed = ""
    if not typed:
        raise Refused("no passphrase was given; type one, or set ANONML_PASSPHRASE")
    return typed


NOBODY = "nobody answered; nothing was stored or sent (--yes consents without being asked)"


def agreed(question: str, console: Terminal, nobody: str = NOBODY) -> bool:
    """True if the owner types y or yes; n, no and nothing are a no. Raises `Refused` when nobody is there."""
    while True:
        try:
            answer = console.input(f"{question} [y/N]: ").strip().lower()
        except EOFError:
            raise Refused(nobody) from None
        if answer in ("y", "yes", "n", "no", ""):
            return answer in ("y", "yes")
        console.print("please answer y (yes) or n (no)")


def pick(peer: HomeView, prefix: str, active: bool = False) -> bytes:
    """The one study (of those not over, if `active`) whose id begins so. Raises `Refused` and lists them."""
    known = peer.status()
    chosen = [status for status in known if not active or status.state not in LAST]
    among = {status.study: f"{status.title} ({status.state})" for status in chosen}
    return picked(among, prefix, "all your studies have ended (`anonml peer status`)" if known else NO_STUDIES)
