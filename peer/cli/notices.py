"""`anonml peer notify`: whether the desktop may tell the owner that something is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import typer
from attrs import evolve
from rich.console import Console

from peer.cli.options import DEFAULT_HOME, HomeOption, JsonOption, home_of, print_json
from peer.desktop.notices import notices_here
from peer.home import PeerHome

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
    """Whether you are notified."""
    wanted = PeerHome(home).settings().notifications
    print_json({"on": wanted}) if as_json else Console().print("on" if wanted else "off")


@notify.command()
def test() -> None:
    """Show one notification now."""
    asyncio.run(notices_here()("This is how a notification looks. It never says more than a sentence like this."))
    Console().print("shown; if you saw nothing, look at your desktop's settings", highlight=False)


def _switched(home: Path, wanted: bool) -> None:
    place = home_of(home)
    place.write_settings(evolve(place.settings(), notifications=wanted))
    Console().print(f"notifications are {'on' if wanted else 'off'}")
