"""`anonml aggregator serve`: answer peers at a loopback address, or as an onion service in Tor."""

from __future__ import annotations

import asyncio
import os
import signal
import time
import webbrowser
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from attrs import define, field, frozen
from rich.console import Console
from rich.markup import escape

from aggregator.app import AggregatorApp, StudyStatus
from aggregator.cli.fingerprint import show_study_code
from aggregator.cli.options import DEFAULT_HOME, HomeOption, JsonOption, out, run, study_status
from aggregator.onion_key import OnionKey, draw_key, keep_key
from anon.addresses import is_loopback
from anon.connecting import on_one_line
from anon.errors import Refused
from anon.fingerprint import words
from anon.invite import Invite
from anon.study.manifest import Manifest

HOST, HTTP_PORT = "127.0.0.1", 8750
_OVER = ("published", "abandoned", "erased")


@frozen
class Serving:
    """What was asked of `serve`."""

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


def serve(
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
    processes: Annotated[int, typer.Option(help="Worker processes that verify tokens.")] = 1,
    until_published: Annotated[
        bool, typer.Option(help="Stop once every study has ended and its peers had time to fetch.")
    ] = False,
    desk_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Also show the staff's pages, at this port of this machine; see `desk`."),
    ] = None,
    open_desk: Annotated[bool, typer.Option(hidden=True)] = False,
    as_json: JsonOption = False,
) -> None:
    """Answer peers and carry every study to its end, until stopped (Ctrl-C). Safe to stop or kill at any time.

    With --onion nothing listens at a network address: peers come through Tor, and what they need to join is printed
    once the address answers.
    """
    if onion and (host is not None or port is not None):
        raise Refused("--onion listens at no network address; leave --host and --port out, or serve without --onion")
    if not onion and (ephemeral or invites):
        raise Refused("--ephemeral and --invites go with --onion; add it, or use `anonml aggregator invite`")
    asked = Serving(
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
    )
    with suppress(KeyboardInterrupt, asyncio.CancelledError):
        run(_serve(asked, processes))


async def _serve(asked: Serving, processes: int) -> None:
    async with AggregatorApp(asked.home, processes=processes) as aggregator:
        teller = Teller(aggregator, asked)
        serving = asyncio.create_task(_listening(aggregator, asked, teller))
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):
            loop.add_signal_handler(signal.SIGTERM, serving.cancel)
        tasks = {serving, asyncio.create_task(teller.watch())}
        if asked.desk_port is not None:
            tasks.add(asyncio.create_task(_desk(aggregator, asked, teller)))
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            if not task.cancelled():
                task.result()


async def _desk(aggregator: AggregatorApp, asked: Serving, teller: Teller) -> None:
    from aggregator.desk.server import serve_desk  # late: a server without a desk needs no templates

    await teller.serving()
    await serve_desk(aggregator, asked.desk_port or 0, teller.desk)


def _listening(aggregator: AggregatorApp, asked: Serving, teller: Teller) -> Coroutine[Any, Any, None]:
    if not asked.onion:
        return aggregator.serve(asked.host, asked.port, lambda bound: teller.listening(f"{asked.host}:{bound}"))
    key_of = _passing_key if asked.ephemeral else _kept_key
    return aggregator.serve_onion(key_of, teller.listening, teller.say, on_one_line)


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
    _seen: dict[bytes, str] = field(factory=dict)
    _invited: set[bytes] = field(factory=set)

    def listening(self, address: str) -> None:
        """The address is open."""
        self._address = address
        self._open.set()
        if self.asked.as_json:
            out({"address": address, "key": self.aggregator.home.public_key.hex()})
        else:
            self._print(f"serving at [bold]{address}[/] (Ctrl-C stops; nothing is lost)", soft_wrap=True)
            if is_loopback(address):
                self._print("for peers on this machine alone; people elsewhere need `serve --onion` or `desk --onion`")
            self._print(f"the aggregator's key in words: {words(self.aggregator.home.public_key)}")

    async def serving(self) -> None:
        """Returns once the address is open."""
        await self._open.wait()

    def desk(self, link: str) -> None:
        """The staff's pages are there; the link lets one browser in, once."""
        if self.asked.open_desk:
            webbrowser.open(link)
        if self.asked.as_json:
            out({"desk": link})
        else:
            self._print(f"the desk: {link} (once; `anonml aggregator desk` prints another)", soft_wrap=True)

    def say(self, line: str) -> None:
        """One line about what is being waited for; not part of the output."""
        if not self.asked.as_json:
            self._errors.print(escape(line), style="dim", highlight=False)

    async def watch(self) -> None:
        """Say every change of phase; return once all studies have ended, when asked to."""
        await self._open.wait()
        while True:
            statuses = await self.aggregator.status()
            for status in statuses:
                if self._seen.get(status.study) != str(status.phase):
                    self._seen[status.study] = str(status.phase)
                    self._phase(status)
                if self.asked.onion and status.phase not in _OVER and self._named_here(status.study):
                    await self._invite(status)
            if self.asked.until_published and _all_ended(statuses) and _over(self.aggregator):
                return
            await asyncio.sleep(0.25)

    def _phase(self, status: StudyStatus) -> None:
        if self.asked.as_json:
            answers = {"enrolment_answers": status.enrolment_answers, "packet_answers": status.packet_answers}
            out(study_status(status) | answers | {"at": time.time()})
        else:
            named = f"{status.study.hex()[:8]} {escape(status.title)}"
            self._print(f"{named}: [bold]{status.phase}[/], {status.enrolled} enrolled")

    def _named_here(self, study: bytes) -> bool:
        """Whether peers of a study go to the address that is served. Says so, once, when they do not."""
        named = self.aggregator.study(study).manifest.address
        if named != self._address and study not in self._invited:
            self._invited.add(study)
            where = f"at {named}" if named else "on this machine alone (published with --loopback)"
            self._errors.print(f"study {study.hex()[:8]} says that it is served {where}: no peer will come to it here")
        return named == self._address

    async def _invite(self, status: StudyStatus) -> None:
        """Once for each study that enrols: everything that somebody needs to join it."""
        if status.study in self._invited or status.phase != "enrolling":
            return
        self._invited.add(status.study)
        manifest = self.aggregator.study(status.study).manifest
        drawn = self.asked.invites if manifest.cohort.admission == "invite" else 1
        found = await self.aggregator.create_invites(status.study, drawn, self._address)
        if self.asked.as_json:
            links = [one.link() for one in found]
            admission = manifest.cohort.admission
            out(study_status(status) | {"admission": admission, "address": self._address, "links": links})
            return
        self._print(f"\n[bold]{escape(status.title)}[/]")
        show_study_code(self._console, status.study)
        for line in _ways_in(manifest, found, self.asked.home):
            self._print(escape(line), soft_wrap=True)

    def _print(self, line: str, *, soft_wrap: bool = False) -> None:
        self._console.print(line, highlight=False, soft_wrap=soft_wrap)


def _ways_in(manifest: Manifest, links: list[Invite], home: Path) -> list[str]:
    """The links of a study, or how to draw them."""
    if not links:
        return [f"invites: anonml aggregator invite --count N --study {manifest.study_id.hex()[:8]} --home {home}"]
    how = {"open": "anybody:", "allow-list": "who is on the list (`anonml aggregator allow KEY`):"}
    return [how.get(manifest.cohort.admission, "one person each:"), *(one.link() for one in links)]


def _all_ended(statuses: list[StudyStatus]) -> bool:
    return bool(statuses) and all(str(one.phase) in _ENDED for one in statuses)


def _over(aggregator: AggregatorApp) -> bool:
    """Whether peers had all the time they were promised to find their packets in the transcripts."""
    return all(live.phase == "abandoned" or time.time() > live.manifest.timetable.ends for live in aggregator.studies())


_ENDED = ("published", "abandoned", "erased")
