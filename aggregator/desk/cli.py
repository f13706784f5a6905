"""`anonml aggregator desk` and `openapi`: the staff's pages, and the description of what they answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aggregator.desk.link import HOST, PORT, kept_link
from aggregator.opening import DEFAULT_HOME, KEEP, RUN, HomeOption, IncompleteOption, RestoredOption
from aggregator.store.duplicate_home import demand_here
from aggregator.store.home import open_home
from anon.errors import Refused
from anon.kit.page.browser import open_link
from anon.kit.terminal.options import JsonOption, print_json
from anon.kit.terminal.printing import Terminal
from anon.kit.terminal.wiring import wiring_of


def join(app: typer.Typer) -> None:
    """Add the desk's commands to those of `anonml aggregator`."""
    app.command(rich_help_panel=RUN)(desk)
    app.registered_commands.insert(0, app.registered_commands.pop())
    app.command(rich_help_panel=KEEP)(openapi)


def desk(
    context: typer.Context,
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
    restored: RestoredOption = False,
    incomplete: IncompleteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Serve peers, carry every study on, and show the staff's pages on this machine; prints a link that works once.

    Where the home is served with a desk already, prints a fresh link to that one.
    """
    link = _running(home)
    if link is None:
        wiring_of(context).one("serve")(
            context,
            home,
            port=port,
            onion=onion,
            processes=processes,
            desk_port=desk_port,
            open_desk=show,
            restored=restored,
            incomplete=incomplete,
            as_json=as_json,
        )
        return
    if show:
        open_link(link)
    if as_json:
        print_json({"desk": link})
    else:
        Terminal().print(f"the desk: {link}", soft_wrap=True)


def _running(home: Path) -> str | None:
    """The link of the desk of the process that serves this home; None when none does. Raises `Refused` without one."""
    if not (home / "signing.key").is_file():
        return None
    demand_here(home)
    try:
        open_home(home, bytes).lock().close()
    except Refused:
        link = kept_link(home)
        if link is None:
            raise Refused(f"{home}: served without a desk; stop that one and start `anonml aggregator desk`") from None
        return link
    return None


def openapi(
    which: Annotated[str, typer.Argument(help="aggregator (what peers ask) or desk.")] = "aggregator",
) -> None:
    """Print the OpenAPI document of an HTTP interface."""
    from aggregator.desk.openapi import desk_document, public_document
    from aggregator.desk.routes import ROUTES

    if which not in ("aggregator", "desk"):
        raise Refused(f"{which}: expected aggregator or desk")
    document = public_document() if which == "aggregator" else desk_document(ROUTES, f"http://{HOST}:{PORT}")
    print_json(document, indent=1)
