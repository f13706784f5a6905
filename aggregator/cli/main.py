"""`anonml aggregator ...`: run studies. Every command that reads takes --json."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from aggregator.app import AggregatorApp, StudyStatus
from aggregator.cli.desk import desk, openapi, report
from aggregator.cli.fingerprint import fingerprint
from aggregator.cli.model import export_model
from aggregator.cli.options import (
    DEFAULT_HOME,
    HomeOption,
    JsonOption,
    StudyOption,
    existing,
    out,
    pick,
    run,
    study_status,
)
from aggregator.cli.serve import HOST, HTTP_PORT, serve
from aggregator.home import backup as back_up
from aggregator.home import open_home
from aggregator.home import restore as restore_into
from anon import qr
from anon.addresses import is_loopback
from anon.errors import Malformed, Refused
from anon.invite import parse_invite

_HERE_ALONE = "these links work on this machine alone; for people elsewhere `serve --onion` first, then draw links\n"
app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Run studies: invite, serve, watch, export, audit."
)
app.command()(serve)
app.command()(desk)
app.command()(report)
app.command()(openapi)
app.command()(fingerprint)
app.command("export-model")(export_model)


@app.command()
def init(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Make the aggregator's directory and its signing key (done by the other commands too, when it is missing)."""
    key = open_home(home, os.urandom).public_key
    if as_json:
        out({"home": str(home), "key": key.hex()})
    else:
        Console().print(f"aggregator at {home}\nkey {key.hex()}", highlight=False)


@app.command()
def invite(
    count: Annotated[int, typer.Option(min=1, max=100_000, help="How many invites; each admits one peer.")] = 1,
    address: Annotated[
        str,
        typer.Option(help="Where peers reach this aggregator: where it serves now, or the study's own onion address."),
    ] = "",
    codes: Annotated[bool, typer.Option("--qr", help="Draw each link as a QR code too.")] = False,
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
            where = address or _address(aggregator.home.served_at(), chosen.manifest.address)
            return [one.link() for one in await aggregator.create_invites(chosen.study, wanted, where)]

    links = run(work())
    if as_json:
        out([qr.figures(link) for link in links] if codes else links)
        return
    for link in links:
        if codes:
            qr.show(Console(), link)
        else:
            sys.stdout.write(link + "\n")
    if is_loopback(parse_invite(links[0]).address):
        sys.stderr.write(_HERE_ALONE)


def _address(serving: str, named: str) -> str:
    """Where peers of a study go: where its home is served now, if they do, or else the address that the study names."""
    return serving if serving and (is_loopback(serving) or serving == named) else named or f"{HOST}:{HTTP_PORT}"


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
