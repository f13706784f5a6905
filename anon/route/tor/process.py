"""One running tor of ours: started with a torrc on standard input, ended with its owner, stopped without leftovers."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from anon.errors import Refused, Unreachable, because
from anon.machine.environment import Child, for_child
from anon.route.tor.bootstrap import Bootstrap
from anon.route.tor.control import COOKIE_BYTES, Controller, Events, has_unix_sockets
from anon.route.tor.program import find_tor
from anon.route.tor.torrc import owned_lines, quoted_path
from anon.text.foreign import whole_place
from anon.text.sentences import say

_SOCKET_BYTES = 107  # sockaddr_un.sun_path holds 108 with its closing zero; macOS holds 104
_MAC_SOCKET_BYTES = 103
_POLL_SECONDS = 0.02
_PHASE_SECONDS = 0.25
_WATCHED = ("STATUS_CLIENT", "STATUS_GENERAL", "ORCONN")
_STOP_SECONDS = 3.0
_LOG_LINES = 100
_LOG_CHARACTERS = 400
COOKIE = "control_auth_cookie"
"""Tor's cookie in the folder of a `TorProcess`."""
_PR_SET_PDEATHSIG = 1  # prctl(2)


class TorProcess:
    """A tor started by `start`. `controller` is its owner: when that connection ends, so does tor."""

    def __init__(
        self, process: asyncio.subprocess.Process, sockets: Path, cookie: Path, bridges: bool, temporary: bool
    ) -> None:
        self.pid = process.pid
        self.controller: Controller
        self._process = process
        self._sockets = sockets
        self._cookie = cookie
        self._temporary = temporary
        self._log: deque[str] = deque(maxlen=_LOG_LINES)
        self._state = Bootstrap(time.monotonic(), bridges=bridges)
        self._draining = asyncio.create_task(self._drain())

    @classmethod
    async def start(
        cls,
        torrc: str,
        folder: Path,
        seconds: float = 30,
        *,
        program: Path | None = None,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> TorProcess:
        """A tor with this torrc, whose control socket answers. `folder` (made, mode 0700) holds cookie and socket, and
        is the data directory if the torrc names none.

        Raises `Refused` when there is no tor, `Unreachable` with tor's own words when it ends at once or says nothing
        for `seconds`. Nothing is left running or lying about then.
        """
        program = program or find_tor()
        _prepare(folder)
        sockets, temporary = _sockets_in(folder)
        cookie = folder / COOKIE
        for stale in (cookie, sockets / "control"):
            stale.unlink(missing_ok=True)
        owned = owned_lines(sockets / "control", cookie, os.getpid(), has_unix_sockets())
        text = "\n".join((torrc.rstrip("\n"), *owned, ""))
        if not _NAMES_DATA.search(torrc):
            text += f"DataDirectory {quoted_path(folder)}\n"
        try:
            process = await _launch(program)
        except BaseException:
            _remove(sockets, cookie, temporary)
            raise
        tor = cls(process, sockets, cookie, "\nusebridges 1" in text.lower(), temporary)
        try:
            await tor._own(text, seconds, random_bytes)
        except BaseException:
            await tor.stop()
            raise
        return tor

    async def _own(self, text: str, seconds: float, random_bytes: Callable[[int], bytes]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it ended before it read all: the log says why
            self._process.stdin.write(text.encode())
            await self._process.stdin.drain()
        self._process.stdin.close()
        until = time.monotonic() + seconds
        while not (cookie := self._ready()):
            if self._process.returncode is not None:
                raise await self._ended()
            if time.monotonic() > until:
                raise Unreachable(say(
                    "tor did not open its control socket in {seconds:g} seconds; try again",
                    seconds=seconds,
                ))
            await asyncio.sleep(_POLL_SECONDS)
        try:
            self.controller = await Controller.connect(self._sockets / "control", cookie, random_bytes, seconds)
            await self.controller.take_ownership()
        except Unreachable:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), 1)
            raise (await self._ended() if self._process.returncode is not None else Unreachable(_LOST)) from None

    def _ready(self) -> bytes:
        """The cookie, once it is whole and the socket is there; else nothing."""
        try:
            cookie = self._cookie.read_bytes() if (self._sockets / "control").exists() else b""
        except OSError:
            return b""
        return cookie if len(cookie) == COOKIE_BYTES else b""

    @property
    def alive(self) -> bool:
        """True if it runs and obeys."""
        return self._process.returncode is None and not self.controller.closed

    @property
    def log(self) -> tuple[str, ...]:
        """The last 100 lines that it said, each cut at 400 characters. They are kept in memory only."""
        return tuple(self._log)

    @property
    def state(self) -> Bootstrap:
        """How far its start has got."""
        return self._state

    async def bootstrap(self, seconds: float = 120) -> None:
        """Wait until circuits can be built.

        Raises `Unreachable` with phase, reason and one next action: as soon as waiting is known not to help, at the
        latest after `seconds`. Tor goes on running then.
        """
        until = time.monotonic() + seconds
        try:
            async with self.controller.watching(*_WATCHED) as events:
                following = asyncio.create_task(self._follow(events))
                try:
                    await self._until_done(until)
                finally:
                    following.cancel()
                    await asyncio.gather(following, return_exceptions=True)
        except Unreachable:
            raise (self._state.failure() if self.alive else await self._ended()) from None

    async def _until_done(self, until: float) -> None:
        while True:
            await self._ask()
            if self._state.done:
                return
            if not self.alive or time.monotonic() > until or self._state.hopeless(time.monotonic()):
                raise self._state.failure()
            await asyncio.sleep(_PHASE_SECONDS)

    async def _follow(self, events: Events) -> None:
        async for event in events:
            if event.name.startswith("STATUS_"):
                self._state = self._state.heard_status(event.text, time.monotonic())
            elif event.name == "ORCONN":
                self._state = self._state.heard_connection(event.text, time.monotonic())

    async def _ask(self) -> None:
        with contextlib.suppress(Unreachable, Refused):
            phase = (await self.controller.get_info("status/bootstrap-phase"))["status/bootstrap-phase"]
            self._state = self._state.heard_status(phase, time.monotonic())

    async def _ended(self) -> Unreachable:
        """Why it ended, once all that it said has been read."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _STOP_SECONDS)
            await asyncio.wait_for(asyncio.shield(self._draining), _STOP_SECONDS)
        self._state = self._state.ended(self.log)
        return self._state.failure()

    @property
    def control(self) -> Path:
        """Its control socket."""
        return self._sockets / "control"

    async def socks(self) -> tuple[str, int]:
        """Host and port of its SOCKS listener. Raises `Unreachable` when it has none (any more)."""
        return await socks_of(self.controller)

    async def stop(self) -> None:
        """End it, by its id at last, wait for it, and remove socket, cookie, temporary folder. May be called twice."""
        controller = getattr(self, "controller", None)
        try:
            if controller is not None and self._process.returncode is None:
                with contextlib.suppress(Unreachable, Refused):
                    await controller.command("SIGNAL HALT", _STOP_SECONDS)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._process.wait(), _STOP_SECONDS)
        finally:
            if self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
            await self._process.wait()
            if controller is not None:
                await controller.close()
            self._draining.cancel()
            await asyncio.gather(self._draining, return_exceptions=True)
            _remove(self._sockets, self._cookie, self._temporary)

    async def _drain(self) -> None:
        """Read what tor says, so that it never blocks, and keep the last lines. Lines without end are cut."""
        assert self._process.stdout is not None
        rest = b""
        while chunk := await self._process.stdout.read(65_536):
            *lines, rest = (rest + chunk).split(b"\n")
            rest = rest[:_LOG_CHARACTERS]
            for line in lines:
                text = line.decode("utf-8", "replace")[:_LOG_CHARACTERS]
                self._log.append(text)
                self._state = self._state.heard_log(text, time.monotonic())


async def socks_of(controller: Controller) -> tuple[str, int]:
    """Host and port of the SOCKS listener of a tor. Raises `Unreachable` when it has none (any more)."""
    listeners = (await controller.get_info("net/listeners/socks"))["net/listeners/socks"].split()
    for listener in listeners:
        host, colon, port = listener.strip('"').rpartition(":")
        if colon and port.isdecimal():
            return host, int(port)
    raise Unreachable("tor has no SOCKS port open; start it again")


_NAMES_DATA = re.compile(r"^\s*DataDirectory\s", re.IGNORECASE | re.MULTILINE)
_LOST = "tor's control port closed before tor was ours; try again"


async def _launch(program: Path) -> asyncio.subprocess.Process:
    """In a session of its own, so that Ctrl-C reaches its owner alone, who then stops it in order."""
    try:
        return await asyncio.create_subprocess_exec(
            str(program),
            # Else tor would read the system's defaults before our lines (tor(1)).
            "--defaults-torrc",
            os.devnull,
            "-f",
            "-",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=for_child(Child.PROGRAM),
            start_new_session=True,
            preexec_fn=_ending_with_owner(),
        )
    except OSError as error:
        raise Refused(
            say(
                "tor cannot be run{error} (no-tor); install it again, or set ANONML_TOR to another",
                error=because(error),
            )
        ) from None


def _ending_with_owner() -> Callable[[], Any] | None:
    """The first act of a child on Linux before it becomes tor, so that the kernel ends it with the thread that started
    it.

    Ownership begins with the control connection. An owner that is killed earlier would leave tor for 15 s. Without its
    torrc, tor would stay for ever, as a client of the public network.
    """
    if sys.platform != "linux":
        return None
    return partial(ctypes.CDLL(None).prctl, _PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise Refused(say(
            "tor's folder {folder} cannot be used{error}; choose another --home",
            folder=whole_place(folder),
            error=because(error),
        )) from None


def _sockets_in(folder: Path) -> tuple[Path, bool]:
    """Where the control socket goes: the folder, or a temporary one of mode 0700 where its path would be too long."""
    longest = _SOCKET_BYTES if sys.platform == "linux" else _MAC_SOCKET_BYTES
    if not has_unix_sockets() or len(os.fsencode(folder.absolute() / "control")) <= longest:
        return folder.absolute(), False
    return Path(tempfile.mkdtemp(prefix="anonml-")), True


def _remove(sockets: Path, cookie: Path, temporary: bool) -> None:
    for path in (sockets / "control", cookie):
        with contextlib.suppress(OSError):
            path.unlink()
    if temporary:
        shutil.rmtree(sockets, ignore_errors=True)
