"""A teller as a service over HTTP: calls come in, and one at a time is made in a thread of its own.

The journal decides everything; a process that is killed at any time loses no more than an answer, which is asked for
again. Nothing is logged but faults of this machine, and `News` of studies is told. Strangers can reach a teller: who
gives way to whom where they are too many is decided by `anon.serving.giving_way`. A noisy share leaves at a whole
number of steps after it was asked for, and nothing else is answered meanwhile: the time that drawing the noise takes
depends on the noise.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from math import ceil
from pathlib import Path
from typing import TypeVar

from aiohttp import web
from attrs import define, field

from anon.errors import AnonmlError, Damaged, Malformed, NoRoom, Unreachable
from anon.machine.ports import is_free
from anon.route import DirectRoute, FarSide, Route, SocksRoute
from anon.route.tor import TorKeeper, TorRoute
from anon.serving import quiet_http
from anon.serving.door import open_to_all
from anon.serving.onion_key import ONION_KEY, keep_key
from anon.serving.short_posts import Send, ShortPost
from anon.sharing.exchange import CALLS, OPENING_BYTES, PREFIX, WORDS_PATH, fault, read_opening, read_words, reply
from anon.teller.calls import Calls
from anon.teller.home import KEYS_KEPT, TellerHome
from anon.teller.journal import Journal
from anon.teller.news import News
from anon.text.sentences import Term
from anon.transparency.fingerprint import teller_words
from anon.wire.addresses import is_loopback

T = TypeVar("T")
UPLOAD_SECONDS = 300
"""For one body: a roster of 10 MB comes in that time at 35 KB a second."""
ASK_SECONDS = 90.0
"""For the question who answers at this teller's address."""
NOISE_STEP = 2.0
"""Seconds. Drawing the noise of 65,536 entries takes less."""
_BUSY = "this teller is busy; nothing is lost, ask again later"
_LOG = logging.getLogger(__name__)


@define
class Service:
    """Answers the calls of one home. `run` makes it; `fault` is set when the teller must stop. `elapsed`: seconds."""

    words: str
    name: str
    calls: Calls
    worker: ThreadPoolExecutor
    fault: asyncio.Future[None]
    elapsed: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _turn: asyncio.Lock = field(factory=asyncio.Lock)
    _full: bool = False
    _told: set[type[Exception]] = field(factory=set)
    _stopped: bool = False

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer to one request."""
        path = request.rel_url.raw_path
        name = path.removeprefix(PREFIX)
        if request.rel_url.raw_query_string:
            return quiet_http.closing(404)
        if request.method == "GET" and path == WORDS_PATH:
            return quiet_http.closing(200, reply([self.name, self.words]))
        if request.method != "POST" or not path.startswith(PREFIX) or name not in CALLS:
            return quiet_http.closing(404)
        # A call comes with the head of our own aggregators, and is answered by `call`. Of another one no body is read.
        told = f"{name}: expected an aggregator's head, and a stated length of at most {CALLS[name].most_body} bytes"
        return quiet_http.closing(*fault(Malformed(told)))

    def call(self, path: bytes) -> ShortPost | None:
        """The calls, each of which says who asks before its request comes."""
        name = path.decode().removeprefix(PREFIX)
        if not path.startswith(PREFIX.encode()) or name not in CALLS:
            return None

        async def work(body: bytes, send: Send) -> None:
            try:
                said = await self._in_turn(name, body)
            except Exception as error:
                self._note(error)
                send(*fault(error))
            else:
                send(200, said)

        def admit(opening: bytes, length: int, send: Send) -> bytes | None:
            try:
                return self.calls.caller(read_opening(name, opening, length))
            except Exception as error:
                self._note(error)
                send(*fault(error))
                return None

        return ShortPost(CALLS[name].most_body, work, OPENING_BYTES, admit)

    async def _in_turn(self, name: str, body: bytes) -> bytes:
        """One call at a time. It is finished also for an asker who has gone."""
        making = asyncio.ensure_future(self._made(name, body))
        making.add_done_callback(lambda made: made.cancelled() or made.exception())
        return await asyncio.shield(making)

    async def _made(self, name: str, body: bytes) -> bytes:
        async with self._turn:
            if self._stopped:
                raise Unreachable(_BUSY)
            began = self.elapsed()
            try:
                said = await in_thread(self.worker, lambda: self.calls.answer(name, body))
                self._full = False
                return said
            finally:
                if name == "noise":
                    took = self.elapsed() - began
                    await self.sleep(ceil(took / NOISE_STEP) * NOISE_STEP - took)

    async def stop(self) -> None:
        """Finish the call that is being made, and close the journal."""
        self._stopped = True
        async with self._turn:
            await in_thread(self.worker, self.calls.journal.close)

    def _note(self, error: Exception) -> None:
        """Tell the person who runs this teller of faults of this machine, and of nothing else."""
        if isinstance(error, Damaged) and not self.fault.done():
            self.fault.set_exception(error)
        elif isinstance(error, NoRoom):
            if not self._full:
                _LOG.error("%s", error)
            self._full = True
        elif not isinstance(error, AnonmlError) and type(error) not in self._told:
            self._told.add(type(error))  # whoever can repeat a fault of this program writes one line
            _LOG.error("a call failed: %s", type(error).__name__)


async def in_thread(worker: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    """The result of work in the one thread that the journal belongs to."""
    return await asyncio.get_running_loop().run_in_executor(worker, work)


@asynccontextmanager
async def opened(
    home: TellerHome, random_bytes: Callable[[int], bytes], tell: Callable[[News], None] = lambda news: None
) -> AsyncIterator[Service]:
    """The service of a home, which no other process serves meanwhile. Raises `Refused`, `Damaged`, `NoRoom`.

    At the end the call that is being made is finished, and the journal is closed.
    """
    place, held = home.place(), home.lock()
    worker = ThreadPoolExecutor(1, thread_name_prefix="teller")
    try:
        journal = await in_thread(worker, lambda: Journal(home.journal))
        calls = await in_thread(worker, lambda: Calls(home.key, place, journal, random_bytes, home.allowed, tell))
        words = teller_words(bytes(home.key.verify_key))
        broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        service = Service(words, place.name, calls, worker, broken)
        try:
            yield service
        finally:
            if broken.done() and not broken.cancelled():
                broken.exception()  # told where it is waited for
            await asyncio.shield(service.stop())
    finally:
        worker.shutdown(wait=True)
        os.close(held)


async def serve(
    home: TellerHome,
    random_bytes: Callable[[int], bytes],
    ready: Callable[[str], None],
    say: Callable[[str], None] = lambda line: None,
    progress: Callable[[str], None] = lambda line: None,
    tell: Callable[[News], None] = lambda news: None,
) -> None:
    """Answer at the home's own address until cancelled; `ready` hears the address once it answers, and `tell` what
    becomes of studies, in another thread. For `say` and `progress` see `OnionService`. Raises `Damaged` once the
    journal is, `Unreachable` if the address never came up."""
    address = home.place().address
    async with opened(home, random_bytes, tell) as service:
        if is_loopback(address):
            await _at_loopback(service, address, ready)
        else:
            await _at_onion(service, home, address, random_bytes, ready, say, progress)


async def _at_loopback(service: Service, address: str, ready: Callable[[str], None]) -> None:
    host, _, port = address.rpartition(":")
    limits = open_to_all(UPLOAD_SECONDS)
    if not is_free(host.strip("[]"), int(port)):
        made = "one that no study names yet is made anew: `anonml teller init` with another --port and --home"
        raise OSError(errno.EADDRINUSE, f"{address}, at which studies name this teller, is taken; {made}")
    runner, _ = await quiet_http.listen(service.answer, host.strip("[]"), int(port), find=service.call, limits=limits)
    try:
        ready(address)
        await service.fault
    finally:
        await runner.cleanup()


async def _at_onion(
    service: Service,
    home: TellerHome,
    address: str,
    random_bytes: Callable[[int], bytes],
    ready: Callable[[str], None],
    say: Callable[[str], None],
    progress: Callable[[str], None],
) -> None:
    from anon.serving.onion_service import OnionService, leave_socket, socket_of  # late: not needed without Tor

    key = keep_key(home.path, random_bytes)
    if key.address() != address:
        raise KEYS_KEPT.damaged(home.path / ONION_KEY, Term("not the key of this teller's address"))
    socket = socket_of(home.path)
    onion = OnionService(key, f"unix:{socket}", home.path / "tor", SocksRoute, ready, say, progress)
    runner = await quiet_http.listen_unix(service.answer, socket, service.call, open_to_all(UPLOAD_SECONDS))
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(onion.run())
            await service.fault
    finally:
        await runner.cleanup()
        leave_socket(socket)


async def ask_words(home: TellerHome) -> tuple[str, str]:
    """The name and words that answer at this teller's address, over loopback or through a tor of its own, as an
    aggregator comes. Raises `Unreachable`, and `Malformed` for an answer that is not a teller's."""
    address = home.place().address
    if is_loopback(address):
        return await _told_at(DirectRoute(ASK_SECONDS, FarSide.TELLER), address)
    with tempfile.TemporaryDirectory() as folder:
        async with TorKeeper(Path(folder)) as keeper:
            return await _told_at(TorRoute(keeper, ASK_SECONDS, far_side=FarSide.TELLER), address)


async def _told_at(route: Route, address: str) -> tuple[str, str]:
    answer = await route.get(address, WORDS_PATH, 2**12)
    if answer.status != 200:
        raise Malformed("what answers there is no teller")
    return read_words(answer.body)
