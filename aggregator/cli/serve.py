"""`anonml aggregator serve`: answer peers at a loopback address, or as an onion service in Tor."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from attrs import define, field, frozen
from rich.text import Text

from aggregator.app import AggregatorApp
from aggregator.cli.fellows import Fellows
from aggregator.cli.fingerprint import show_study_code
from aggregator.network.onion_address import address_of_links
from aggregator.opening import DEFAULT_HOME, HomeOption, IncompleteOption, RestoredOption, study_status
from aggregator.rules.faults import DatabaseAway, in_words
from aggregator.store.duplicate_home import RestoredWord
from aggregator.study.status import StudyStatus
from anon.errors import Refused
from anon.kit.page.browser import open_link
from anon.kit.terminal.foreign import inline, short
from anon.kit.terminal.logs import beginning, with_times
from anon.kit.terminal.options import JsonOption, finished, print_json
from anon.kit.terminal.printing import Terminal, styled
from anon.kit.terminal.progress import on_one_line
from anon.kit.terminal.wiring import Wiring, wiring_of
from anon.machine.clock import Leaps
from anon.machine.guard import Guard
from anon.machine.ports import is_free
from anon.serving.onion_key import OnionKey, draw_key, keep_keys
from anon.study.manifest import Manifest
from anon.transparency.fingerprint import words
from anon.wire.addresses import MOST_ADDRESSES, addresses_of, is_loopback
from anon.wire.invite import Invite

ServeDesk = Callable[[AggregatorApp, int, Callable[[str], None]], Awaitable[None]]
"""Serves the staff's pages at a port of this machine, and says the link."""
HOST, HTTP_PORT = "127.0.0.1", 8750
LOOK_SECONDS = 0.25
REPEATED = 5.0
"""Seconds between two lines that differ by the number enrolled alone."""
_LOG = logging.getLogger(__name__)
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
    restored: RestoredWord = RestoredWord.NOTHING
    workers: int = 1
    onions: int = 0

    def keys(self, home: Path) -> tuple[OnionKey, ...]:
        """The keys of the onion services: of this run alone, or kept in the home."""
        if self.ephemeral:
            return tuple(draw_key(os.urandom) for _ in range(max(1, self.onions)))
        return keep_keys(home, os.urandom, self.onions)


def serve(
    context: typer.Context,
    home: HomeOption = DEFAULT_HOME,
    host: Annotated[
        str | None, typer.Option(help=f"Address to listen on ({HOST}); loopback unless you know better.")
    ] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help=f"Port ({HTTP_PORT}); 0 picks a free one.")] = None,
    onion: Annotated[bool, typer.Option("--onion", help="Serve as a Tor onion service, and nowhere else.")] = False,
    onions: Annotated[
        int,
        typer.Option(min=0, max=MOST_ADDRESSES, help="With --onion: so many addresses, a tor each; 0: all it has."),
    ] = 0,
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
    incomplete: IncompleteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Answer peers and carry every study to its end, until stopped (Ctrl-C). Safe to stop or kill at any time.

    With --onion nothing listens at a network address but, with --workers, a port of this machine's loopback: peers come
    through Tor, and what they need to join is printed once the addresses answer.
    """
    with_times()
    if onion and (host is not None or port is not None):
        raise Refused("--onion listens at no network address; leave --host and --port out, or serve without --onion")
    if not onion and (ephemeral or invites or onions):
        raise Refused("--onions, --ephemeral and --invites go with --onion; add it, or use `anonml aggregator invite`")
    if incomplete and not restored:
        raise Refused("--incomplete goes with --restored, after a restore; leave it out")
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
        RestoredWord(restored + incomplete),
        workers,
        onions,
    )
    with suppress(KeyboardInterrupt, asyncio.CancelledError):
        finished(_serve(serving, processes, Fellows(home, workers - 1, processes), wiring_of(context)))
    if not as_json:
        with suppress(OSError):
            console = Terminal()
            console.print(f"{beginning(console.file)}stopped; nothing is lost", soft_wrap=True)


async def _serve(asked: Serving, processes: int, fellows: Fellows, wiring: Wiring) -> None:
    desk = None if asked.desk_port is None else wiring.one("the desk")
    if asked.desk_port is not None:
        own = {} if asked.onion else {"--port": (asked.host, asked.port)}
        _demand_free({**own, "--desk-port": (HOST, asked.desk_port)})
    async with AggregatorApp(asked.home, processes=processes) as aggregator:
        await served(aggregator, asked, fellows, desk)


def _demand_free(places: Mapping[str, tuple[str, int]]) -> None:
    """Raises `Refused` that names each port that is taken, by option, before anything is said to be served."""
    taken = [f"port {port} ({option})" for option, (host, port) in places.items() if not is_free(host, port)]
    if taken:
        are = "is" if len(taken) == 1 else "are"
        raise Refused(f"{' and '.join(taken)} {are} taken; name another, or 0 for a free one")


async def served(
    aggregator: AggregatorApp, asked: Serving, fellows: Fellows, desk: ServeDesk | None = None
) -> None:
    """Serve until SIGTERM, or until all is published where that is asked for. Raises whatever keeps it from that."""
    if fellows.count:
        aggregator.demand_shared()
    teller = ServeReporter(aggregator, asked)
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


async def _with_fellows(fellows: Fellows, teller: ServeReporter) -> None:
    await teller.serving()
    with fellows.ended():
        await fellows.keep(teller.asked.host, teller.port)


async def _with_desk(desk: ServeDesk, aggregator: AggregatorApp, serving: Serving, teller: ServeReporter) -> None:
    await teller.serving()
    await desk(aggregator, serving.desk_port or 0, teller.desk)


def _listening(aggregator: AggregatorApp, serving: Serving, teller: ServeReporter) -> Coroutine[Any, Any, None]:
    if not serving.onion:
        def ready(bound: int) -> None:
            teller.bound(bound)
            teller.listening(f"{serving.host}:{bound}")

        return aggregator.serve(serving.host, serving.port, ready, serving.restored, serving.workers > 1)
    bound = teller.bound if serving.workers > 1 else None
    return aggregator.serve_onion(
        serving.keys, teller.listening, teller.say, on_one_line, serving.restored, bound
    )


@define
class ServeReporter:
    """Says on standard output where the aggregator is and how its studies move."""

    aggregator: AggregatorApp
    asked: Serving
    _console: Terminal = field(factory=Terminal)
    _errors: Terminal = field(factory=lambda: Terminal(stderr=True))
    _address: str = ""
    _port: int = 0
    _open: asyncio.Event = field(factory=asyncio.Event)
    _seen: dict[bytes, tuple[str, str]] = field(factory=dict)
    _said: dict[bytes, float] = field(factory=dict)
    _invited: set[bytes] = field(factory=set)
    _elsewhere: set[bytes] = field(factory=set)

    def bound(self, port: int) -> None:
        """The port at which this process listens, and further ones may."""
        self._port = port

    def listening(self, address: str) -> None:
        """The address is open, or several with one space between two."""
        self._address = address
        self._open.set()
        named = addresses_of(address)
        if self.asked.as_json:
            key = self.aggregator.home.public_key.hex()
            print_json({"address": named[0], "addresses": list(named), "key": key})
        else:
            where = " and ".join(named)
            line = styled("serving at [bold]{where}[/] (Ctrl-C stops; nothing is lost)", where=where)
            self._timed(line)
            if is_loopback(address):
                self._timed("for peers on this machine alone; people elsewhere need `serve --onion` or `desk --onion`")
            self._timed(f"the aggregator's key in words: {words(self.aggregator.home.public_key)}")

    @property
    def port(self) -> int:
        """The port at which this process listens, 0 for a socket file."""
        return self._port

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
            self._timed(f"the desk: {link} (once; `anonml aggregator desk` prints another)")

    def say(self, line: str) -> None:
        """One line about what is being waited for; not part of the output."""
        if not self.asked.as_json:
            self._errors.print(Text(beginning(self._errors.file) + inline(line), "dim"), soft_wrap=True)

    async def watch(self) -> None:
        """Say every change of phase and of how many enrolled; return once all studies have ended, when asked to."""
        await self._open.wait()
        guard, leaps = Guard("the lines of this command", words=in_words, elsewhere=(DatabaseAway,)), Leaps()
        while True:
            with guard.turn():
                if leapt := leaps.look():
                    _LOG.warning("%s", leapt)
                statuses = await self.aggregator.status()
                for status in statuses:
                    await self._tell(status)
                if self.asked.until_published and _all_ended(statuses) and _over(self.aggregator):
                    return
            await self.aggregator.sleep(guard.pause or LOOK_SECONDS)

    async def _tell(self, status: StudyStatus) -> None:
        before, _ = self._seen.get(status.study, ("", ""))
        if self.is_news(status):
            self._phase(status, grown=before == str(status.phase))
        read = status.study in {live.study for live in self.aggregator.studies()}
        if self.asked.onion and read and status.phase not in _OVER and self._named_here(status.study):
            await self._invite(status)

    def is_news(self, status: StudyStatus) -> bool:
        """Another phase than at the last line; for people also another count, at most every `REPEATED` seconds."""
        now, shown = time.monotonic(), (str(status.phase), _enrolled(status))
        phase, enrolled = self._seen.get(status.study, ("", ""))
        late = now - self._said.get(status.study, now) >= REPEATED
        if phase == shown[0] and (self.asked.as_json or enrolled == shown[1] or not late):
            return False
        self._seen[status.study], self._said[status.study] = shown, now
        return True

    def _phase(self, status: StudyStatus, grown: bool = False) -> None:
        """`grown`: the count alone is another, by whoever enrolled last."""
        if self.asked.as_json:
            answers = {"enrolment_answers": status.enrolment_answers, "packet_answers": status.packet_answers}
            print_json(study_status(status) | answers | {"at": time.time()})
        else:
            named, enrolled = f"{status.study.hex()[:8]} {short(status.title)}", _enrolled(status)
            said = styled("{study}: [bold]{phase}[/], {said}", study=named, phase=status.phase, said=enrolled)
            self._timed(said, of_one=grown)

    def _named_here(self, study: bytes) -> bool:
        """True if peers of a study go to an address that is served. Says once which are not, and if they all are."""
        named, served = self.aggregator.study(study).manifest.addresses, addresses_of(self._address)
        here, elsewhere = [name for name in named if name in served], [name for name in named if name not in served]
        if (elsewhere or not named) and study not in self._elsewhere:
            self._elsewhere.add(study)
            where = f"at {', '.join(elsewhere)}" if named else "on this machine alone (published with --loopback)"
            lost = "whatever its peers send there is lost unless another machine serves it" if here else (
                "no peer will come to it here"
            )
            said = f"study {study.hex()[:8]} says that it is served {where}: {lost}"
            self._errors.print(beginning(self._errors.file) + said, soft_wrap=True)
        return bool(here)

    async def _invite(self, status: StudyStatus) -> None:
        """Once for each study that enrols: everything that somebody needs to join it."""
        if status.study in self._invited or status.phase != "enrolling":
            return
        manifest = self.aggregator.study(status.study).manifest
        drawn = self.asked.invites if manifest.cohort.admission == "invite" else 1
        where = address_of_links(self._address, manifest.address)
        invites = await self.aggregator.create_invites(status.study, drawn, where)
        self._invited.add(status.study)
        if self.asked.as_json:
            links = [invite.link() for invite in invites]
            admission = manifest.cohort.admission
            print_json(study_status(status) | {"admission": admission, "address": where, "links": links})
            return
        self._console.print(styled("\n[bold]{title}[/]", title=short(status.title)))
        show_study_code(self._console, status.study)
        for line in _ways_in(manifest, invites, self.asked.home):
            self._console.print(inline(line), soft_wrap=True)  # links to be copied, without a time

    def _timed(self, line: str | Text, of_one: bool = False) -> None:
        self._console.print(Text.assemble(beginning(self._console.file, of_one), line), soft_wrap=True)


def _enrolled(status: StudyStatus) -> str:
    return f"{status.enrolled} enrolled" + (", the minimum is reached" if status.enough else "")


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
