"""The program that reads files of strangers: a server that forks one child for each file, and the child's own life.

It is started by exec with an empty environment and no descriptor but its end of one socket, and holds no key. Libraries
that are not written in Python can end a process where a file is damaged. Here that ends one child. For each file the
server gets one socket, a number of seconds, and which library will be needed. The child, the first to go when memory
runs out:

1. sets a timer whose default action ends it, and the system's limits on processor time, memory, core files and writing;
2. opens the file, says what it is, and answers questions about its tables until the other end closes.

The server kills a child whose time is over, or whose other end has closed.
"""

from __future__ import annotations

import importlib
import math
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

from peer.data.foreign_talk import BEGIN, LIBRARIES, WORD, Talk

if sys.platform != "win32":  # which has no such children
    import resource

MEMORY = 2 * 2**30
"""Bytes that reading one file may take beyond those of the server."""
LARGEST_WRITTEN = 64 * 2**20
"""Bytes of the index that SQLite makes beside a file with a log; nothing else is written."""
CPU_GRACE = 2
YIELDING = 5
"""How much nicer than the program that sends packets a child is."""
_LOOK_MS = 50
_Children = dict[int, tuple[float, socket.socket]]


def serve(control: socket.socket) -> None:
    """Fork a child for each socket that arrives, until the other end closes."""
    children: _Children = {}
    while True:
        poll = select.poll()
        poll.register(control, select.POLLIN)
        for _end, channel in children.values():
            poll.register(channel, 0)  # which tells of a closed end alone
        if any(descriptor == control.fileno() for descriptor, _ in poll.poll(_LOOK_MS if children else None)):
            packed, descriptors, _, _ = socket.recv_fds(control, BEGIN.size, 1)
            if len(packed) != BEGIN.size:
                break
            seconds, needed = BEGIN.unpack(packed)
            _forked(control, children, seconds, LIBRARIES[needed], socket.socket(fileno=descriptors[0]))
        for pid in [pid for pid, (end, channel) in children.items() if _over(pid, end, channel)]:
            children.pop(pid)[1].close()
    for pid in children:
        _kill(pid)
        os.waitpid(pid, 0)


def _forked(
    control: socket.socket, children: _Children, seconds: float, needed: tuple[str, ...], channel: socket.socket
) -> None:
    with suppress(ImportError):  # the child says what is missing
        for library in needed:
            importlib.import_module(library)
    try:
        pid = os.fork()
    except OSError:
        channel.close()
        return
    if pid == 0:
        control.close()
        for _end, other in children.values():
            other.close()
        _live(channel, seconds)
    children[pid] = time.monotonic() + seconds, channel


def _over(pid: int, end: float, channel: socket.socket) -> bool:
    poll = select.poll()
    poll.register(channel, 0)
    if time.monotonic() >= end or poll.poll(0):
        _kill(pid)
    return os.waitpid(pid, os.WNOHANG)[0] == pid


def _kill(pid: int) -> None:
    """It is not reaped yet, so that the number is still its own."""
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def _live(channel: socket.socket, seconds: float) -> None:
    """A child's whole life. Never returns."""
    from peer.data.foreign_answers import converse  # which the server loaded before it forked

    try:
        _confine(seconds)
        converse(Talk(channel))
    except BaseException:  # of whatever kind: its text may quote data, and nobody is there to read it
        os._exit(1)
    # The end of a child must not run what the server registered for its own end, as sys.exit does.
    os._exit(0)


def _confine(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    _limit(resource.RLIMIT_CPU, math.ceil(seconds) + CPU_GRACE)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, LARGEST_WRITTEN)
    _limit_memory(MEMORY)
    with suppress(OSError):
        os.nice(YIELDING)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")


def _limit(kind: int, most: int) -> None:
    with suppress(OSError, ValueError):
        resource.setrlimit(kind, (most, most))


def _limit_memory(more: int) -> None:
    """So many bytes more than now. Where the system does not tell what is held (macOS), it does not limit it either."""
    with suppress(OSError, ValueError):
        held = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
        _limit(resource.RLIMIT_AS, held + more)


def main() -> None:
    """Serve on standard input, which is the socket. The formats are loaded here: a bundled program that is no server
    loads none."""
    importlib.import_module("peer.data.foreign_answers")
    with socket.socket(fileno=os.dup(sys.stdin.fileno())) as control:
        os.close(sys.stdin.fileno())
        serve(control)


def reads(arguments: list[str]) -> bool:
    """True if this program was started to be the server; if so, it has served when this returns."""
    if arguments != [WORD]:
        return False
    main()
    return True
