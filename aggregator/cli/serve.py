"""`anonml aggregator serve`: answer peers at a loopback address, or as an onion service in Tor."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from attrs import define, field, frozen
from rich.console import Console

from aggregator.app import AggregatorApp, StudyStatus
from aggregator.cli.fellows import Fellows
from aggregator.cli.fingerprint import show_study_code
from aggregator.opening import DEFAULT_HOME, HomeOption, RestoredOption, study_status
from anon.errors import Refused
from anon.page.browser import open_link
from anon.serving.onion_key import OnionKey, draw_key, keep_key
from anon.study.manifest import Manifest
from anon.terminal.foreign import inline, short
from anon.terminal.options import JsonOption, finished, print_json
from anon.terminal.progress import on_one_line
from anon.terminal.wiring import Wiring, wiring_of
from anon.transparency.fingerprint import words
from anon.wire.addresses import is_loopback
from anon.wire.invite import Invite

ServeDesk = Callable[[AggregatorApp, int, Callable[[str], None]], Awaitable[None]]
"""Serves the staff's pages at a port of this machine, and says the link."""
HOST, HTTP_PORT = "127.0.0.1", 8750
REPEATED = 5.0
"""Seconds between two lines that differ by the number enrolled alone."""
_OVER = ("published", "abandoned", "ended", "erased")


@frozen
class Serving:
    """The wishes of `serve`."""

    home: Path
    host: str
    port: int
    onion: bool
    ephemeral: bool
    invites: int
    until_published: bool
    as_json: bool
    desk_port: int | None = None
    open_desk: bool = False
    restored: bool = False
    workers: int = 1


def serve(
    context: typer.Context,
    home: HomeOption = DEFAULT_HOME,
    host: Annotated[
        str | None, typer.Option(help=f"Address to listen on ({HOST}); loopback unless you know better.")
    ] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help=f"Port ({HTTP_PORT}); 0 picks a free one.")] = None,
    onion: Annotated[bool, typer.Option("--onion", help="Serve as a Tor onion service, and nowhere else.")] = False,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="With --onion: an address for this run only; its key is not kept.")
    ] = False,
    invites: Annotated[
        int, typer.Option(min=0, max=100_000, help="With --onion: draw so many invites for each study by invite.")
    ] = 0,
    processes: Annotated[int, typer.Option(help="Processes that verify tokens, for each that serves.")] = 1,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Processes that serve; more than one need a database on a server.")
    ] = 1,
    until_published: Annotated[
        bool, typer.Option(help="Stop once every study has ended and its peers had time to fetch.")
    ] = False,
    desk_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Also show the staff's pages, at this port of this machine; see `desk`."),
    ] = None,
    open_desk: Annotated[bool, typer.Option(hidden=True)] = False,
    restored: RestoredOption = False,
    as_json: JsonOption = False,
) -> None:
    """Answer peers and carry every study to its end, until stopped (Ctrl-C). Safe to stop or kill at any time.

    With --onion nothing listens at a network address: peers come through Tor, and what they need to join is printed
    once the address answers.
    """
    if onion and (host is not None or port is not None):
        raise Refused("--onion listens at no network address; leave --host and --port out, or serve without --onion")
    if onion and workers > 1:
        raise Refused("--onion serves with one process; leave --workers out")
    if not onion and (ephemeral or invites):
        raise Refused("--ephemeral and --invites go with --onion; add it, or use `anonml aggregator invite`")
    serving = Serving(
        home,
        HOST if host is None else host,
        HTTP_PORT if port is None else port,
        onion,
        ephemeral,
        invites,
        until_published,
        as_json,
        desk_port,
        open_desk,
        restored,
        workers,
    )
    with suppress(KeyboardInterrupt, asyncio.CancelledError):
        finished(_serve(serving, processes, Fellows(home, workers - 1, processes), wiring_of(context)))


async def _serve(asked: Serving, processes: int, fellows: Fellows, wiring: Wiring) -> None:
    desk = None if asked.desk_port is None else wiring.one("the desk")
    async with AggregatorApp(asked.home, processes=processes) as aggregator:
        if fellows.count:
            aggregator.demand_shared()
        teller = Teller(aggregator, asked)
        serving = asyncio.create_task(_listening(aggregator, asked, teller))
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):
            loop.add_signal_handler(signal.SIGTERM, serving.cancel)
        tasks = {serving, asyncio.create_task(teller.watch())}
        if fellows.count:
            tasks.add(asyncio.create_task(_with_fellows(fellows, teller)))
        if desk is not None:
            tasks.add(asyncio.create_task(_with_desk(desk, aggregator, asked, teller)))
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            if not task.cancelled():
                task.result()


async def _with_fellows(fellows: Fellows, teller: Teller) -> None:
    await teller.serving()
    host, _, port = teller.address.rpartition(":")
    with fellows.ended():
        await fellows.keep(host, int(port))


async def _with_desk(desk: ServeDesk, aggregator: AggregatorApp, serving: Serving, teller: Teller) -> None:
    await teller.serving()
    await desk(aggregator, serving.desk_port or 0, teller.desk)


def _listening(aggregator: AggregatorApp, serving: Serving, teller: Teller) -> Coroutine[Any, Any, None]:
    if not serving.onion:
        def ready(bound: int) -> None:
            teller.listening(f"{serving.host}:{bound}")

        return aggregator.serve(serving.host, serving.port, ready, serving.restored, serving.workers > 1)
    key_of = _passing_key if serving.ephemeral else _kept_key
    return aggregator.serve_onion(key_of, teller.listening, teller.say, on_one_line, serving.restored)


def _passing_key(_home: Path) -> OnionKey:
    return draw_key(os.urandom)


def _kept_key(home: Path) -> OnionKey:
    return keep_key(home, os.urandom)


@define
class Teller:
    """Says on standard output where the aggregator is and how its studies move."""

    aggregator: AggregatorApp
    asked: Serving
    _console: Console = field(factory=Console)
    _errors: Console = field(factory=lambda: Console(stderr=True))
    _address: str = ""
    _open: asyncio.Event = field(factory=asyncio.Event)
    _seen: dict[bytes, tuple[str, int]] = field(factory=dict)
    _said: dict[bytes, float] = field(factory=dict)
    _invited: set[bytes] = field(factory=set)

    def listening(self, address: str) -> None:
        """The address is open."""
        self._address = address
        self._open.set()
        if self.asked.as_json:
            print_json({"address": address, "key": self.aggregator.home.public_key.hex()})
        else:
            self._print(f"serving at [bold]{address}[/] (Ctrl-C stops; nothing is lost)", soft_wrap=True)
            if is_loopback(address):
                self._print("for peers on this machine alone; people elsewhere need `serve --onion` or `desk --onion`")
            self._print(f"the aggregator's key in words: {words(self.aggregator.home.public_key)}")

    @property
    def address(self) -> str:
        """Host and port, or the onion address, once it is open."""
        return self._address

    async def serving(self) -> None:
        """Returns once the address is open."""
        await self._open.wait()

    def desk(self, link: str) -> None:
        """The staff's pages are there; the link lets one browser in, once."""
        if self.asked.open_desk:
            threading.Thread(target=open_link, args=(link,), daemon=True).start()
        if self.asked.as_json:
            print_json({"desk": link})
        else:
            self._print(f"the desk: {link} (once; `anonml aggregator desk` prints another)", soft_wrap=True)

    def say(self, line: str) -> None:
        """One line about what is being waited for; not part of the output."""
        if not self.asked.as_json:
            self._errors.print(inline(line), style="dim", highlight=False)

    async def watch(self) -> None:
        """Say every change of phase and of how many enrolled; return once all studies have ended, when asked to."""
        await self._open.wait()
        while True:
            statuses = await self.aggregator.status()
            for status in statuses:
                if self.is_news(status):
                    self._phase(status)
                if self.asked.onion and status.phase not in _OVER and self._named_here(status.study):
                    await self._invite(status)
            if self.asked.until_published and _all_ended(statuses) and _over(self.aggregator):
                return
            await asyncio.sleep(0.25)

    def is_news(self, status: StudyStatus) -> bool:
        """Another phase than at the last line; for people also another count, at most every `REPEATED` seconds."""
        now, shown = time.monotonic(), (str(status.phase), status.enrolled)
        phase, enrolled = self._seen.get(status.study, ("", 0))
        late = now - self._said.get(status.study, now) >= REPEATED
        if phase == shown[0] and (self.asked.as_json or enrolled == shown[1] or not late):
            return False
        self._seen[status.study], self._said[status.study] = shown, now
        return True

    def _phase(self, status: StudyStatus) -> None:
        if self.asked.as_json:
            answers = {"enrolment_answers": status.enrolment_answers, "packet_answers": status.packet_answers}
            print_json(study_status(status) | answers | {"at": time.time()})
        else:
            named = f"{status.study.hex()[:8]} {short(status.title)}"
            self._print(f"{named}: [bold]{status.phase}[/], {status.enrolled} enrolled")

    def _named_here(self, study: bytes) -> bool:
        """True if peers of a study go to the address that is served. Says so, once, when they do not."""
        named = self.aggregator.study(study).manifest.addresses
        if self._address not in named and study not in self._invited:
            self._invited.add(study)
            where = f"at {', '.join(named)}" if named else "on this machine alone (published with --loopback)"
            self._errors.print(f"study {study.hex()[:8]} says that it is served {where}: no peer will come to it here")
        return self._address in named

    async def _invite(self, status: StudyStatus) -> None:
        """Once for each study that enrols: everything that somebody needs to join it."""
        if status.study in self._invited or status.phase != "enrolling":
            return
        self._invited.add(status.study)
        manifest = self.aggregator.study(status.study).manifest
        drawn = self.asked.invites if manifest.cohort.admission == "invite" else 1
        invites = await self.aggregator.create_invites(status.study, drawn, self._address)
        if self.asked.as_json:
            links = [invite.link() for invite in invites]
            admission = manifest.cohort.admission
            print_json(study_status(status) | {"admission": admission, "address": self._address, "links": links})
            return
        self._print(f"\n[bold]{short(status.title)}[/]")
        show_study_code(self._console, status.study)
        for line in _ways_in(manifest, invites, self.asked.home):
            self._print(inline(line), soft_wrap=True)

    def _print(self, line: str, *, soft_wrap: bool = False) -> None:
        self._console.print(line, highlight=False, soft_wrap=soft_wrap)


def _ways_in(manifest: Manifest, links: list[Invite], home: Path) -> list[str]:
    """The links of a study, or how to draw them."""
    if not links:
        return [f"invites: anonml aggregator invite --count N --study {manifest.study_id.hex()[:8]} --home {home}"]
    how = {"open": "anybody:", "allow-list": "who is on the list (`anonml aggregator allow KEY`):"}
    return [how.get(manifest.cohort.admission, "one person each:"), *(link.link() for link in links)]


def _all_ended(statuses: list[StudyStatus]) -> bool:
    return bool(statuses) and all(str(status.phase) in _ENDED for status in statuses)


def _over(aggregator: AggregatorApp) -> bool:
    """True if peers had all the time they were promised to find their packets in the transcripts."""
    stopped, now = ("abandoned", "ended"), time.time()
    return all(live.phase in stopped or now > live.manifest.timetable.ends for live in aggregator.studies())


_ENDED = ("published", "abandoned", "ended", "erased")
