"""Evaluation in a child process, from the side that holds the keys.

One server of `anon.queries.child` serves a process, however many peers live in it. It is started when first needed, and
again when it has died, in a thread of its own: an event loop that sends packets never waits for it. Nor does anything
here wait for a child: `by_deadline` takes up the message that is there at the deadline, and no earlier. So how and when
the child ended is seen by nobody. A message that no socket holds is gathered meanwhile, in a thread of its own.
`at_once` is for what stays on this machine: it returns when the child has ended, or at the deadline.

Some systems have no child processes: iOS, Android, an interpreter without a program of its own. There the queries run
in a thread of this process. It is bounded by instructions, the clock and the growth of memory alone (docs/threats.md).
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import attrs

import anon
from anon.queries.answers import Request, Value, answered, nothing, parse_answers
from anon.queries.child import LENGTH, SECONDS, SHARE
from anon.queries.sandbox import opened

Sleep = Callable[[float], Awaitable[object]]

WORD = "--evaluate-queries"
"""The only argument of a program that brings its Python along, when it is to be the server (`evaluates`)."""
IN_A_SOCKET = 2**14
"""Bytes of a message that a child can write before anybody reads."""
_PROGRAM = "import sys; sys.path[:0] = {paths}; from anon.queries.child import main; main()"


def has_children() -> bool:
    """True if queries are evaluated in child processes here."""
    return sys.platform not in ("android", "ios", "emscripten", "wasi", "win32") and bool(sys.executable)


class Server:
    """The server of this process. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def start(self) -> None:
        """Start it, unless it runs; it is ready a moment later, and takes requests at once."""
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
                _command(), stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env={}, cwd="/", close_fds=True, start_new_session=True,
            )
        return self._control


def _command() -> list[str]:
    if getattr(sys, "frozen", False) or not Path(sys.executable).name.lower().startswith(("python", "pypy")):
        return [sys.executable, WORD]
    paths = sorted({str(Path(package.__file__ or "").resolve().parents[1]) for package in (anon, attrs)})
    return [sys.executable, "-I", "-S", "-B", "-c", _PROGRAM.format(paths=json.dumps(paths))]


def evaluates(arguments: list[str]) -> bool:
    """True if this program was started to be the server; if so, it has served when this returns."""
    if arguments != [WORD]:
        return False
    from anon.queries.child import main

    main()
    return True


_SERVER = Server()
atexit.register(_SERVER.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_SERVER.__init__)  # type: ignore[misc]


async def start() -> None:
    """Have the server ready before it is needed. Until its program runs, its process shares every lock of this one, so
    that is waited for, away from the loop."""
    if not has_children():
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def started() -> None:
        try:
            _SERVER.start()
        finally:
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


async def by_deadline(request: Request, seconds: float, sleep: Sleep = asyncio.sleep) -> tuple[Value, ...]:
    """The answers after exactly `seconds`, whatever came of the evaluation and whenever. Never raises for it."""
    if not has_children():
        return await _in_a_thread(request, seconds, sleep)
    try:
        channel, theirs = socket.socketpair()
    except OSError:  # no descriptor was left for it: whoever opened too many connections here moves no deadline
        await sleep(seconds)
        return parse_answers(request, nothing(request))
    _beside(lambda: _SERVER.serve(theirs, seconds), theirs.close)
    with channel:
        emptied = _emptied(channel, request.size, seconds) if request.size > IN_A_SOCKET else None
        sending = asyncio.create_task(_told(channel, request))
        try:
            await sleep(seconds)
        finally:
            sending.cancel()
            await asyncio.wait({sending})  # before its descriptor is closed, and given to another connection
        if emptied is not None:
            return parse_answers(request, bytes(emptied))
        return parse_answers(request, _message(channel, request.size))


def at_once(request: Request, seconds: float) -> tuple[Value, ...]:
    """The answers when the child has ended, after at most `seconds`: for what never leaves this machine."""
    if not has_children():
        return parse_answers(request, _here(request, seconds))
    ends = time.monotonic() + seconds
    with _SERVER.begin(seconds) as channel:
        with suppress(OSError):
            channel.settimeout(seconds)
            channel.sendall(_framed(request))
        return parse_answers(request, _message(channel, request.size, ends))


def _framed(request: Request) -> bytes:
    message = request.to_bytes()
    return LENGTH.pack(len(message)) + message


async def _told(channel: socket.socket, request: Request) -> None:
    channel.setblocking(False)
    with suppress(OSError):
        await asyncio.get_running_loop().sock_sendall(channel, _framed(request))


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


async def _in_a_thread(request: Request, seconds: float, sleep: Sleep) -> tuple[Value, ...]:
    """A thread of its own: others may wait in a pool for ever. One that is late goes on to its end, unheard."""
    heard: list[bytes] = []
    _beside(lambda: heard.append(_here(request, seconds)))
    await sleep(seconds)
    return parse_answers(request, heard[0] if heard else nothing(request))
