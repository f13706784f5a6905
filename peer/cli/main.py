"""`anonml peer ...`: keep your data, join studies, see what was sent. Every command that reads takes --json."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from anon.errors import Refused
from anon.ldp import format_epsilon, nano
from anon.terminal.foreign import short
from anon.terminal.options import JsonOption, StudyOption, finished, print_json
from anon.terminal.wiring import wiring_of
from anon.wire.invite import parse_invite
from peer.app import PeerApp
from peer.cli import equivocation as proof_commands
from peer.cli import home as own_commands
from peer.cli import pause as pause_commands
from peer.cli import taking_back as taking_back_commands
from peer.cli.show import (
    missing_json,
    receipt_json,
    sheet_json,
    show_receipts,
    show_sheet,
    show_status,
    status_json,
)
from peer.cli.steps import with_command
from peer.data.readiness import OwnData, own_data
from peer.network.routes import Routes
from peer.opening import (
    DEFAULT_HOME,
    NO_STUDIES,
    HomeOption,
    LinkArgument,
    RouteOption,
    agreed,
    home_of,
    open_peer,
    pick,
    routes_of,
)
from peer.rules.consent import ConsentSheet

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Keep your data, join studies, see what was sent.")
app.command("import")(own_commands.import_data)
app.command()(own_commands.tables)


@app.command()
def look(
    link: LinkArgument,
    queries: Annotated[bool, typer.Option("--queries", help="Also print every query over your data.")] = False,
    home: HomeOption = DEFAULT_HOME,
    route: RouteOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Fetch and verify a study and show what it asks and costs. Nothing from your data leaves."""
    routes, invite = routes_of(route, home), parse_invite(link)
    sheet = finished(open_peer(home, routes).look(invite), routes.close)
    own = own_data(home_of(home).data_path, sheet.tables)
    print_json(sheet_json(sheet, own)) if as_json else show_sheet(sheet, own, home, queries)


@app.command()
def join(
    link: LinkArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Consent without being asked (you have read `look`).")] = False,
    epsilon: Annotated[
        float | None, typer.Option(help="The most epsilon you agree to; the study's own if left out.")
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    route: RouteOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Show a study, ask you, and on a yes reserve its epsilon and store your enrolment. `run` sends it."""
    routes, invite = routes_of(route, home), parse_invite(link)
    peer = open_peer(home, routes)
    sheet = finished(peer.look(invite), routes.close)
    own = own_data(home_of(home).data_path, sheet.tables)
    if not as_json:
        show_sheet(sheet, own, home, queries=False)
    if sheet.objections:
        raise Refused("not joined: " + "; ".join(map(with_command, sheet.objections)))
    if not yes:
        _ask(sheet, own, Console(stderr=as_json))
    approved = nano(epsilon) if epsilon is not None else sheet.epsilon
    consent = finished(peer.join(invite, approved), routes.close)
    key = peer.study_key(consent.study).hex()
    if as_json:
        reserved = consent.epsilon / 1e9
        study = consent.study.hex()
        print_json({"study": study, "epsilon_reserved": reserved, "key": key, "missing": missing_json(own)})
        return
    Console().print(f"joined; epsilon {format_epsilon(consent.epsilon)} is reserved. Now: anonml peer run")
    if sheet.admission == "allow-list":
        Console().print(f"first give staff your key for this study, to put on their list: {key}", highlight=False)


def _ask(sheet: ConsentSheet, own: OwnData, console: Console) -> None:
    """Return on a yes. Raises `Refused` on a no."""
    unready = bool(own.warnings) and not agreed("Your data lacks what is named above. Go on all the same?", console)
    if unready or not agreed("Do you consent?", console):
        raise Refused("you declined; nothing was stored or sent")


@app.command()
def key(link: LinkArgument, home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Your key in a study that admits by a list, for staff to put on it: after `join`, before `run` sends it."""
    shown = open_peer(home).study_key(parse_invite(link).study).hex()
    print_json({"key": shown}) if as_json else Console().print(shown, highlight=False)


@app.command()
def run(
    context: typer.Context,
    once: Annotated[bool, typer.Option(help="Stop when nothing is due within --max-seconds.")] = False,
    max_seconds: Annotated[float | None, typer.Option(help="Stop after so many seconds.")] = None,
    stay: Annotated[bool, typer.Option("--stay", help="Go on without studies too, quietly: see `autostart`.")] = False,
    home: HomeOption = DEFAULT_HOME,
    route: RouteOption = "auto",
) -> None:
    """Do what is due, at its own random time, until stopped (Ctrl-C). Safe to stop or kill at any moment.

    Without --once it goes on until your studies have ended, with --stay also then.
    """
    if stay:
        wiring_of(context).one("run --stay")(home, route, limited=once or max_seconds is not None)
        return
    try:
        _run(home, route, max_seconds, once)
    except KeyboardInterrupt:
        Console().print("stopped; nothing is lost: `anonml peer run` goes on from here", highlight=False)


def _run(home: Path, route: str, max_seconds: float | None, once: bool) -> None:
    routes = routes_of(route, home)
    peer = open_peer(home, routes)
    if not peer.store.active():
        ended = "all your studies have ended; nothing is left to do" if peer.status() else NO_STUDIES
        Console().print(ended, highlight=False)
        return
    finished(_connected(peer, routes, max_seconds, once), routes.close)
    show_status(peer)


async def _connected(peer: PeerApp, routes: Routes, max_seconds: float | None, once: bool) -> None:
    """Connect first, so that an owner who is watching hears at once when it cannot be; later it is tried again."""
    await routes.prepare(peer.store.study(study).invite.address for study in peer.store.active())
    await _watch(peer, max_seconds, once)


async def _watch(peer: PeerApp, max_seconds: float | None, once: bool) -> None:
    running = asyncio.create_task(peer.run(max_seconds, once))
    seen: dict[bytes, str] = {}
    console = Console()
    while not running.done():
        for status in peer.status():
            if seen.get(status.study) != str(status.state):
                seen[status.study] = str(status.state)
                console.print(
                    f"{status.study.hex()[:8]} {short(status.title)}: [bold]{status.state}[/]", highlight=False
                )
        if not once and seen and not peer.store.active():
            running.cancel()
        await asyncio.wait({running}, timeout=0.5)
    with suppress(asyncio.CancelledError):
        await running


@app.command()
def leave(study: StudyOption = "", home: HomeOption = DEFAULT_HOME, route: RouteOption = "auto") -> None:
    """Leave a study. Before its enrolment closes you are struck off the roster; later nothing more is sent."""
    routes = routes_of(route, home)
    peer = open_peer(home, routes)
    chosen = pick(peer, study, active=True)
    finished(peer.leave(chosen))
    if finished(peer.deliver_withdrawal(chosen), routes.close) == "leaving":
        Console().print("the aggregator has not answered yet: `anonml peer run` tells it before enrolment closes")
    show_status(peer)


@app.command()
def status(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Your studies and where they stand."""
    peer = open_peer(home)
    print_json([status_json(status) for status in peer.status()]) if as_json else show_status(peer)


@app.command()
def receipts(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """The released packets, one by one, with their cost: never their content."""
    peer = open_peer(home)
    released = peer.receipts()
    costs = {study: peer.accounting(study) for study in dict.fromkeys(receipt.study for receipt in released)}
    print_json([receipt_json(receipt, costs[receipt.study]) for receipt in released]) if as_json else show_receipts(
        released, costs
    )


app.command()(pause_commands.pause)
app.command()(pause_commands.resume)
app.command()(own_commands.budget)
app.command()(own_commands.predict)


app.command()(proof_commands.evidence)
app.command()(proof_commands.fingerprint)
app.command()(own_commands.passphrase)
app.command()(own_commands.backup)
app.command()(own_commands.restore)
app.command("begin-anew")(own_commands.begin_anew)
app.command()(taking_back_commands.delete)
app.command()(taking_back_commands.erase)

