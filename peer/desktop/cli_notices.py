"""`anonml peer notify`: whether the desktop may tell the owner that something is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import typer
from attrs import evolve

from anon.kit.terminal.options import JsonOption, print_json
from anon.kit.terminal.printing import Terminal
from peer.desktop.notifications import notices_here
from peer.opening import DEFAULT_HOME, HomeOption, home_of
from peer.store.home import PeerHome

notify = typer.Typer(no_args_is_help=True, help="Notifications that something is, never what; off unless switched on.")


@notify.command()
def on(home: HomeOption = DEFAULT_HOME) -> None:
    """Let `run --stay`, `open` and `tray` notify you, an hour late or so: nobody learns from it when a packet left."""
    notices_here()
    _switched(home, wanted=True)


@notify.command()
def off(home: HomeOption = DEFAULT_HOME) -> None:
    """No notification any more."""
    _switched(home, wanted=False)


@notify.command()
def status(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Show if you are notified."""
    wanted = PeerHome(home).settings().notifications
    print_json({"on": wanted}) if as_json else Terminal().print("on" if wanted else "off")


@notify.command()
def test() -> None:
    """Show one notification now."""
    asyncio.run(notices_here()("This is how a notification looks. It never says more than a sentence like this."))
    Terminal().print("shown; if you saw nothing, look at your desktop's settings")


def _switched(home: Path, wanted: bool) -> None:
    peer_home = home_of(home)
    peer_home.write_settings(evolve(peer_home.settings(), notifications=wanted))
    Terminal().print(f"notifications are {'on' if wanted else 'off'}")
