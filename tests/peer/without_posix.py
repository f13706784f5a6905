"""Run as a program by `test_without_posix.py`: a peer's life from join to sent, in memory, on a system that has only
what Windows has. Its argument is a folder; its home there is named as Windows names one.

Blocked: `fcntl`, `resource`, `pwd`, `grp`, `termios`, forks, users, modes, unix sockets, `/proc`, and handlers of
signals in the loop. `sys.platform` says win32 before a module of ours is imported. Only the lock of `msvcrt`, a
count of memory and access lists that close nothing are lent.
"""

from __future__ import annotations

import asyncio
import asyncio.unix_events
import ctypes
import importlib
import io
import json
import os
import pathlib
import pkgutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import aiohttp
import babel.dates
import Crypto.Hash.TurboSHAKE128
import nacl.bindings
import py_arkworks_bls12381
import python_socks.async_.asyncio
import typer
from rich.console import Console

ROOT = Path(__file__).resolve().parents[2]
SYSTEM = (
    asyncio, aiohttp, babel.dates, ctypes, nacl.bindings, Crypto, py_arkworks_bls12381, python_socks, socket,
    sqlite3, subprocess, tempfile, typer, Console,
)
"""Libraries, which have twins of their own on Windows: they are imported before."""
GONE = (
    "fork", "forkpty", "register_at_fork", "getuid", "geteuid", "getgid", "fchmod", "fchown", "chown", "uname",
    "setsid", "killpg", "nice", "waitid", "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "mkfifo", "statvfs", "sysconf",
    "getpgid", "openpty", "wait3", "wait4",
)
TOUCHED: list[str] = []
LOCKS: list[int] = []


def lent_msvcrt() -> types.ModuleType:
    """The one function of it that is used: a lock of a byte, which never waits."""
    made = types.ModuleType("msvcrt")
    made.LK_NBLCK = 2  # type: ignore[attr-defined]

    def locking(descriptor: int, mode: int, size: int) -> None:
        LOCKS.append(mode)
        os.lockf(descriptor, os.F_TLOCK, size)

    made.locking = locking  # type: ignore[attr-defined]
    return made


def refusing(what: str, real: Any) -> Any:
    """A way to open a file that has no /proc and opens no folder."""

    def opened(path: Any, *rest: Any, **named: Any) -> Any:
        text = os.fspath(path) if not isinstance(path, int) else ""
        if str(text).startswith("/proc"):
            TOUCHED.append(f"{what} {text}")
            raise FileNotFoundError(2, "there is no such file", text)
        if what == "os.open" and Path(str(text)).is_dir():
            raise PermissionError(13, "a folder cannot be opened", text)
        return real(path, *rest, **named)

    return opened


def without_modes(real: Any) -> Any:
    def changed(path: Any, mode: int, *_: Any, **__: Any) -> None:
        real(path, mode | 0o666 | (0o111 if Path(path).is_dir() else 0))  # Windows keeps no right of others back

    return changed


def pair_of_ports(*_: Any) -> tuple[socket.socket, socket.socket]:
    """A pair of sockets as Windows makes it, over a port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        one = socket.create_connection(server.getsockname())
        return one, server.accept()[0]


def become_windows() -> None:
    """From now on the system is Windows, as far as a module of ours can see."""
    for name in ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty"):
        sys.modules[name] = None  # type: ignore[assignment]
    sys.modules["msvcrt"] = lent_msvcrt()
    for name in GONE:
        if hasattr(os, name):
            delattr(os, name)
    del socket.AF_UNIX, asyncio.open_unix_connection, asyncio.start_unix_server
    if hasattr(socket, "send_fds"):
        del socket.send_fds, socket.recv_fds
    socket.socketpair = pair_of_ports  # type: ignore[assignment]
    asyncio.unix_events._UnixSelectorEventLoop.add_signal_handler = asyncio.AbstractEventLoop.add_signal_handler  # type: ignore[method-assign]
    os.open, io.open = refusing("os.open", os.open), refusing("open", io.open)
    pathlib.io.open = io.open  # type: ignore[attr-defined]
    os.chmod = without_modes(os.chmod)
    _lend_a_count_of_memory()
    _lend_access_lists()
    sys.platform, sys.executable = "win32", ""  # no program for children: the real ones are tried in tests/windows


def _lend_a_count_of_memory() -> None:
    lent = types.ModuleType("anon.queries.windows")
    lent.private_bytes = lambda: 0  # type: ignore[attr-defined]
    sys.modules["anon.queries.windows"] = lent


def _lend_access_lists() -> None:
    """The real ones are tried in tests/windows."""

    def opened(path: Path, flags: int, new: bool) -> int:
        return os.open(path, flags | os.O_CREAT | (os.O_WRONLY | os.O_EXCL if new else os.O_RDWR))

    lent = types.ModuleType("anon.storage.access_lists")
    lent.ON_FILES, lent.ON_FOLDERS = "", "OICI"  # type: ignore[attr-defined]
    lent.opened, lent.close_to_others = opened, lambda path, inheriting: False  # type: ignore[attr-defined]
    sys.modules["anon.storage.access_lists"] = lent


def all_modules() -> int:
    """Import every module of a peer's; what only this or that system has is chosen within them."""
    import anon
    import peer

    names = [
        found.name
        for package in (anon, peer)
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    ]
    elsewhere = ("anon.kit.testnet", "anon.queries.child", "anon.queries.windows", "anon.storage.access_lists")
    names = [name for name in names if not name.startswith(elsewhere)]
    for name in names:
        importlib.import_module(name)
    return len(names)


async def life(folder: Path) -> dict[str, Any]:
    """Import a file, join, run to the last window, and look back."""
    from peer.data.importing import import_file
    from peer.store.home import PeerHome
    from tests.support.clock import START, Clock
    from tests.support.fake_aggregator import DECLARED, FakeAggregator, peer
    from tests.support.whole_lives import life as whole_life

    home = folder / "C:\\Users\\Änne Müller\\AppData\\Local\\Anon ML #1 100%"
    aggregator = FakeAggregator.with_study(DECLARED, Clock(START))
    app = peer(home, aggregator)
    file = folder / "CON 2.csv"
    file.write_bytes("age,cups,tired\r\n30,some,1\r\n".encode("utf-8-sig"))
    import_file(PeerHome(home).data_path, file, "person")
    await whole_life(app, aggregator)
    (status,) = app.status()
    told = {"state": str(status.state), "slots": [str(slot.status) for slot in status.slots], "spent": status.spent}
    told |= {"locks": len(LOCKS), "rows": PeerHome(home).data_path.read_bytes().count(b"some")}
    app.close()
    return told


def main() -> None:
    sys.path.insert(0, str(ROOT))
    import pytest  # noqa: F401  (the tests' own parts import it: a library, too)

    become_windows()
    count = all_modules()
    told = asyncio.run(life(Path(sys.argv[1])))
    sys.stdout.write(json.dumps({**told, "modules": count, "proc": TOUCHED}))


if __name__ == "__main__":
    main()
