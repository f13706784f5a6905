"""`anonml aggregator desk`, `report` and `openapi`: the staff's pages, and what they can also do without them."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from aggregator.app import AggregatorApp
from aggregator.cli.options import DEFAULT_HOME, HomeOption, JsonOption, StudyOption, existing, out, pick, run
from aggregator.cli.serve import serve
from aggregator.desk.link import HOST, PORT, kept_link
from aggregator.home import open_home
from anon.errors import Refused


def desk(
    home: HomeOption = DEFAULT_HOME,
    desk_port: Annotated[
        int, typer.Option(min=0, max=65535, help="The desk's own port on this machine; 0 picks a free one.")
    ] = PORT,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port for peers; 0 picks a free one.")] = None,
    onion: Annotated[
        bool, typer.Option("--onion", help="Serve peers as a Tor onion service, and nowhere else.")
    ] = False,
    processes: Annotated[int, typer.Option(help="Worker processes that verify tokens.")] = 1,
    show: Annotated[bool, typer.Option("--open", help="Open the link in this machine's browser.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Serve peers, carry every study on, and show the staff's pages on this machine; prints a link that works once.

    Where the home is served with a desk already, prints a fresh link to that one.
    """
    link = _running(home)
    if link is None:
        serve(home, port=port, onion=onion, processes=processes, desk_port=desk_port, open_desk=show, as_json=as_json)
        return
    if show:
        webbrowser.open(link)
    if as_json:
        out({"desk": link})
    else:
        Console().print(f"the desk: {link}", highlight=False, soft_wrap=True)


def _running(home: Path) -> str | None:
    """The link of the desk of the process that serves this home; None when none does. Raises `Refused` without one."""
    if not (home / "signing.key").is_file():
        return None
    try:
        open_home(home, bytes).lock().close()
    except Refused:
        link = kept_link(home)
        if link is None:
            raise Refused(f"{home}: served without a desk; stop that one and start `anonml aggregator desk`") from None
        return link
    return None


def report(
    file: Annotated[Path, typer.Argument(help="A new file: report.html, or report.pdf.")],
    test: Annotated[
        Path | None, typer.Option(help="CSV of public, synthetic or last year's people with labels, for the ROC curve.")
    ] = None,
    person: Annotated[
        str | None, typer.Option(help="Column that tells people apart, when they have several rows.")
    ] = None,
    study: StudyOption = "",
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Write a published study's report, with errors on a test set if one is given; as PDF if the name ends in .pdf."""
    from aggregator.report.full import full_report, read_test_file
    from aggregator.report.pdf import to_pdf
    from aggregator.workers import Workers

    if file.exists():
        raise Refused(f"{file}: already exists; name another file")
    people = read_test_file(test) if test is not None else ""

    async def work() -> str:
        async with AggregatorApp(existing(home)) as aggregator:
            return await full_report(aggregator.study(pick(aggregator, study)), Workers(0), people, person)

    page = run(work())
    if file.suffix == ".pdf":
        file.write_bytes(to_pdf(page))
    else:
        file.write_text(page, "utf-8")
    Console().print(f"{file} written", highlight=False)


def openapi(
    which: Annotated[str, typer.Argument(help="aggregator (what peers ask) or desk.")] = "aggregator",
) -> None:
    """Print the OpenAPI document of an HTTP interface."""
    from aggregator.desk.openapi import desk_document, public_document
    from aggregator.desk.routes import ROUTES

    if which not in ("aggregator", "desk"):
        raise Refused(f"{which}: expected aggregator or desk")
    found = public_document() if which == "aggregator" else desk_document(ROUTES, f"http://{HOST}:{PORT}")
    typer.echo(json.dumps(found, indent=1))
