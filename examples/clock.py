"""One virtual clock for all processes of a study. It goes on only when none of them has anything due.

1. A file holds the time, in unix seconds. Every process of the study reads it, and only the `Keeper` writes it.
2. A process that sleeps by this clock is a `Party`. It is idle when its event loop has nothing to do, no exchange of
   it is under way, no child computes for it, and something in it sleeps. Then it tells the keeper its next due instant.
   A program with a database has `Shifts`: a database works in threads of its own, which no event loop knows.
3. Once every party is idle, the keeper sets the time to the earliest due instant, and wakes whoever is due.
4. Parties may run `ahead` of the file by some seconds, like machines whose clocks differ. So both cores have work.
5. A party that `bars` has the time for itself: nobody else passes its due instant before it is idle again.

So no load of the machine makes anything late: a deadline of this clock never passes while work for it goes on.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import math
import mmap
import selectors
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeVar

from attrs import define, field, frozen

from anon.route import Response, Route

_SECONDS = struct.Struct("<d")
_T = TypeVar("_T")
START = 1_700_000_000.0
"""The first instant, in unix seconds, where nobody names another."""
BEFORE = 1e-3
"""Seconds by which the others stop short of the instant of a party that bars."""
STOPPING = 5.0


@define
class Clock:
    """Unix seconds of one process that only their holder moves; a sleeper moves them to its own end at once."""

    seconds: float = START

    def __call__(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        """Awake, that much later."""
        self.seconds += max(0.0, seconds)


class ClockFile:
    """The time in a file, in unix seconds. It outlives every process, and each opens it by its path."""

    def __init__(self, path: Path, start: float = START) -> None:
        self.path = path
        if not path.exists():
            path.write_bytes(_SECONDS.pack(start))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _SECONDS.size)

    def __call__(self) -> float:
        """Unix seconds."""
        return float(_SECONDS.unpack(self._map[:])[0])

    def set(self, seconds: float) -> None:
        """Only the keeper moves the time."""
        self._map[:] = _SECONDS.pack(seconds)


@define
class _Seat:
    """The keeper's side of one party. `due` is None while the party works."""

    channel: socket.socket
    bars: bool = False
    due: float | None = None
    unread: bytes = b""

    def lines(self) -> Iterator[dict[str, Any]]:
        """The messages that have come. Raises `EOFError` at the end of the channel."""
        received = self.channel.recv(2**16)
        if not received:
            raise EOFError
        *whole, self.unread = (self.unread + received).split(b"\n")
        yield from map(json.loads, whole)

    def wake(self, until: float) -> None:
        """The party may run on to this instant."""
        self.due = None
        with suppress(OSError):
            self.channel.sendall(json.dumps({"until": until}).encode() + b"\n")


@frozen
class Turn:
    """The time of the next turn, how far its parties may run, and whether those that bar have it for themselves."""

    time: float
    until: float
    barred: bool

    @classmethod
    def of(cls, dues: list[tuple[float, bool]], ahead: float) -> Turn:
        """The turn after all parties named their due instant, each with whether it bars."""
        first = min(due for due, _ in dues)
        bar = min((due for due, bars in dues if bars), default=math.inf)
        if bar <= first:
            return cls(first, first, True)
        return cls(first, max(first, min(first + ahead, bar - BEFORE)), False)

    def wakes(self, due: float, bars: bool) -> bool:
        """True for a party that has something to do in this turn."""
        return due <= self.until and (bars or not self.barred)


class Keeper:
    """Moves the clock of a study, in a thread of its own, from when so many `parties` have joined.

    A party whose process dies holds the clock until another comes in its place, or until it is `released`.
    """

    def __init__(self, file: Path, parties: int, ahead: float = 0.0, start: float = START) -> None:
        self.clock = ClockFile(file, start)
        self._parties, self._ahead = parties, ahead
        self._seats: list[_Seat] = []
        self._ended = 0
        self._held = threading.Event()
        self._stopping = threading.Event()
        self._folder = TemporaryDirectory(prefix="anonml-clock-")
        self.place = Path(self._folder.name) / "keeper"
        """The socket at which parties join."""

    def __enter__(self) -> Self:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.place))
        self._listener.listen(64)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="clock", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(STOPPING)
        for channel in (self._listener, *(seat.channel for seat in self._seats)):
            channel.close()
        self._selector.close()
        self._folder.cleanup()

    @contextmanager
    def held(self) -> Iterator[None]:
        """The time stands still."""
        self._held.set()
        try:
            yield
        finally:
            self._held.clear()

    def _run(self) -> None:
        while not self._stopping.is_set():
            for key, _ in self._selector.select(0.1):
                self._joined() if key.data is None else self._heard(key.data)
            if not self._selector.select(0) and self._all_idle() and not self._held.is_set():
                self._go_on()

    def _joined(self) -> None:
        channel, _ = self._listener.accept()
        seat = _Seat(channel)
        self._seats.append(seat)
        self._selector.register(channel, selectors.EVENT_READ, seat)

    def _heard(self, seat: _Seat) -> None:
        try:
            for said in seat.lines():
                seat.bars = said.get("bars", seat.bars)
                seat.due = said.get("due", seat.due)
                self._ended += "over" in said
        except (EOFError, OSError):
            self._selector.unregister(seat.channel)
            self._seats.remove(seat)
            seat.channel.close()

    def _all_idle(self) -> bool:
        there = len(self._seats) + self._ended
        return bool(self._seats) and there >= self._parties and all(seat.due is not None for seat in self._seats)

    def _go_on(self) -> None:
        turn = Turn.of([(seat.due or 0.0, seat.bars) for seat in self._seats], self._ahead)
        self.clock.set(max(self.clock(), turn.time))
        for seat in self._seats:
            if turn.wakes(seat.due or 0.0, seat.bars):
                seat.wake(turn.until)


class Party:
    """A process's part in the clock. Make its event loop with `loop`, and pass `sleep` and the party itself as `now`.

        with asyncio.Runner(loop_factory=party.loop) as runner: ...
    """

    def __init__(self, file: Path, keeper: Path | int, bars: bool = False) -> None:
        """`keeper`: its socket, or a port of this machine that leads there: Windows' Python has no such sockets."""
        self._clock = ClockFile(file)
        self._until = self._clock()
        self._sleeping: list[tuple[float, int, asyncio.Future[None]]] = []
        self._number = self._holds = 0
        self._told: float | None = None
        self._unread = b""
        if isinstance(keeper, int):
            self._channel = socket.create_connection(("127.0.0.1", keeper))
        else:
            self._channel = socket.socket(socket.AF_UNIX)
            self._channel.connect(str(keeper))
        self._say(bars=bars)

    def __call__(self) -> float:
        """Unix seconds."""
        return self._clock()

    async def sleep(self, seconds: float) -> None:
        """Awake, so many seconds later."""
        await self.until(self() + seconds)

    async def until(self, due: float) -> None:
        """Awake at this instant (unix seconds), at once if it may be reached already."""
        if due <= max(self._until, self()):
            await asyncio.sleep(0)
            return
        awake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._number += 1
        heapq.heappush(self._sleeping, (due, self._number, awake))
        await awake

    @contextmanager
    def held(self) -> Iterator[None]:
        """The block is work of this process: the time does not go on meanwhile."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1

    def over(self) -> None:
        """This process has nothing more to do, and holds nothing up."""
        self._say(over=True)
        self._channel.close()

    def loop(self) -> asyncio.AbstractEventLoop:
        """An event loop that tells the keeper when it has nothing to do."""
        loop = _Loop(self)
        loop.add_reader(self._channel.fileno(), self._heard)
        return loop

    def idle(self) -> None:
        """The loop is about to wait. Tell the keeper, unless something is under way or nothing sleeps."""
        while self._sleeping and self._sleeping[0][2].done():
            heapq.heappop(self._sleeping)
        if self._holds or not self._sleeping or self._told == self._sleeping[0][0]:
            return
        self._told = self._sleeping[0][0]
        self._say(due=self._told)

    def _heard(self) -> None:
        received = self._channel.recv(2**16)
        if not received:  # the keeper has stopped, and with it the time
            asyncio.get_running_loop().remove_reader(self._channel.fileno())
            return
        *whole, self._unread = (self._unread + received).split(b"\n")
        for line in whole:
            self._until, self._told = json.loads(line)["until"], None
        while self._sleeping and self._sleeping[0][0] <= self._until:
            awake = heapq.heappop(self._sleeping)[2]
            if not awake.done():
                awake.set_result(None)

    def _say(self, **said: object) -> None:
        with suppress(OSError):
            self._channel.sendall(json.dumps(said).encode() + b"\n")


class _Selector(selectors.DefaultSelector):
    """Calls `idle` each time before it waits."""

    def __init__(self, idle: Callable[[], None]) -> None:
        super().__init__()
        self._idle = idle

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """See `selectors.BaseSelector.select`."""
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        if ready := super().select(0):
            return ready
        self._idle()
        return super().select(timeout)


class _Loop(asyncio.SelectorEventLoop):
    """The loop of a party. Work in threads that the loop hands out holds the clock."""

    def __init__(self, party: Party) -> None:
        super().__init__(_Selector(party.idle))
        self._party = party

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., _T], *args: Any
    ) -> asyncio.Future[_T]:
        """See `asyncio.loop.run_in_executor`."""
        holding = self._party.held()
        holding.__enter__()
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(lambda _: holding.__exit__(None, None, None))
        return future


@define
class Timepiece:
    """The clock of one machine among those of its process: it shows the instant at which that machine last woke."""

    party: Party
    _at: float = field(default=0.0, init=False)
    _working: AbstractContextManager[None] | None = field(default=None, init=False)

    def __call__(self) -> float:
        """Unix seconds."""
        return max(self._at, self.party())

    async def sleep(self, seconds: float) -> None:
        """Awake, so many seconds later. Where the machine works, it does not while it sleeps."""
        await self.until(self() + seconds)

    async def until(self, due: float) -> None:
        """Awake at this instant (unix seconds)."""
        working = self._working is not None
        if working:
            self._end()
        await self.party.until(due)
        self._at = max(self._at, due)
        if working:
            self._begin()

    @contextmanager
    def working(self) -> Iterator[None]:
        """The machine works in this block: the time does not go on, but while it sleeps."""
        self._begin()
        try:
            yield
        finally:
            self._end()

    def _begin(self) -> None:
        self._working = self.party.held()
        self._working.__enter__()

    def _end(self) -> None:
        if self._working is not None:
            self._working.__exit__(None, None, None)
            self._working = None


@define
class Shifts:
    """The sleep of a program whose tasks work from one sleep to the next: the time stands still until all sleep again.

    A loop does not see what a thread that it did not hand out does for it, as that of a database. A task that sleeps by
    this waits for no other task's sleep: the clock would stand still for good.
    """

    party: Party
    _at_work: dict[asyncio.Task[Any], AbstractContextManager[None]] = field(factory=dict, init=False)

    async def sleep(self, seconds: float) -> None:
        """Awake, so many seconds later. The task works from then on, until it sleeps again or ends."""
        task = asyncio.current_task()
        assert task is not None
        self._end(task)
        await self.party.sleep(seconds)
        self._at_work[task] = working = self.party.held()
        working.__enter__()
        task.remove_done_callback(self._end)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[Any]) -> None:
        if (working := self._at_work.pop(task, None)) is not None:
            working.__exit__(None, None, None)


@frozen
class HeldRoute:
    """A route whose exchanges hold the clock: what the other side does for them is part of the exchange."""

    inner: Route
    party: Party

    async def get(self, address: str, path: str, limit: int) -> Response:
        """See `Route.get`."""
        with self.party.held():
            return await self.inner.get(address, path, limit)

    async def post(self, address: str, path: str, body: bytes, limit: int) -> Response:
        """See `Route.post`."""
        with self.party.held():
            return await self.inner.post(address, path, body, limit)
