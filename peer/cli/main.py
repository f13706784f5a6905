"""`anonml peer ...`: keep your data, join studies, see what was sent. Every command that reads takes --json.

Help shows the commands in four groups; within a group they stand in the order of this file.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from attrs import evolve

from anon.errors import Conflict, Refused
from anon.kit.terminal.foreign import short
from anon.kit.terminal.options import JsonOption, StudyOption, finished, local_time, print_json
from anon.kit.terminal.printing import Terminal, styled
from anon.kit.terminal.wiring import wiring_of
from anon.ldp import format_epsilon, nano
from anon.machine.guard import Guard, disk_fault
from anon.protocols.cost_words import Amount, epsilon_of
from anon.wire.invite import parse_invite
from peer.cli import equivocation as proof_commands
from peer.cli import home as own_commands
from peer.cli import pause as pause_commands
from peer.cli.coming import KEEP_RUNNING, coming
from peer.cli.show import (
    charge_json,
    closed,
    is_closed,
    missing_json,
    receipt_json,
    sheet_json,
    show_receipts,
    show_sheet,
    show_status,
    status_json,
)
from peer.cli.steps import with_command
from peer.opening import (
    DEFAULT_HOME,
    DEVICES,
    NO_STUDIES,
    PRIVACY,
    START,
    WATCH,
    HomeOption,
    LanguageOption,
    LinkArgument,
    RouteOption,
    agreed,
    home_of,
    open_peer,
    open_view,
    pick,
    routes_of,
)
from peer.rules.lifecycle import LAST
from peer.rules.promise import approved_less
from peer.store.store import REJOINABLE

if TYPE_CHECKING:
    from peer.app import PeerApp
    from peer.data.readiness import OwnData
    from peer.network.routes import Routes
    from peer.rules.consent import ConsentSheet
    from peer.store.summaries import StudyStatus
    from peer.view import HomeView

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Keep your data, join studies, see what was sent.")
app.command("import", rich_help_panel=START)(own_commands.import_data)


@app.command(rich_help_panel=START)
def look(
    link: LinkArgument,
    queries: Annotated[bool, typer.Option("--queries", help="Also print every query over your data.")] = False,
    language: LanguageOption = "",
    home: HomeOption = DEFAULT_HOME,
    route: RouteOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Fetch and verify a study and show what it asks and costs. Nothing from your data leaves."""
    routes, invite = routes_of(route, home), parse_invite(link)
    peer = open_peer(home, routes)
    known = _status(peer, invite.study)
    state = known.state if known is not None else None
    member = known if known is not None and known.state not in LAST else None
    if state is not None and not as_json:
        Terminal().print(f"You have joined this study already: {state}. `anonml peer status` shows more.")
    sheet = finished(peer.look(invite, language), routes.close)
    own = _own(sheet, home, asked=True)
    if as_json:
        print_json(sheet_json(sheet, own) | {"joined": state, "closed": is_closed(sheet)})
        return
    if is_closed(sheet) and member is None:
        Terminal().print(f"This study is {closed(sheet)}.")
    show_sheet(sheet, own, home, queries, member=member)


@app.command(rich_help_panel=START)
def join(
    link: LinkArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Consent without being asked (you have read `look`).")] = False,
    epsilon: Annotated[
        float | None, typer.Option(help="The most epsilon you agree to; the study's own if left out.")
    ] = None,
    language: LanguageOption = "",
    home: HomeOption = DEFAULT_HOME,
    route: RouteOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Show a study, ask you, and on a yes reserve its epsilon and store your enrolment. `run` sends it."""
    routes, invite = routes_of(route, home), parse_invite(link)
    peer = open_peer(home, routes)
    known = _status(peer, invite.study)
    if known is not None and known.state not in REJOINABLE:
        raise Conflict(f"you have joined this study already: {known.state}. `anonml peer status` shows more")
    sheet = finished(peer.look(invite, language), routes.close)
    if is_closed(sheet):
        raise Refused(f"not joined: this study is {closed(sheet)}")
    own = _own(sheet, home, asked=not yes)
    if not as_json:
        show_sheet(sheet, own, home, queries=False, code=not yes)
    if sheet.objections:
        raise Refused("not joined: " + "; ".join(map(with_command, sheet.objections)))
    if not yes:
        _ask(sheet, own, Terminal(stderr=as_json))
    if epsilon is not None and nano(epsilon) < (declared := epsilon_of(sheet.manifest)):
        raise Refused(f"not joined: {approved_less(nano(epsilon), declared)}")
    consent = finished(peer.join(invite, sheet.epsilon), routes.close)
    key = peer.study_key(consent.study).hex()
    if as_json:
        reserved, cost = epsilon_of(sheet.manifest) / 1e9, charge_json(consent.charge)
        told = {"study": consent.study.hex(), "epsilon_reserved": reserved, "charge": cost}
        print_json(told | {"key": key, "missing": missing_json(own)})
        return
    held = Amount(consent.charge.budget, consent.charge.amount, sheet.manifest)
    Terminal().print(f"joined; epsilon {format_epsilon(held.epsilon)} is reserved: {held.odds}.", soft_wrap=True)
    Terminal().print("One thing to do: keep `anonml peer run` running, or you are not enrolled.")
    Terminal().print(KEEP_RUNNING)
    if sheet.admission == "allow-list":
        Terminal().print(f"first give staff your key for this study, to put on their list: {key}")


def _status(peer: HomeView, study: bytes) -> StudyStatus | None:
    """Where a study stands that was joined here; None for one that was not."""
    return next((status for status in peer.status() if status.study == study), None)


def _own(sheet: ConsentSheet, home: Path, asked: bool) -> OwnData:
    """Gaps of the owner's data. Where the owner is `asked`, also what an evaluation tells: values that would count as
    missing, and too few records. Shown, never sent.

    The study's queries take a time that may depend on the data. An owner who is asked answers at a time of their own.
    A yes that was given before is stored without evaluating: else the time of the enrolment would tell of the data.
    """
    from peer.data.evaluate import LOOK_SECONDS, evaluated, records_in, uncounted
    from peer.data.people import people_held
    from peer.data.readiness import own_data
    from peer.rules.promise import too_few_records

    path = home_of(home).data_path
    own = own_data(path, sheet.tables)
    if not asked:
        return own
    found = evaluated(sheet.manifest, path, LOOK_SECONDS)
    few = too_few_records(sheet.manifest, records_in(found))
    return evolve(own, uncounted=uncounted(sheet.manifest, found), few=few, people=people_held(path, sheet.tables))


def _ask(sheet: ConsentSheet, own: OwnData, console: Terminal) -> None:
    """Return on a yes. Raises `Refused` on a no."""
    unready = bool(own.warnings) and not agreed("Your data lacks what is named above. Go on all the same?", console)
    if unready or not agreed("Do you consent?", console):
        raise Refused("you declined; nothing was stored or sent")


@app.command(rich_help_panel=START)
def key(link: LinkArgument, home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Your key in a study that admits by a list, for staff to put on it: after `join`, before `run` sends it."""
    shown = open_peer(home).study_key(parse_invite(link).study).hex()
    print_json({"key": shown}) if as_json else Terminal().print(shown)


@app.command(rich_help_panel=START)
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
        Terminal().print("stopped; nothing is lost: `anonml peer run` goes on from here")


def _run(home: Path, route: str, max_seconds: float | None, once: bool) -> None:
    view = open_view(home)
    active, known = view.store.active(), view.status()
    view.close()
    if not active:  # nothing that connects is loaded
        ended = "all your studies have ended; nothing is left to do" if known else NO_STUDIES
        Terminal().print(ended)
        return
    routes = routes_of(route, home)
    peer = open_peer(home, routes)
    finished(_connected(peer, routes, max_seconds, once), routes.close)
    show_status(peer)


async def _connected(peer: PeerApp, routes: Routes, max_seconds: float | None, once: bool) -> None:
    """Connect first, so that an owner who is watching hears at once when it cannot be; later it is tried again.

    A run that goes on loads now all that an exchange needs, so that no packet's time waits for it.
    """
    if not once:
        from anon.route.http import load

        load()
    await routes.prepare(peer.store.study(study).invite.address for study in peer.store.active())
    await _watch(peer, max_seconds, once)


async def _watch(peer: PeerApp, max_seconds: float | None, once: bool) -> None:
    import asyncio

    running = asyncio.create_task(peer.run(max_seconds, once))
    seen: dict[bytes, str] = {}
    console = Terminal()
    guard = Guard("the lines of this command")
    while not running.done():
        with guard.turn():
            for status in peer.status():
                if seen.get(status.study) != str(status.state):
                    seen[status.study] = str(status.state)
                    told = coming(peer.store.study(status.study), time.time())
                    where = f"{local_time(time.time())} {status.study.hex()[:8]} {short(status.title)}"
                    line = styled("{where}: [bold]{state}[/]", where=where, state=status.state)
                    console.print(line, told, sep="; " if told else "")
            if not once and seen and not peer.store.active():
                running.cancel()
        await asyncio.wait({running}, timeout=0.5)
    with suppress(asyncio.CancelledError):
        await running


@app.command(rich_help_panel=WATCH)
def status(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Your studies and where they stand."""
    peer = open_view(home)
    if as_json:
        print_json([status_json(status) for status in peer.status()])
        return
    show_status(peer)
    if fault := disk_fault(home):
        Terminal().print(fault, soft_wrap=True)


@app.command(rich_help_panel=WATCH)
def receipts(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """The released packets, one by one, with their cost: never their content."""
    peer = open_view(home)
    released = peer.receipts()
    costs = {study: peer.accounting(study) for study in dict.fromkeys(receipt.study for receipt in released)}
    print_json([receipt_json(receipt, costs[receipt.study]) for receipt in released]) if as_json else show_receipts(
        released, costs
    )


app.command(rich_help_panel=WATCH)(own_commands.predict)
app.command(rich_help_panel=WATCH)(own_commands.report)
app.command(rich_help_panel=WATCH)(own_commands.received)
app.command(rich_help_panel=WATCH)(own_commands.tables)
app.command(rich_help_panel=WATCH)(pause_commands.pause)
app.command(rich_help_panel=WATCH)(pause_commands.resume)


@app.command(rich_help_panel=PRIVACY)
def leave(study: StudyOption = "", home: HomeOption = DEFAULT_HOME, route: RouteOption = "auto") -> None:
    """Leave a study. Before its enrolment closes you are struck off the roster; later nothing more is sent."""
    routes = routes_of(route, home)
    peer = open_peer(home, routes)
    chosen = pick(peer, study, active=True)
    finished(peer.leave(chosen))
    if finished(peer.deliver_withdrawal(chosen), routes.close) == "leaving":
        Terminal().print("the aggregator has not answered yet: `anonml peer run` tells it before enrolment closes")
    show_status(peer)


app.command(rich_help_panel=PRIVACY)(own_commands.budget)
app.command(rich_help_panel=PRIVACY)(own_commands.passphrase)
app.command(rich_help_panel=PRIVACY)(proof_commands.fingerprint)
app.command(rich_help_panel=PRIVACY)(proof_commands.evidence)
app.command(rich_help_panel=DEVICES)(own_commands.backup)
app.command(rich_help_panel=DEVICES)(own_commands.restore)
app.command("begin-anew", rich_help_panel=DEVICES)(own_commands.begin_anew)
