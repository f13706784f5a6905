"""Work in a child process, from the side that holds the keys: the queries of a study, and whatever else is `Work`.

One server of `anon.queries.child` serves a process, however many peers live in it. It is started when first needed,
and again when it has died, in a thread of its own: an event loop that sends packets never waits for it. On Windows
there is no server, and each child is a program of its own (`anon.queries.windows`). Nothing here waits for a child
either: `by_deadline` takes up the message that is there at the deadline, and no earlier. So how and when the child
ended is seen by nobody. It is taken up as bytes, and nothing is read in them here. A message that no socket holds is
gathered meanwhile, in a thread of its own. `at_once` is for what stays on this machine: it returns when the child has
ended, or at the deadline.

Some systems have no child processes: iOS, Android, an interpreter without a program of its own. There the work is done
in a thread of this process. Queries are bounded by instructions, the clock and the growth of memory alone
(docs/threats.md).
"""

from __future__ import annotations

import asyncio
import atexit
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from attrs import field

import anon
from anon.queries import windows
from anon.queries.answers import Request, Value, answered, parse_answers
from anon.queries.child import COPY_MEMORY, LENGTH, SECONDS, SHARE
from anon.queries.sandbox import opened
from anon.values import frozen

Sleep = Callable[[float], Awaitable[object]]

WORD = "--evaluate-queries"
"""The only argument of a program that brings its Python along, when it is to be the server (`evaluates`)."""
IN_A_SOCKET = 2**14
"""Bytes of a message that a child can write before anybody reads."""
_PROGRAM = "import sys; sys.path[:0] = {paths}; from {module} import main; main()"


def has_children() -> bool:
    """True if queries are evaluated in child processes here."""
    return sys.platform not in ("android", "ios", "emscripten", "wasi") and bool(sys.executable)


class Server:
    """A server of this process, of one kind of work. Safe to use from several threads.

    `module`: has its `main`; `word`: tells a program that brings its Python along to be it; `paths`: where its Python
    finds packages, all absolute.
    """

    def __init__(self, module: str, word: str, paths: Callable[[], list[str]]) -> None:
        self._module, self._word, self._paths = module, word, paths
        self.forget()
        _SERVERS.append(self)

    def forget(self) -> None:
        """After a fork: the server is the parent's."""
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def start(self) -> None:
        """Start it, unless it runs; it is ready a moment later, and takes requests at once."""
        if sys.platform != "win32":
            with self._lock:
                self._started()

    def begin(self, seconds: float) -> socket.socket:
        """The socket of a new child, which lives for at most so long. One that could not be made reads as ended."""
        ours, theirs = socket.socketpair()
        self.serve(theirs, seconds)
        return ours

    def serve(self, channel: socket.socket, seconds: float) -> None:
        """Give this end of a pair to a new child, which lives for at most so long; it is closed here in any case."""
        with channel, self._lock, suppress(OSError):
            if sys.platform == "win32":  # which has no server: every child is a program of its own
                windows.spawn(self.command(), SECONDS.pack(seconds), channel, seconds, 2 * COPY_MEMORY)
                return
            for _ in range(2):  # it may have been killed since it was last looked at
                with suppress(BrokenPipeError, ConnectionResetError):
                    socket.send_fds(self._started(), [SECONDS.pack(seconds)], [channel.fileno()])
                    break

    def stop(self) -> None:
        """End it, and with it every child. The next evaluation starts another."""
        with self._lock:
            if self._control is not None:
                self._control.close()
            if self._process is not None:
                self._process.wait()
            self._control = self._process = None

    def _started(self) -> socket.socket:
        if self._control is not None and self._process is not None and self._process.poll() is None:
            return self._control
        if self._control is not None:
            self._control.close()
        self._process, (self._control, theirs) = None, socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603, our own program
                self.command(), stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                # In a session of its own no Ctrl-C of a terminal reaches the server: it ends with its socket alone.
                env={}, cwd="/", close_fds=True, start_new_session=True,
            )
        return self._control

    def command(self) -> list[str]:
        """The program and its arguments."""
        if getattr(sys, "frozen", False) or not Path(sys.executable).name.lower().startswith(("python", "pypy")):
            return [sys.executable, self._word]
        program = _PROGRAM.format(paths=ascii(self._paths()), module=self._module)
        return [interpreter(), "-I", "-S", "-B", "-c", program]


def interpreter() -> str:
    """The Python itself: on Windows an environment's own one is a program that starts it."""
    return getattr(sys, "_base_executable", "") or sys.executable if sys.platform == "win32" else sys.executable


def _of_this_package() -> list[str]:
    # The program needs Python's own library beside it: whatever it imported, each evaluation would wait for.
    return [str(Path(anon.__file__).resolve().parents[1])]


def packages() -> list[str]:
    """Where this Python finds packages: for a server that needs more than those of `anon.queries`."""
    return [str(Path(path).resolve()) for path in sys.path if path and Path(path).exists()]


def evaluates(arguments: list[str]) -> bool:
    """True if this program was started to be the server; if so, it has served when this returns."""
    if arguments != [WORD]:
        return False
    from anon.queries.child import main

    main()
    return True


_SERVERS: list[Server] = []


def _each(does: Callable[[Server], None]) -> None:
    for server in _SERVERS:
        does(server)


_SERVER = Server("anon.queries.child", WORD, _of_this_package)
atexit.register(_each, Server.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _each(Server.forget))


@frozen
class Work:
    """Something to be done away from the keys. `told`: the request, for a child of the server. `size`: bytes of the
    message, whatever comes of it. `here`: the same in a thread of this process, in at most so many seconds. `foreign`:
    it runs what somebody else wrote."""

    server: Server = field(repr=False)
    told: bytes = field(repr=False)
    size: int
    here: Callable[[float], bytes] = field(repr=False)
    foreign: bool = False


def queries(request: Request) -> Work:
    """The queries of a request."""
    return Work(_SERVER, request.to_bytes(), request.size, lambda seconds: _here(request, seconds), foreign=True)


async def start() -> None:
    """Have the servers ready before they are needed. Until its program runs, a server's process shares every lock of
    this one, so that is waited for, away from the loop."""
    if not has_children():
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def started() -> None:
        try:
            _each(Server.start)
        finally:
            # An asyncio.Event may be set by its own loop alone (CPython's documentation: not thread-safe).
            loop.call_soon_threadsafe(ended.set)

    _beside(started, ended.set)
    await ended.wait()


def _beside(work: Callable[[], None], otherwise: Callable[[], None] = lambda: None) -> None:
    """Work in a thread of its own: starting a program takes long on a busy machine, and a pool may be full.

    `otherwise` is called here where there can be no thread.
    """

    def done() -> None:
        with suppress(OSError, MemoryError, RuntimeError):  # the last: the loop has ended meanwhile
            work()

    try:
        threading.Thread(target=done, daemon=True).start()
    except RuntimeError:
        otherwise()


async def by_deadline(work: Work, seconds: float, sleep: Sleep = asyncio.sleep) -> bytes:
    """The message after exactly `seconds`, whatever came of the work and whenever: shorter than its size when it was
    not done. Never raises for it."""
    if not has_children():
        return await _in_a_thread(work, seconds, sleep)
    try:
        channel, theirs = socket.socketpair()
    except OSError:  # no descriptor was left for it: whoever opened too many connections here moves no deadline
        await sleep(seconds)
        return b""
    _beside(lambda: work.server.serve(theirs, seconds), theirs.close)
    with channel:
        emptied = _emptied(channel, work.size, seconds) if work.size > IN_A_SOCKET else None
        sending = asyncio.create_task(_told(channel, work))
        try:
            await sleep(seconds)
        finally:
            sending.cancel()
            await asyncio.wait({sending})  # before its descriptor is closed, and given to another connection
        if emptied is not None:
            return bytes(emptied)
        return _message(channel, work.size)


def in_a_child(work: Work, seconds: float) -> bytes:
    """The message when the child has ended, after at most `seconds`: shorter than its size when it was not done."""
    if not has_children():
        return work.here(seconds)
    ends = time.monotonic() + seconds
    with work.server.begin(seconds) as channel:
        with suppress(OSError):
            channel.settimeout(seconds)
            channel.sendall(_framed(work))
        return _message(channel, work.size, ends)


def at_once(request: Request, seconds: float) -> tuple[Value, ...]:
    """The answers when the child has ended, after at most `seconds`: for what never leaves this machine."""
    return parse_answers(request, in_a_child(queries(request), seconds))


def _framed(work: Work) -> bytes:
    return LENGTH.pack(len(work.told)) + work.told


async def _told(channel: socket.socket, work: Work) -> None:
    channel.setblocking(False)
    with suppress(OSError):
        await asyncio.get_running_loop().sock_sendall(channel, _framed(work))


def _emptied(channel: socket.socket, size: int, seconds: float) -> bytearray:
    """The bytes of a message that no socket holds until somebody looks. A thread fills them in, and nobody waits for
    it: whoever looks at the deadline sees those that came until then."""
    parts, ends = bytearray(), time.monotonic() + seconds
    try:
        ours = channel.dup()
    except OSError:
        return parts

    def fill() -> None:
        with ours, suppress(OSError):
            while len(parts) <= size:
                ours.settimeout(max(0.0, ends - time.monotonic()))
                part = ours.recv(min(size + 1 - len(parts), 2**16))
                if not part:
                    break
                parts.extend(part)

    _beside(fill, ours.close)
    return parts


def _message(channel: socket.socket, size: int, ends: float = 0.0) -> bytes:
    """The bytes that arrive until `ends` (monotonic; else now): at most one byte more than there may be."""
    parts = b""
    with suppress(OSError):
        while len(parts) <= size:
            channel.settimeout(max(0.0, ends - time.monotonic()))
            part = channel.recv(size + 1 - len(parts))
            if not part:
                break
            parts += part
    return parts


def _here(request: Request, seconds: float) -> bytes:
    with opened(request.database, request.tables, request.bounds, seconds * SHARE) as sandbox:
        return answered(sandbox, request)


async def _in_a_thread(work: Work, seconds: float, sleep: Sleep) -> bytes:
    """A thread of its own: others may wait in a pool for ever. One that is late goes on to its end, unheard."""
    heard: list[bytes] = []

    def hear() -> None:
        with suppress(Exception):  # whatever it says may quote data
            heard.append(work.here(seconds))

    _beside(hear)
    await sleep(seconds)
    return heard[0] if heard else b""
