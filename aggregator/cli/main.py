"""`anonml aggregator ...`: run studies. Every command that reads takes --json."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from aggregator.app import AggregatorApp
from aggregator.cli.fingerprint import fingerprint
from aggregator.cli.serve import HOST, HTTP_PORT, serve
from aggregator.compute import HELP, Compute
from aggregator.network.onion_address import address_of_links
from aggregator.opening import (
    DEFAULT_HOME,
    KEEP,
    PUBLISH,
    RUN,
    WATCH,
    HomeOption,
    demand_served,
    existing,
    pick,
    study_status,
    trouble,
)
from aggregator.store.dialects import set_up
from aggregator.store.home import backup as back_up
from aggregator.store.home import open_home
from aggregator.store.home import restore as restore_into
from aggregator.store.moving import move as move_to
from aggregator.study.handout import PLACE, limits, link_table, mail
from aggregator.study.status import StudyStatus
from anon.errors import Malformed, Refused
from anon.kit.terminal import qr
from anon.kit.terminal.foreign import Foreign, inline
from anon.kit.terminal.options import JsonOption, StudyOption, finished, print_json
from anon.kit.terminal.printing import Terminal, styled
from anon.storage.home import RESTORED
from anon.storage.private_files import new_private_text
from anon.study.manifest import Manifest
from anon.text.instants import instant
from anon.transparency.fingerprint import words
from anon.wire.invite import parse_invite

_BEWARE_OF_TWO = styled(
    "[bold]Another copy of this aggregator may be alive.[/] Two that are served tell peers two stories, and each peer "
    "that sees both stops and keeps the proof. Stop the other for good; then serve this one with --restored"
)
app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Run studies: invite, serve, watch, export, audit."
)
app.command(rich_help_panel=RUN)(serve)


@app.command(rich_help_panel=RUN)
def init(
    home: HomeOption = DEFAULT_HOME,
    database: Annotated[
        str, typer.Option(help="Keep studies on a PostgreSQL server, and not in a file. `-` reads the address.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Make the aggregator's directory and its signing key (done by the other commands too, when it is missing)."""
    made = open_home(home, os.urandom)
    key = made.public_key
    if database:
        finished(set_up(made, _address(database)))
    if as_json:
        print_json({"home": str(home), "key": key.hex(), "words": words(key)})
    else:
        Terminal().print(f"aggregator at {home}\nkey {key.hex()}\nin words {words(key)}")


def _address(named: str) -> str:
    """Of a database; `-` stands for a line of standard input, because others can read the arguments of a program."""
    return sys.stdin.readline().strip() if named == "-" else named


@app.command(rich_help_panel=RUN)
def invite(
    count: Annotated[int, typer.Option(min=1, max=100_000, help="How many invites; each admits one peer.")] = 1,
    address: Annotated[
        str,
        typer.Option(help="Where peers reach this aggregator: where it serves now, or the study's own onion address."),
    ] = "",
    codes: Annotated[bool, typer.Option("--qr", help="Draw each link as a QR code too.")] = False,
    table: Annotated[
        Path | None, typer.Option("--csv", help="A new file for the links, for a mail merge; prints the mail's text.")
    ] = None,
    study: StudyOption = "",
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Draw invite links, one line each. Their codes are stored nowhere: hand them out, then forget them."""
    if table is not None and table.exists():
        raise Refused(f"{table}: already exists; name another file")

    async def work() -> tuple[list[str], Manifest]:
        async with AggregatorApp(existing(home)) as aggregator:
            chosen = aggregator.study(pick(aggregator, study))
            if chosen.phase != "enrolling":
                raise Refused(f"enrolment of this study has closed ({chosen.phase}); an invite would admit nobody")
            wanted = count if chosen.manifest.cohort.admission == "invite" else 1
            usual = address_of_links(aggregator.home.served_at(), chosen.manifest.address)
            where = address or usual or f"{HOST}:{HTTP_PORT}"
            drawn = await aggregator.create_invites(chosen.study, wanted, where)
            return [link.link() for link in drawn], chosen.manifest

    links, manifest = finished(work())
    if found := limits(parse_invite(links[0]).address, manifest):
        Terminal(stderr=True).print(found, soft_wrap=True)
    if table is not None:
        with new_private_text(table) as file:
            file.write(link_table(links))
        sys.stdout.write(mail(manifest, PLACE if manifest.cohort.admission == "invite" else links[0]))
        said = f"{table}: {len(links)} links. Keep it to yourself, and delete it once they are sent."
        Terminal(stderr=True).print(said, soft_wrap=True)
        return
    if as_json:
        print_json([qr.figures(link) for link in links] if codes else links)
        return
    for link in links:
        if codes:
            qr.show(Terminal(), link)
        else:
            sys.stdout.write(link + "\n")


@app.command(rich_help_panel=RUN)
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

    finished(work())
    Terminal().print(f"{len(named)} listed")


@app.command(rich_help_panel=WATCH)
def status(
    home: HomeOption = DEFAULT_HOME,
    served: Annotated[
        bool, typer.Option("--served", help="Fail unless the home is served and, of studies under way, one goes on.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """How every study stands. Counts move in steps of 50: of members until enrolment has closed, of packets until
    collection has closed."""

    async def work() -> list[StudyStatus]:
        async with AggregatorApp(existing(home)) as aggregator:
            statuses = await aggregator.status()
            if served:
                demand_served(aggregator.home, await aggregator.led(), statuses)
            return statuses

    statuses = finished(work())
    if as_json:
        print_json([study_status(status) for status in statuses])
        return
    table = Table("study", "title", "phase", "enrolled", "minimum", "accepted", Column("until", overflow="fold"))
    for status in statuses:
        until = instant(status.ends) if status.ends else ""
        least = f"{status.minimum} ({'reached' if status.enough else 'not reached'})"
        counts = (str(status.enrolled), least, str(status.accepted))
        table.add_row(status.study.hex()[:8], Foreign(status.title), str(status.phase), *counts, until)
    Terminal().print(table)
    for line in trouble(statuses):
        Terminal().print(line, soft_wrap=True)


app.command(rich_help_panel=WATCH)(fingerprint)


@app.command(rich_help_panel=PUBLISH)
def export(
    directory: Annotated[Path, typer.Argument(help="A new directory for heads, bodies, model.json and report.html.")],
    study: StudyOption = "",
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Write everything a study has published, for `audit`, for reading, or for a public place."""
    from aggregator.audit.exporting import export_study

    async def work() -> dict[str, int]:
        async with AggregatorApp(existing(home)) as aggregator:
            return await export_study(aggregator.study(pick(aggregator, study)), directory)

    written = finished(work())
    if as_json:
        print_json(written)
    else:
        Terminal().print(f"{sum(written.values())} documents written to {directory}")


@app.command(rich_help_panel=PUBLISH)
def audit(
    directory: Annotated[Path, typer.Argument(help="The folder that `export` wrote.")],
    key: Annotated[str, typer.Option(help="The aggregator's key (64 hexadecimal digits) from an invite link.")] = "",
    report: Annotated[
        Path | None, typer.Option(help="A new file for the report that the checked documents give.")
    ] = None,
    compute: Annotated[str, typer.Option(help=HELP)] = "1",
    as_json: JsonOption = False,
) -> None:
    """Re-verify every signature and token, recompute model and report, and compare every file of the folder.

    It ends with 0 if all was checked and fits together, with 9 if something was not checked, and with 1 if there are
    faults.
    """
    from aggregator.audit import audit as re_verify

    place = Compute.of(compute)
    try:
        pinned = bytes.fromhex(key) if key else None
    except ValueError:
        raise Malformed("--key: expected 64 hexadecimal digits; copy it from an invite link") from None
    if report is not None and report.exists():
        raise Refused(f"{report}: already exists; name another file")
    result = re_verify(directory, pinned, place)
    if report is not None:
        if not result.report:
            raise Refused("no report can be made: documents that it rests on are missing or damaged")
        with new_private_text(report) as file:
            file.write(result.report)
    if as_json:
        print_json(result.figures())
    else:
        console = Terminal()
        for line in result.lines():
            console.print(inline(line))
    if result.verdict.exit_code:
        raise typer.Exit(result.verdict.exit_code)


@app.command(rich_help_panel=KEEP)
def move(
    database: Annotated[str, typer.Option(help="The address of a new database on a PostgreSQL server; `-` reads it.")],
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Move all studies from the home's file to a PostgreSQL server. Stop the aggregator first."""
    moved = finished(move_to(open_home(existing(home), os.urandom), _address(database)))
    Terminal().print(f"{moved} studies moved; the file is gone, and the keys stay in {home}")


@app.command(rich_help_panel=KEEP)
def backup(
    file: Annotated[Path, typer.Argument(help="A new file for keys and database.")],
    final: Annotated[bool, typer.Option(help="Close this home for good: the aggregator moves elsewhere.")] = False,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Write keys and a consistent copy of the database into one file. Keep it secret."""
    back_up(existing(home), file, final)
    Terminal().print(f"written to {file}; it holds every key" + ("; this home is closed" if final else ""))


@app.command(rich_help_panel=KEEP)
def restore(
    file: Annotated[Path, typer.Argument(help="The file that `backup` wrote.")], home: HomeOption = DEFAULT_HOME
) -> None:
    """Unpack a backup into a directory that does not exist yet."""
    restore_into(file, home)
    Terminal().print(f"restored into {home}")
    if (home / RESTORED).exists():
        Terminal().print(_BEWARE_OF_TWO, soft_wrap=True)
