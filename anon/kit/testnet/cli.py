"""`anonml testnet ...`: a private Tor network on this machine, to try everything on. It protects nobody."""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from attrs import asdict

from anon.kit.terminal.options import JsonOption, print_json
from anon.kit.terminal.printing import Terminal
from anon.kit.testnet import background
from anon.kit.testnet.layout import literal
from anon.kit.testnet.memory import Memory, memory_of
from anon.kit.testnet.owner import is_running, own
from anon.kit.testnet.state import NetworkState, NetworkStatement, default_folder

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="A private Tor network on this machine, to try everything on."
)

FolderOption = Annotated[Path | None, typer.Option("--folder", help="Where it keeps its files; one network each.")]


@app.command()
def up(
    folder: FolderOption = None,
    address: Annotated[str, typer.Option(help="Address of this machine that the relays listen on.")] = "127.0.0.1",
    foreground: Annotated[bool, typer.Option("--foreground", help="Stay, and end the network with Ctrl-C.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Start one authority, four relays and a client; return once an onion service has answered.

    Its output can be given to eval: every tor that AnonML then starts belongs to this network, which runs on in
    the background until `anonml testnet down`.
    """
    state = _state(folder)
    if not foreground:
        if not as_json and not state.is_owned():
            Terminal(stderr=True).print("starting a private Tor network; it takes about 15 seconds")
        _say(background.start(state, literal(address)), as_json, foreground)
        return
    with suppress(asyncio.CancelledError, KeyboardInterrupt):
        asyncio.run(own(state, literal(address), lambda standing: _say(standing, as_json, foreground)))


def _say(standing: NetworkStatement, as_json: bool, foreground: bool) -> None:
    if as_json:
        print_json(asdict(standing))
        return
    ends = "Ctrl-C" if foreground else "`anonml testnet down`"
    _print(f"export ANONML_TORRC={shlex.quote(standing.torrc)}")
    aside = Terminal(stderr=True)  # so that the line above can be given to eval
    ready = f"ready after {standing.seconds:.1f} s: {standing.relays} relays and a client; {ends} ends it"
    aside.print(f"{ready}\nthe client, for --route: {standing.socks}")


@app.command()
def status(folder: FolderOption = None, as_json: JsonOption = False) -> None:
    """Show if a network runs, since when, and how much memory it holds (proportional and resident)."""
    state = _state(folder)
    standing = state.told() if state.is_owned() else None
    if standing is None:
        print_json({"running": False}) if as_json else _print("none runs: `anonml testnet up`")
        return
    memory = memory_of(standing.pids)
    alive = sum(map(is_running, standing.pids))
    if as_json:
        held = asdict(memory) if memory else dict.fromkeys(("pss", "rss", "peak"))
        print_json({"running": True, "processes": alive, **asdict(standing), **held})
        return
    lasted = _duration(time.time() - standing.since)
    _print(
        f"{standing.phase}: {standing.relays} relays, {alive} processes, for {lasted}",
        f"memory: {_shown(memory)}",
        f"owner: process {standing.pid}, folder {state.folder}",
        f"ANONML_TORRC={standing.torrc}",
        f"client: {standing.socks}",
    )


@app.command()
def down(folder: FolderOption = None, as_json: JsonOption = False) -> None:
    """End the network and all its processes, and remove its files."""
    ended = background.stop(_state(folder))
    if as_json:
        print_json({"ended": ended is not None})
    else:
        _print("ended; no process is left" if ended else "none ran")


def _state(folder: Path | None) -> NetworkState:
    return NetworkState((folder or default_folder()).absolute())


def _shown(memory: Memory | None) -> str:
    if memory is None:
        return "unknown on this system"
    return f"{memory.pss / 1e6:.0f} MB (resident sizes add up to {memory.rss / 1e6:.0f} MB)"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _print(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
