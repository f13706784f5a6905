"""A private client tor kept in a folder: started at first use and again when it died, shared by a home's processes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

from anon.errors import Refused, Unreachable
from anon.route.tor.control import Controller
from anon.route.tor.process import COOKIE, TorProcess, socks_of
from anon.route.tor.program import extra_lines
from anon.route.tor.torrc import torrc_of_client
from anon.storage.locks import locked
from anon.storage.private_files import held_private, write_private
from anon.text.sentences import say

BOOTSTRAP_SECONDS = 120.0
_POLL_SECONDS = 0.2
_CONNECT_SECONDS = 2.0
_LONGEST_PATH = 4096


class TorKeeper:
    """Keeps the tor of one home in `folder` (made, mode 0700).

    Among the processes that share the folder one runs tor, holding a lock that the kernel drops with it. The others ask
    that tor for its SOCKS port. A file of mode 0600 names the control socket for it. When that process ends its tor
    ends, and the next that needs one starts its own. Belongs to one event loop.
    """

    def __init__(
        self,
        folder: Path,
        *,
        seconds: float = BOOTSTRAP_SECONDS,
        extra: Callable[[], tuple[str, ...]] = extra_lines,
        program: Path | None = None,
    ) -> None:
        self._folder = folder
        self._seconds = seconds
        self._extra = extra
        self._program = program
        self._tor: TorProcess | None = None
        self._lock: int | None = None
        self._socks: tuple[str, int] | None = None
        self._starting: asyncio.Task[tuple[str, int]] | None = None

    @property
    def tor(self) -> TorProcess | None:
        """The tor that this keeper runs itself, if it does now."""
        return self._tor

    async def socks(self) -> tuple[str, int]:
        """Host and port of a SOCKS listener whose tor is ready. Concurrent callers share one start and its outcome.

        Raises `Unreachable` with phase, reason and next action when tor cannot start in time, `Refused` when there is
        no tor or the owner's lines are not acceptable.
        """
        if self._starting is None and self._tor is not None and self._tor.alive and self._socks is not None:
            return self._socks
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(self._started)
        # A caller that gives up must not cancel the start that others wait for.
        return await asyncio.shield(self._starting)

    def lost(self) -> None:
        """No one listens where the last `socks` said: look again, and start tor anew, at the next one."""
        self._socks = None

    def _started(self, task: asyncio.Task[tuple[str, int]]) -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # every caller has it; with none left nobody misses it

    async def _start(self) -> tuple[str, int]:
        await self._stop()
        until = time.monotonic() + self._seconds
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        while not self._locked():
            shared = await self._published()
            if shared is not None:
                return shared
            if time.monotonic() > until:
                raise Unreachable(
                    say("another process of this home is starting tor, not ready yet; nothing is lost, try again later")
                )
            await asyncio.sleep(_POLL_SECONDS)
        try:
            return await self._own(max(until - time.monotonic(), 1))
        except BaseException:
            await self._stop()
            raise

    async def _own(self, seconds: float) -> tuple[str, int]:
        self._place.unlink(missing_ok=True)
        torrc = torrc_of_client(self._folder.absolute() / "data", self._extra())
        self._tor = await TorProcess.start(torrc, self._folder / "data", seconds, program=self._program)
        await self._tor.bootstrap(seconds)
        self._socks = await self._tor.socks()
        self._publish(self._tor.control)
        return self._socks

    @property
    def _place(self) -> Path:
        return self._folder / "running"

    def _locked(self) -> bool:
        """True if the folder's lock is ours now. The kernel drops it when this process ends, however it does."""
        descriptor = held_private(self._folder / "owner")
        if not locked(descriptor):
            os.close(descriptor)
            return False
        self._lock = descriptor
        return True

    def _publish(self, control: Path) -> None:
        write_private(self._place, f"{control}\n".encode())

    async def _published(self) -> tuple[str, int] | None:
        """The SOCKS port of the other process's tor, if it has one that is ready.

        Asked of that tor, which has to know the cookie in our folder: where it died, anybody on this machine may listen
        at the port that it had.
        """
        try:
            control = Path(self._place.read_text()[:_LONGEST_PATH].rstrip("\n"))
            cookie = (self._folder / "data" / COOKIE).read_bytes()
            controller = await Controller.connect(control, cookie, seconds=_CONNECT_SECONDS)
        except (OSError, ValueError, Unreachable, Refused):
            return None
        try:
            return await socks_of(controller)
        except (Unreachable, Refused):
            return None
        finally:
            await controller.close()

    async def _stop(self) -> None:
        tor, self._tor, self._socks = self._tor, None, None
        try:
            if tor is not None:
                self._place.unlink(missing_ok=True)
                await tor.stop()
        finally:
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    async def close(self) -> None:
        """Stop the tor that this keeper runs, if any. It may be used again."""
        starting = self._starting
        if starting is not None:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
        await self._stop()

    async def __aenter__(self) -> TorKeeper:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
