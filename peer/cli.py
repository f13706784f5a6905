"""`anonml peer ...`: keep your data, join studies, see what was sent. Every command that reads takes --json."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from attrs import evolve
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.prompt import Confirm
from rich.table import Table

from anon.errors import Refused
from anon.invite import Invite, parse_invite
from anon.ldp import format_epsilon, nano
from anon.route import DirectRoute, Route, SocksRoute
from peer.app import PeerApp, StudyStatus
from peer.client import AggregatorClient
from peer.consent import ConsentSheet
from peer.home import PeerHome

app = typer.Typer(no_args_is_help=True, help="Keep your data, join studies, see what was sent.")
T = TypeVar("T")

DEFAULT_HOME = Path(os.environ.get("ANONML_PEER_HOME", "~/.anonml-peer")).expanduser()
HomeOption = Annotated[Path, typer.Option("--home", help="Your peer's directory (data, ledger, keys).")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print machine-readable JSON.")]
RouteOption = Annotated[str, typer.Option("--route", help="direct (this machine only) or socks://HOST:PORT.")]
LinkArgument = Annotated[str, typer.Argument(help="The invite link that staff gave you.")]
StudyOption = Annotated[str, typer.Option("--study", help="Study id or its beginning; not needed when there is one.")]


def _run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def _out(value: object) -> None:
    sys.stdout.write(json.dumps(value, sort_keys=True) + "\n")


def _route(text: str) -> Callable[[], Route]:
    """The route that `--route` names. Raises `Refused`."""
    if text == "direct":
        return DirectRoute
    scheme, _, rest = text.partition("://")
    host, _, port = rest.rpartition(":")
    if scheme not in ("socks", "socks5", "socks5h") or not host or not port.isdigit():
        raise Refused("--route: expected direct or socks://HOST:PORT")
    return lambda: SocksRoute(host, int(port))


def _open(home: Path, route: str = "direct") -> PeerApp:
    place = PeerHome(home)
    passphrase = None
    if place.settings().salt:
        passphrase = os.environ.get("ANONML_PASSPHRASE") or getpass.getpass("passphrase: ")
    return PeerApp(place, _route(route), time.time, os.urandom, passphrase)


def _pick(peer: PeerApp, prefix: str) -> bytes:
    found = [one.study for one in peer.status() if one.study.hex().startswith(prefix.lower())]
    if len(found) != 1:
        raise Refused(f"--study {prefix!r} names {len(found)} studies; give more of its id (`anonml peer status`)")
    return found[0]


@app.command("import")
def import_data(
    file: Annotated[Path, typer.Argument(help="CSV, JSON Lines (both also .gz) or SQLite.")],
    table: Annotated[str | None, typer.Option(help="Name of the table; the file's name by default.")] = None,
    append: Annotated[bool, typer.Option(help="Add to the table instead of replacing it.")] = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Copy a file of yours into your own tables. They stay on this machine."""
    from peer.data.importing import import_file

    place = PeerHome(home)
    place.prepare()
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("rows", total=None)
        summary = import_file(
            place.data_path,
            file,
            table,
            "append" if append else "replace",
            lambda rows: progress.update(task, completed=rows),
        )
    if as_json:
        _out({"table": summary.table, "rows": summary.rows, "columns": summary.columns, "skipped": summary.skipped})
        return
    Console().print(f"{summary.rows} rows in table {summary.table} ({', '.join(summary.columns)})", highlight=False)
    if summary.skipped:
        lines = ", ".join(map(str, summary.skipped_lines))
        Console().print(f"{summary.skipped} lines could not be read and were skipped (the first: {lines})")


@app.command()
def tables(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Your tables and their columns."""
    from peer.data.sandbox import plain_tables_of

    found = plain_tables_of(PeerHome(home).data_path)
    if as_json:
        _out({name: list(columns) for name, columns in found.items()})
        return
    for name, columns in found.items():
        Console().print(f"[bold]{name}[/]: {', '.join(columns)}", highlight=False)
    if not found:
        Console().print("no tables yet: `anonml peer import FILE`")


@app.command()
def look(
    link: LinkArgument, home: HomeOption = DEFAULT_HOME, route: RouteOption = "direct", as_json: JsonOption = False
) -> None:
    """Fetch and verify a study and show what it asks and costs. Nothing about you leaves."""
    sheet = _run(_open(home, route).look(parse_invite(link)))
    _out(_sheet_json(sheet)) if as_json else _show_sheet(sheet, home)


@app.command()
def join(
    link: LinkArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Consent without being asked (you have read `look`).")] = False,
    epsilon: Annotated[
        float | None, typer.Option(help="The most epsilon you agree to; the study's own if left out.")
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    route: RouteOption = "direct",
    as_json: JsonOption = False,
) -> None:
    """Show a study, ask you, and on a yes reserve its epsilon and store your enrolment. `run` sends it."""
    peer, invite = _open(home, route), parse_invite(link)
    sheet = _run(peer.look(invite))
    if not as_json:
        _show_sheet(sheet, home)
    if not yes and not Confirm.ask("Do you consent?", default=False):
        raise Refused("you declined; nothing was stored or sent")
    approved = nano(epsilon) if epsilon is not None else sheet.epsilon
    consent = _run(peer.join(invite, approved))
    key = peer.study_key(consent.study).hex()
    if as_json:
        _out({"study": consent.study.hex(), "epsilon_reserved": consent.epsilon / 1e9, "key": key})
        return
    Console().print(f"joined; epsilon {format_epsilon(consent.epsilon)} is reserved. Now: anonml peer run")
    if sheet.admission == "allow-list":
        Console().print(f"first give staff your key for this study, to put on their list: {key}", highlight=False)


@app.command()
def key(link: LinkArgument, home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Your key in a study that admits by a list, for staff to put on it: after `join`, before `run` sends it."""
    shown = _open(home).study_key(parse_invite(link).study).hex()
    _out({"key": shown}) if as_json else Console().print(shown, highlight=False)


@app.command()
def run(
    once: Annotated[bool, typer.Option(help="Stop when nothing is due within --max-seconds.")] = False,
    max_seconds: Annotated[float | None, typer.Option(help="Stop after so many seconds.")] = None,
    home: HomeOption = DEFAULT_HOME,
    route: RouteOption = "direct",
) -> None:
    """Do what is due, at its own random time, until stopped (Ctrl-C). Safe to stop or kill at any moment.

    Without --once it goes on until your studies have ended.
    """
    peer = _open(home, route)
    with suppress(KeyboardInterrupt):
        _run(_watch(peer, max_seconds, once))
    _show_status(peer)


async def _watch(peer: PeerApp, max_seconds: float | None, once: bool) -> None:
    running = asyncio.create_task(peer.run(max_seconds, once))
    seen: dict[bytes, str] = {}
    console = Console()
    while not running.done():
        for one in peer.status():
            if seen.get(one.study) != str(one.state):
                seen[one.study] = str(one.state)
                console.print(f"{one.study.hex()[:8]} {escape(one.title)}: [bold]{one.state}[/]", highlight=False)
        if not once and seen and not peer.store.active():
            running.cancel()
        await asyncio.wait({running}, timeout=0.5)
    with suppress(asyncio.CancelledError):
        await running


@app.command()
def leave(study: StudyOption = "", home: HomeOption = DEFAULT_HOME, route: RouteOption = "direct") -> None:
    """Leave a study. Before its enrolment closes you are struck off the roster; later nothing more is sent."""
    peer = _open(home, route)
    chosen = _pick(peer, study)
    _run(peer.leave(chosen))
    if any(one.study == chosen and one.state == "leaving" for one in peer.status()):
        _run(peer.run(20.0, once=True))
    _show_status(peer)


@app.command()
def status(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Your studies and where they stand."""
    peer = _open(home)
    if as_json:
        _out([_status_json(one) for one in peer.status()])
    else:
        _show_status(peer)


@app.command()
def receipts(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """What was released, packet by packet: never its content."""
    found = _open(home).receipts()
    if as_json:
        _out(
            [
                {
                    "study": r.study.hex(),
                    "slot": r.slot,
                    "survey": r.survey,
                    "epsilon": r.epsilon / 1e9,
                    "status": str(r.status),
                    "word": r.word,
                }
                for r in found
            ]
        )
        return
    table = Table("study", "slot", "survey", "epsilon", "status", "the aggregator's word")
    for one in found:
        row = (
            escape(one.title),
            str(one.slot),
            str(one.survey),
            format_epsilon(one.epsilon),
            str(one.status),
            one.word,
        )
        table.add_row(*row)
    Console().print(table)


@app.command()
def budget(
    lifetime: Annotated[float | None, typer.Option(help="Set your lifetime budget (epsilon over all studies).")] = None,
    per_study: Annotated[float | None, typer.Option(help="Set the most epsilon a single study may cost.")] = None,
    minimum_cohort: Annotated[int | None, typer.Option(help="Set the fewest people you want to hide among.")] = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Your one lifetime budget: what is left, and what each study holds of it."""
    peer = _open(home)
    changes: dict[str, Any] = {}
    if lifetime is not None:
        changes["lifetime"] = nano(lifetime)
    if per_study is not None:
        changes["max_epsilon"] = nano(per_study)
    if minimum_cohort is not None:
        changes["minimum_cohort"] = minimum_cohort
    if changes:
        peer.set_policy(evolve(peer.policy(), **changes))
    ledger = peer.budget()
    if as_json:
        entries = [
            {
                "study": e.study.hex(),
                "title": e.title,
                "kind": e.kind,
                "reserved": e.reserved / 1e9,
                "spent": e.spent / 1e9,
            }
            for e in ledger.entries
        ]
        policy = peer.policy()
        _out(
            {
                "lifetime": ledger.lifetime / 1e9,
                "available": ledger.available / 1e9,
                "entries": entries,
                "per_study": policy.max_epsilon / 1e9,
                "minimum_cohort": policy.minimum_cohort,
            }
        )
        return
    left = f"[bold]{format_epsilon(ledger.available)}[/] of epsilon {format_epsilon(ledger.lifetime)} left"
    Console().print(left, highlight=False)
    for e in ledger.entries:
        note = "" if e.kind == "pure-local" else f" (another unit: {e.kind}; not part of the sum)"
        held = f"{format_epsilon(e.spent)} spent, {format_epsilon(e.reserved)} reserved{note}"
        Console().print(f"  {escape(e.title)}: {held}", highlight=False)


@app.command()
def predict(
    source: Annotated[str, typer.Argument(help="An invite link, a model.json, or the id of a study you joined.")],
    people: Annotated[Path | None, typer.Option(help="A CSV of people, instead of you; one row each.")] = None,
    person: Annotated[
        str | None, typer.Option(help="Column that tells people apart, when they have several rows.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write the predictions of --people to this CSV.")] = None,
    as_of: Annotated[int | None, typer.Option(help="Unix time that the queries count as now.")] = None,
    home: HomeOption = DEFAULT_HOME,
    route: RouteOption = "direct",
    as_json: JsonOption = False,
) -> None:
    """What a published model says of you, or of people in a file. Computed here; nothing leaves."""
    from peer import predict as local

    instant = int(time.time()) if as_of is None else as_of
    if source.endswith(".json"):
        model = local.load_model(Path(source))
    else:
        model = _run(local.fetch_model(AggregatorClient(_invite_of(source, home), _route(route)())))
    if people is None:
        found = [local.predict_own(model, PeerHome(home).data_path, instant)]
    else:
        predictions = local.predict_people(model, people, person, instant)
        if output is not None:
            Console().print(f"{local.write_predictions(predictions, output)} predictions written to {output}")
            return
        found = list(predictions)
    if as_json:
        _out([{"who": one.who, "probability": one.probability, "positive": one.positive} for one in found])
        return
    name = model.label.name
    for one in found:
        Console().print(
            f"{one.who}: {name} {one.probability:.1%}{' (predicted)' if one.positive else ''}", highlight=False
        )
    if people is None:
        moved = sorted(found[0].moved_by, key=lambda part: -abs(part.amount))[:5]
        for part in moved:
            Console().print(f"  {', '.join(part.features)}: {part.amount:+.2f}", highlight=False)


def _invite_of(source: str, home: Path) -> Invite:
    if source.startswith("anonml://"):
        return parse_invite(source)
    peer = _open(home)
    return peer.store.study(_pick(peer, source)).invite


@app.command()
def evidence(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Proofs that an aggregator told two stories, if any were kept."""
    found = _open(home).evidence()
    if as_json:
        _out([{"study": study.hex(), "what": what, "proof": proof.hex()} for study, what, proof in found])
        return
    for study, what, proof in found:
        Console().print(f"{study.hex()[:8]}: {escape(what)} ({len(proof)} bytes of proof)", highlight=False)
    if not found:
        Console().print("none")


@app.command()
def passphrase(home: HomeOption = DEFAULT_HOME) -> None:
    """Put your studies' secrets under a passphrase (asked for, or ANONML_PASSPHRASE)."""
    peer = _open(home)
    chosen = os.environ.get("ANONML_PASSPHRASE") or getpass.getpass("new passphrase: ")
    peer.set_passphrase(chosen)
    Console().print("set; it is asked for from now on, and cannot be recovered")


def _sheet_json(sheet: ConsentSheet) -> dict[str, Any]:
    return {
        "study": sheet.study.hex(),
        "title": sheet.title,
        "fingerprint": sheet.fingerprint,
        "packets": sheet.packets,
        "epsilon_record": sheet.epsilon / 1e9,
        "epsilon_eq6": sheet.epsilon_eq6 / 1e9,
        "budget_before": sheet.budget_before / 1e9,
        "budget_after": sheet.budget_after / 1e9,
        "enrol_closes": sheet.enrol_closes,
        "ends": sheet.ends,
        "odds": list(sheet.odds),
        "statements": list(sheet.statements),
        "objections": list(sheet.objections),
    }


def _show_sheet(sheet: ConsentSheet, home: Path) -> None:
    console = Console()
    console.rule(escape(sheet.title))
    console.print(f"{escape(sheet.purpose)}\nAsked by: {escape(sheet.contact)}", highlight=False)
    console.print(f"Fingerprint, to compare with a public place: [bold]{sheet.fingerprint}[/]", highlight=False)
    table = Table("what", "in words", title="One perturbed packet about some of these, with the label")
    for question in (*sheet.features, sheet.label):
        table.add_row(escape(question.name), escape(question.sentence))
    console.print(table)
    for line in (*sheet.odds, *sheet.statements):
        console.print(f"- {escape(line)}", highlight=False)
    for line in sheet.objections:
        console.print(f"[bold red]not possible:[/] {escape(line)}", highlight=False)
    console.print(f"Queries: anonml peer look LINK --json; your data: {home}", style="dim", highlight=False)


def _status_json(one: StudyStatus) -> dict[str, Any]:
    return {
        "study": one.study.hex(),
        "title": one.title,
        "state": str(one.state),
        "reason": one.reason,
        "reserved": one.reserved / 1e9,
        "spent": one.spent / 1e9,
        "slots": [
            {"slot": s.slot, "survey": s.survey, "status": str(s.status), "attempts": s.attempts, "send_at": s.send_at}
            for s in one.slots
        ],
    }


def _show_status(peer: PeerApp) -> None:
    found = peer.status()
    if not found:
        Console().print("no studies yet: `anonml peer join LINK`")
        return
    table = Table("study", "title", "state", "spent", "reserved", "packets", "reason")
    for one in found:
        packets = ", ".join(str(slot.status) for slot in one.slots)
        held = (format_epsilon(one.spent), format_epsilon(one.reserved))
        table.add_row(one.study.hex()[:8], escape(one.title), str(one.state), *held, packets, escape(one.reason))
    Console().print(table)


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="A new file.")],
    final: Annotated[bool, typer.Option(help="Close this home for good: you move to another machine.")] = False,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Write everything of this peer into one file. Keep it secret: it holds your data."""
    from peer.backup import backup as write_backup

    write_backup(PeerHome(home), file, final)
    Console().print(f"written to {file}" + ("; this home is closed" if final else ""))


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="What `backup` wrote.")], home: HomeOption = DEFAULT_HOME
) -> None:
    """Restore into a directory that is empty. No budget is refilled, and nothing is answered twice."""
    from peer.backup import restore as read_backup

    result = read_backup(PeerHome(home), file, time.time())
    Console().print(f"restored into {home}")
    if result.barred:
        Console().print(f"{result.barred} studies release nothing more: packets unknown to the backup may have left")
