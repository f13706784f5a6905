"""`anonml peer autostart` and `run --stay`: the peer among a desktop's other programs."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from anon.errors import Refused
from anon.kit.terminal.options import JsonOption, finished, print_json
from anon.kit.terminal.printing import Terminal
from peer.desktop import cli_notices, cli_surfaces
from peer.desktop.login.autostart import UNATTENDED, demand_sensible, standing, switch_off, switch_on
from peer.desktop.login.item import LoginItem, login_item, own_program
from peer.desktop.login.places import places_here
from peer.desktop.notifier import reminding
from peer.desktop.resident import stay
from peer.network.routes import Routes
from peer.opening import DEFAULT_HOME, DEVICES, HomeOption, RouteOption, home_of, open_peer, routes_of
from peer.run.supervisor import Supervisor
from peer.store.home import PeerHome

autostart = typer.Typer(no_args_is_help=True, help="Start your peer when you log in, or not any more.")
AsRootOption = Annotated[bool, typer.Option("--as-root", help="You are root and mean root's own peer.")]


def join(app: typer.Typer) -> None:
    """Add the desktop's commands to those of `anonml peer`."""
    app.add_typer(autostart, name="autostart", rich_help_panel=DEVICES)
    app.add_typer(cli_notices.notify, name="notify", rich_help_panel=DEVICES)
    app.command(rich_help_panel=DEVICES)(cli_surfaces.tray)
    app.command(rich_help_panel=DEVICES)(cli_surfaces.window)


@autostart.command()
def on(
    home: HomeOption = DEFAULT_HOME, route: RouteOption = "auto", as_root: AsRootOption = False
) -> None:
    """Start `anonml peer run --stay` at every login, with this home and route (Linux: at once, where systemd runs)."""
    Routes(route, home / "tor")  # refuses a name that is none before it is written anywhere
    demand_sensible(_user(), as_root, _under_passphrase(home))
    place = switch_on(_item(home, route), places_here())
    Terminal().print(f"on: your peer starts when you log in ({place})", soft_wrap=True)


@autostart.command()
def off(home: HomeOption = DEFAULT_HOME) -> None:
    """Remove what `on` wrote, and nothing else. The started program is ended; your studies and data stay as they
    are."""
    removed = switch_off(_item(home, "auto").home, places_here())
    for place in removed:
        Terminal().print(f"off: removed {place}", soft_wrap=True)
    if not removed:
        Terminal().print("off: nothing of this command was there")


@autostart.command()
def status(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Show if a peer of yours starts at login, and what would keep it from that."""
    item = _item(home, "auto")
    items = standing(places_here())
    stopped = any(login.home == item.home for login in items) and _under_passphrase(home)
    if as_json:
        print_json({
            "on": any(login.home == item.home for login in items),
            "places": [{"place": login.place, "home": login.home} for login in items],
            "hindered": stopped,
        })
        return
    console = Terminal()
    for login in items:
        console.print(f"on: {login.home} ({login.place})", soft_wrap=True)
    if not items:
        console.print("off: none of your peers starts at login; `anonml peer autostart on`")
    if stopped:
        console.print(f"but {UNATTENDED}", soft_wrap=True)


def run_and_stay(home: Path, route: str, limited: bool) -> None:
    """Run until told to end; see `peer.desktop.resident`. Raises `Refused` together with a limit."""
    if limited:
        raise Refused("--stay goes on until it is told to end; leave out --once and --max-seconds")
    routes = routes_of(route, home)
    peer = open_peer(home, routes)

    async def beside(supervisor: Supervisor) -> None:
        async with reminding(peer, home_of(home), supervisor, time.time, os.urandom):
            await asyncio.Event().wait()

    finished(stay(peer, beside), routes.close)


def _item(home: Path, route: str) -> LoginItem:
    program = own_program(sys.executable)
    return login_item(program, home, route, os.environ)


def _user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 1


def _under_passphrase(home: Path) -> bool:
    return home.exists() and bool(PeerHome(home).settings().salt)
