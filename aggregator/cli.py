"""`anonml aggregator ...`: run studies. Every command that reads takes --json."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from aggregator.app import AggregatorApp, StudyStatus
from aggregator.home import backup as back_up
from aggregator.home import open_home
from aggregator.home import restore as restore_into
from anon.errors import Malformed, Refused
from anon.fingerprint import words

app = typer.Typer(no_args_is_help=True, help="Run studies: invite, serve, watch, export, audit.")
T = TypeVar("T")

DEFAULT_HOME = Path(os.environ.get("ANONML_AGGREGATOR_HOME", "~/.anonml-aggregator")).expanduser()
HomeOption = Annotated[Path, typer.Option("--home", help="The aggregator's directory (keys and database).")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print machine-readable JSON.")]
StudyOption = Annotated[str, typer.Option("--study", help="Study id or its beginning; not needed when there is one.")]


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine."""
    return asyncio.run(work)


def out(value: object) -> None:
    """One line of JSON on standard output."""
    sys.stdout.write(json.dumps(value, sort_keys=True) + "\n")
    sys.stdout.flush()


def existing(home: Path) -> Path:
    """The home, when an aggregator lives there. Raises `Refused`: a mistyped path must not make a new one."""
    if not (home / "signing.key").is_file():
        raise Refused(f"{home}: no aggregator here; check --home, or publish a study first (`anonml study publish`)")
    return home


def pick(aggregator: AggregatorApp, prefix: str) -> bytes:
    """The study whose id begins with `prefix`. Raises `Refused` when it is none or several."""
    found = [live for live in aggregator.studies() if live.study.hex().startswith(prefix.lower())]
    if len(found) == 1:
        return found[0].study
    if not found:
        missing = f"no study begins with {prefix}" if prefix else "no study yet: `anonml study publish study.toml`"
        raise Refused(f"{missing} (`anonml aggregator status` lists them)")
    listed = ", ".join(f"{live.study.hex()[:8]} ({live.phase})" for live in found)
    raise Refused(f"several studies: {listed}; choose one with --study")


def study_status(status: StudyStatus) -> dict[str, object]:
    """A status as JSON."""
    return {
        "study": status.study.hex(),
        "fingerprint": words(status.study),
        "title": status.title,
        "phase": str(status.phase),
        "enrolled": status.enrolled,
        "minimum": status.minimum,
        "ends": status.ends,
        "accepted": status.accepted,
        "documents": status.documents,
    }


@app.command()
def init(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Make the aggregator's directory and its signing key (done by the other commands too, when it is missing)."""
    key = open_home(home, os.urandom).public_key
    if as_json:
        out({"home": str(home), "key": key.hex()})
    else:
        Console().print(f"aggregator at {home}\nkey {key.hex()}", highlight=False)


@app.command()
def serve(
    home: HomeOption = DEFAULT_HOME,
    host: Annotated[str, typer.Option(help="Address to listen on; loopback unless you know better.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 picks a free one.")] = 8750,
    processes: Annotated[int, typer.Option(help="Worker processes that verify tokens.")] = 1,
    until_published: Annotated[
        bool, typer.Option(help="Stop once every study has ended and its peers had time to fetch.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Answer peers and carry every study to its end, until stopped (Ctrl-C). Safe to stop or kill at any time."""
    with suppress(KeyboardInterrupt, asyncio.CancelledError):
        run(_serve(home, host, port, processes, until_published, as_json))


async def _serve(home: Path, host: str, port: int, processes: int, until_published: bool, as_json: bool) -> None:
    console = Console()

    def ready(bound: int) -> None:
        if as_json:
            out({"address": f"{host}:{bound}"})
        else:
            console.print(f"serving at [bold]{host}:{bound}[/] (Ctrl-C stops; nothing is lost)", highlight=False)

    async with AggregatorApp(home, processes=processes) as aggregator:
        serving = asyncio.create_task(aggregator.serve(host, port, ready))
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):
            loop.add_signal_handler(signal.SIGTERM, serving.cancel)
        watching = asyncio.create_task(_watch(aggregator, until_published, as_json, console))
        done, _ = await asyncio.wait({serving, watching}, return_when=asyncio.FIRST_COMPLETED)
        for task in (serving, watching):
            task.cancel()
        await asyncio.gather(serving, watching, return_exceptions=True)
        for task in done:
            if not task.cancelled():
                task.result()


async def _watch(aggregator: AggregatorApp, until_published: bool, as_json: bool, console: Console) -> None:
    """Say every change of phase; return once all studies have ended, when asked to."""
    seen: dict[bytes, str] = {}
    while True:
        statuses = await aggregator.status()
        for status in statuses:
            if seen.get(status.study) == str(status.phase):
                continue
            seen[status.study] = str(status.phase)
            if as_json:
                answers = {"enrolment_answers": status.enrolment_answers, "packet_answers": status.packet_answers}
                out(study_status(status) | answers | {"at": time.time()})
            else:
                named = f"{status.study.hex()[:8]} {escape(status.title)}"
                console.print(f"{named}: [bold]{status.phase}[/], {status.enrolled} enrolled", highlight=False)
        if until_published and statuses and all(str(s.phase) in _ENDED for s in statuses) and _over(aggregator):
            return
        await asyncio.sleep(0.25)


def _over(aggregator: AggregatorApp) -> bool:
    """Whether peers had all the time they were promised to find their packets in the transcripts."""
    return all(live.phase == "abandoned" or time.time() > live.manifest.timetable.ends for live in aggregator.studies())


_ENDED = ("published", "abandoned", "erased")


@app.command()
def invite(
    count: Annotated[int, typer.Option(min=1, max=100_000, help="How many invites; each admits one peer.")] = 1,
    address: Annotated[str, typer.Option(help="Where peers reach this aggregator, host:port.")] = "127.0.0.1:8750",
    study: StudyOption = "",
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Draw invite links, one line each. Their codes are stored nowhere: hand them out, then forget them."""

    async def work() -> list[str]:
        async with AggregatorApp(existing(home)) as aggregator:
            chosen = aggregator.study(pick(aggregator, study))
            if chosen.phase != "enrolling":
                raise Refused(f"enrolment of this study has closed ({chosen.phase}); an invite would admit nobody")
            wanted = count if chosen.manifest.cohort.admission == "invite" else 1
            return [one.link() for one in await aggregator.create_invites(chosen.study, wanted, address)]

    links = run(work())
    if as_json:
        out(links)
    else:
        sys.stdout.write("\n".join(links) + "\n")


@app.command()
def allow(
    keys: Annotated[list[str], typer.Argument(help="Study keys, as `anonml peer join` and `peer key` print them.")],
    study: StudyOption = "",
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Put keys on the list of a study with admission = "allow-list"."""
    try:
        named = [bytes.fromhex(key) for key in keys]
    except ValueError:
        raise Malformed("keys: expected 64 hexadecimal digits each, as `anonml peer key` prints them") from None

    async def work() -> None:
        async with AggregatorApp(existing(home)) as aggregator:
            chosen = aggregator.study(pick(aggregator, study))
            if chosen.manifest.cohort.admission != "allow-list":
                raise Refused(f'admission is "{chosen.manifest.cohort.admission}", not by a list; nothing to allow')
            await aggregator.list_keys(chosen.study, named)

    run(work())
    Console().print(f"{len(named)} listed")


@app.command()
def status(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """How every study stands. Packet counts move in steps of 50 until collection has closed."""

    async def work() -> list[StudyStatus]:
        async with AggregatorApp(existing(home)) as aggregator:
            return await aggregator.status()

    statuses = run(work())
    if as_json:
        out([study_status(one) for one in statuses])
        return
    table = Table("study", "title", "phase", "enrolled", "minimum", "accepted", "until")
    for one in statuses:
        until = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(one.ends)) if one.ends else ""
        row = (one.study.hex()[:8], escape(one.title), str(one.phase), one.enrolled, one.minimum, one.accepted, until)
        table.add_row(*map(str, row))
    Console().print(table)


@app.command()
def export(
    directory: Annotated[Path, typer.Argument(help="A new directory for heads, bodies, model.json and report.html.")],
    study: StudyOption = "",
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Write everything a study has published, for `audit`, for reading, or for a public place."""
    from aggregator.audit import export as write_out

    async def work() -> dict[str, int]:
        async with AggregatorApp(existing(home)) as aggregator:
            live = aggregator.study(pick(aggregator, study))
            bodies = {head.head.number: await live.document(head.head.number) for head in live.chain}
            return write_out(
                live.chain, {number: body for number, body in bodies.items() if body is not None}, directory
            )

    written = run(work())
    if as_json:
        out(written)
    else:
        Console().print(f"{sum(written.values())} documents written to {directory}")


@app.command()
def audit(
    directory: Annotated[Path, typer.Argument(help="What `export` wrote.")],
    key: Annotated[str, typer.Option(help="The aggregator's key (64 hexadecimal digits) from an invite link.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Re-verify every signature and token and recompute every histogram, cut and the model from the transcript."""
    from aggregator.audit import audit as re_verify

    try:
        pinned = bytes.fromhex(key) if key else None
    except ValueError:
        raise Malformed("--key: expected 64 hexadecimal digits; copy it from an invite link") from None
    result = re_verify(directory, pinned)
    if as_json:
        out(result.figures())
    else:
        console = Console()
        for line in result.lines():
            console.print(line, highlight=False)
    if not result.ok:
        raise typer.Exit(1)


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="A new file for keys and database.")], home: HomeOption = DEFAULT_HOME
) -> None:
    """Write keys and a consistent copy of the database into one file. Keep it secret."""
    back_up(existing(home), file)
    Console().print(f"written to {file}; it holds every key")


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="What `backup` wrote.")], home: HomeOption = DEFAULT_HOME
) -> None:
    """Unpack a backup into a directory that does not exist yet."""
    restore_into(file, home)
    Console().print(f"restored into {home}")
