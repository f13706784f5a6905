"""`anonml peer autostart`, `notify` and `tray`, and `run --stay`: the peer among a desktop's other programs."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from anon.errors import Refused
from peer.cli.options import (
    DEFAULT_HOME,
    HomeOption,
    JsonOption,
    RouteOption,
    finished,
    home_of,
    open_peer,
    print_json,
    routes_of,
)
from peer.desktop.autostart import UNATTENDED, demand_sensible, standing, switch_off, switch_on
from peer.desktop.login_item import LoginItem, login_item, own_program
from peer.desktop.places import places_here
from peer.desktop.reminding import reminding
from peer.desktop.resident import stay
from peer.home import PeerHome
from peer.routes import Routes
from peer.web.engine import Engine

autostart = typer.Typer(no_args_is_help=True, help="Start your peer when you log in, or not any more.")
AsRootOption = Annotated[bool, typer.Option("--as-root", help="You are root and mean root's own peer.")]


@autostart.command()
def on(
    home: HomeOption = DEFAULT_HOME, route: RouteOption = "auto", as_root: AsRootOption = False
) -> None:
    """Start `anonml peer run --stay` at every login, with this home and route (Linux: at once, where systemd runs)."""
    Routes(route, home / "tor")  # refuses a name that is none before it is written anywhere
    demand_sensible(_user(), as_root, _under_passphrase(home))
    place = switch_on(_item(home, route), places_here())
    Console().print(f"on: your peer starts when you log in ({place})", highlight=False, soft_wrap=True)


@autostart.command()
def off(home: HomeOption = DEFAULT_HOME) -> None:
    """Remove what `on` wrote, and nothing else. What it started is ended; your studies and data stay as they are."""
    removed = switch_off(_item(home, "auto").home, places_here())
    for place in removed:
        Console().print(f"off: removed {place}", highlight=False, soft_wrap=True)
    if not removed:
        Console().print("off: nothing of this command was there")


@autostart.command()
def status(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Whether a peer of yours starts at login, and what would keep it from it."""
    item = _item(home, "auto")
    found = standing(places_here())
    stopped = any(one.home == item.home for one in found) and _under_passphrase(home)
    if as_json:
        print_json({
            "on": any(one.home == item.home for one in found),
            "places": [{"place": one.place, "home": one.home} for one in found],
            "hindered": stopped,
        })
        return
    console = Console()
    for one in found:
        console.print(f"on: {one.home} ({one.place})", highlight=False, soft_wrap=True, markup=False)
    if not found:
        console.print("off: none of your peers starts at login; `anonml peer autostart on`", highlight=False)
    if stopped:
        console.print(f"but {UNATTENDED}", highlight=False, soft_wrap=True)


def run_and_stay(home: Path, route: str, limited: bool) -> None:
    """Run until told to end; see `peer.desktop.resident`. Raises `Refused` together with a limit."""
    if limited:
        raise Refused("--stay goes on until it is told to end; leave out --once and --max-seconds")
    routes = routes_of(route, home)
    peer = open_peer(home, routes)

    async def beside(engine: Engine) -> None:
        async with reminding(peer, home_of(home), engine, time.time, os.urandom):
            await asyncio.Event().wait()

    finished(stay(peer, beside), routes)


def _item(home: Path, route: str) -> LoginItem:
    program = own_program(sys.executable)
    return login_item(program, home, route, os.environ)


def _user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 1


def _under_passphrase(home: Path) -> bool:
    return home.exists() and bool(PeerHome(home).settings().salt)
