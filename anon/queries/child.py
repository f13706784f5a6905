"""The program that evaluates queries away from every key: a server that forks one child for each evaluation.

It is started by exec with an empty environment and no descriptor but its end of one socket. It imports nothing but this
package, and never holds a key, a route or data. For each evaluation it gets one socket and a number of seconds. The
child, which has a session of its own and is the first to go when memory runs out (a program of another work forks
children in the same way, with steps 2 to 4 of its own: `serve`):

1. sets a timer whose default action ends it, and the system's limits on processor time, core files and processes;
2. reads the request, copies the declared columns of the declared tables into memory, and closes the owner's file;
3. gives up every further descriptor, file and byte of memory beyond the request's limit;
4. only then runs the queries, writes one message of fixed size, and ends.

The server kills a child whose time is over, and all of them when the other end of its socket closes.
"""

from __future__ import annotations

import math
import mmap
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from anon.queries import windows
from anon.queries.answers import Request, answered
from anon.queries.sandbox import copied, over

if sys.platform != "win32":
    import resource

SECONDS = struct.Struct("<d")
LENGTH = struct.Struct("<I")
CPU_GRACE = 2
COPY_MEMORY = 2 * 2**30
"""Bytes that copying the declared tables may take."""
SHARE = 0.8
"""Of its time, after which a child begins no query and ends the one that runs; the rest is to write what is known."""
YIELDING = 10
"""How much nicer than the program that sends packets a child is."""
_LOOK = 0.05


Message = Callable[[socket.socket, float], bytes]
"""A child's work: it reads what it is told from this socket, and gives its message by this instant (monotonic)."""


def serve(control: socket.socket, work: Message) -> None:
    """Fork a child for each socket that arrives, until the other end closes."""
    ends: dict[int, float] = {}
    while True:
        ready, _, _ = select.select([control], [], [], _LOOK if ends else None)
        if ready:
            packed_seconds, descriptors, _, _ = socket.recv_fds(control, SECONDS.size, 1)
            if len(packed_seconds) != SECONDS.size:
                break
            ends |= _forked(control, SECONDS.unpack(packed_seconds)[0], descriptors, work)
        ends = {pid: end for pid, end in ends.items() if not _over(pid, end)}
    for pid in ends:
        _kill(pid)
        os.waitpid(pid, 0)


def _forked(control: socket.socket, seconds: float, descriptors: list[int], work: Message) -> dict[int, float]:
    with suppress(OSError):
        pid = os.fork()
        if pid == 0:
            _live(control, descriptors[0], seconds, work)
        os.close(descriptors[0])
        return {pid: time.monotonic() + seconds}
    for descriptor in descriptors:
        os.close(descriptor)
    return {}


def _over(pid: int, end: float) -> bool:
    if time.monotonic() >= end:
        _kill(pid)
    return os.waitpid(pid, os.WNOHANG)[0] == pid


def _kill(pid: int) -> None:
    """The child and all of its group; it is not reaped yet, so that the number is still its own."""
    for kill in (os.killpg, os.kill):
        with suppress(OSError):
            kill(pid, signal.SIGKILL)


def _live(control: socket.socket, descriptor: int, seconds: float, work: Message) -> None:
    """A child's whole life. Never returns."""
    try:
        began = time.monotonic()
        _confine(seconds)
        control.close()
        with socket.socket(fileno=descriptor) as channel:
            channel.sendall(work(channel, began + seconds * SHARE))
    except BaseException:  # of whatever kind: its text may quote data, and nobody is there to read it
        os._exit(1)
    os._exit(0)


def _confine(seconds: float) -> None:
    # SIGALRM without a handler ends the process, whatever its interpreter is doing (signal(7)).
    signal.setitimer(signal.ITIMER_REAL, seconds)
    # A group of its own: `_kill` ends the child with whatever it may have started.
    os.setsid()
    _limit(resource.RLIMIT_CPU, math.ceil(seconds) + CPU_GRACE)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NPROC, 0)
    with suppress(OSError):
        os.nice(YIELDING)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")


def _evaluated(channel: socket.socket, ends: float) -> bytes:
    request = Request.from_bytes(received(channel))
    if sys.platform != "win32":  # where the job that the child is in does it
        _limit_memory(COPY_MEMORY)
    connection = copied(request.database, request.tables)
    give_up_all_but(request.memory)
    return answered(over(connection, request.tables, request.bounds, ends) if connection is not None else None, request)


def give_up_all_but(memory: int) -> None:
    """No further descriptor or file from now on, and at most so many bytes of memory more."""
    if sys.platform == "win32":
        windows.confine(memory)
        return
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit_memory(memory)
    # Descriptors that are open stay open: only new ones are refused (setrlimit(2)).
    _limit(resource.RLIMIT_NOFILE, 0)


def received(channel: socket.socket) -> bytes:
    """The request, as `anon.queries.process` frames it."""
    (length,) = LENGTH.unpack(_exactly(channel, LENGTH.size))
    return _exactly(channel, length)


def _exactly(channel: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = channel.recv(min(length - len(parts), 2**16))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def _limit(kind: int, most: int) -> None:
    with suppress(OSError, ValueError):
        resource.setrlimit(kind, (most, most))


def _limit_memory(more: int) -> None:
    """So many bytes more than now. Where the system does not tell what is held (macOS), it does not limit it either."""
    with suppress(OSError, ValueError):
        held = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * mmap.PAGESIZE
        # The soft limit alone: it is set twice, and a hard one could not be raised again.
        resource.setrlimit(resource.RLIMIT_AS, (held + more, resource.RLIM_INFINITY))


def main(work: Message = _evaluated) -> None:
    """Serve on standard input, which is the socket. On Windows it tells of one evaluation, which is this process's."""
    if sys.platform == "win32":
        try:
            began = time.monotonic()
            packed_seconds, channel = windows.handed(sys.stdin.buffer, SECONDS.size)
            with channel:
                channel.sendall(work(channel, began + SECONDS.unpack(packed_seconds)[0] * SHARE))
        except BaseException:  # as in `_live`
            os._exit(1)
        os._exit(0)
    with socket.socket(fileno=os.dup(sys.stdin.fileno())) as control:
        os.close(sys.stdin.fileno())
        serve(control, work)
