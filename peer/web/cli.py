"""`anonml peer open`: serve the owner's page on this machine, run the studies beside it, and open a browser."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Annotated

import typer

from anon.kit.page.browser import open_link
from anon.kit.terminal.printing import Terminal
from anon.kit.terminal.progress import on_one_line
from anon.kit.terminal.wiring import Wiring, wiring_of
from anon.machine.guard import Guard
from anon.wire.invite import Invite, parse_invite
from peer.network.routes import Routes
from peer.opening import DEFAULT_HOME, START, HomeOption, RouteOption, home_of, open_peer

LOOK_SECONDS = 0.5
ON_THE_PAGE, ASKING, BESIDE_THE_PAGE = "on the page", "asking on the page", "beside the page"
"""Sockets: routes of other shells that the page serves too, what of theirs waits for an answer, and what runs as long
as it is served."""


def join(app: typer.Typer) -> None:
    """Add `open` to the commands of `anonml peer`, before all others."""
    app.command("open", rich_help_panel=START)(open_page)
    app.registered_commands.insert(0, app.registered_commands.pop())


def open_page(
    context: typer.Context,
    link: Annotated[str | None, typer.Argument(help="An invite link to begin with.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="A port of this machine; 0 takes any free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser at once.")] = True,
    home: HomeOption = DEFAULT_HOME,
    route: RouteOption = "auto",
) -> None:
    """Your studies, data and budget in a browser, on this machine only. It runs your studies too, like `run`."""
    invite = parse_invite(link) if link else None
    asyncio.run(_served(home, route, port, invite, browser, wiring_of(context)))


async def _served(
    home: Path, route: str, port: int, invite: Invite | None, browser: bool, wiring: Wiring
) -> None:
    from peer.web.server import PageServer  # late: no other command needs the templates

    console = Terminal()
    progress: list[str] = [""]

    def say(line: str) -> None:
        progress[0] = line
        on_one_line(line)

    routes = Routes(route, home / "tor", say)
    guests = wiring.all(ON_THE_PAGE)
    server = PageServer(open_peer(home, routes), home_of(home), port, progress=lambda: progress[0], guests=guests)
    server.site.asking = tuple(wiring.all(ASKING))
    if invite is not None:
        server.site.invites[invite.study] = invite
        server.site.landing = "/start"
    try:
        await server.start()
        console.print(f"Open this link; it works once:\n{server.link}", soft_wrap=True)
        console.print("Ctrl-C ends it; nothing is lost.")
        if browser and not await asyncio.to_thread(open_link, server.link):
            console.print("no browser was found; open the link yourself")
        async with AsyncExitStack() as beside:
            for start in wiring.all(BESIDE_THE_PAGE):
                await beside.enter_async_context(start(server))
            await _until_stopped(console, lambda: server.link)
    finally:
        await server.close()
        await routes.close()
    console.print("closed; `anonml peer open` or `anonml peer run` goes on from here")


async def _until_stopped(console: Terminal, link: Callable[[], str]) -> None:
    """Until Ctrl-C or a signal to end; each time a link was used the next one is told."""
    stopped, shown_link = asyncio.Event(), link()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Ctrl-C ends the loop itself
            loop.add_signal_handler(number, stopped.set)
    guard = Guard("the lines of this command")
    while not stopped.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), LOOK_SECONDS)
        with guard.turn():
            if link() != shown_link:
                console.print(f"opened. For another browser: {link()}", soft_wrap=True)
                shown_link = link()
