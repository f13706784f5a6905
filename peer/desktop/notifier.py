"""Looks at the home at random times and tells its owner, once each, what is new. Off unless switched on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Protocol

from attrs import define

from anon.errors import Refused
from anon.machine.guard import Guard
from anon.storage.private_files import write_private
from anon.wire.strict_json import read_json
from peer.app import PeerApp
from peer.desktop.notifications import Tell, notices_here
from peer.desktop.served import ServedPage
from peer.run.notices import SENTENCES, Matter, draw_look, for_notice, happenings, next_told
from peer.run.supervisor import Running, Supervisor
from peer.store.home import PeerHome

TOLD = "told.json"


class Sleep(Protocol):
    """`asyncio.sleep`, or a clock of a test."""

    def __call__(self, seconds: float, /) -> Awaitable[None]: ...


@define
class Reminders:
    """One home's. `waiting` names the studies whose link was opened and not answered; `supervisor` tells of faults."""

    peer: PeerApp
    home: PeerHome
    tell: Tell
    now: Callable[[], float]
    random_bytes: Callable[[int], bytes]
    supervisor: Supervisor
    waiting: Callable[[], Collection[str]] = tuple
    sleep: Sleep = asyncio.sleep

    async def run(self) -> None:
        """Never returns by itself; a fault in it stops nothing else and is tried again at the next look."""
        first, guard = True, Guard("notifications")
        while True:
            await self.sleep(draw_look(first, self.random_bytes))
            first = False
            with guard.turn():
                await self.look()

    async def look(self) -> None:
        """Tell the most urgent new matter, if there is one and the owner wants to be told.

        The first look of a home only takes note of what is there: that is no news. A notice is stored before it is
        shown, so that a crash tells too little rather than the same for ever.
        """
        if not self.home.settings().notifications:
            return
        faulty = self.supervisor.running is Running.FAULTY
        happened = happenings(map(for_notice, self.peer.store.studies()), self.waiting(), faulty, self.now())
        already_told = self._told()
        if already_told is None:
            self._store({notice.key for notice in happened if notice.matter is not Matter.ANSWER})
            return
        matter = next_told(happened, already_told)
        current = {notice.key for notice in happened}
        if matter is None:
            self._store(already_told & current)
            return
        self._store((already_told & current) | {notice.key for notice in happened if notice.matter is matter})
        with suppress(Refused):  # nobody is logged in: nobody to be told
            await self.tell(SENTENCES[matter])

    def _told(self) -> set[str] | None:
        """None when nothing was ever stored, or it cannot be read."""
        try:
            keys = read_json((self.home.path / TOLD).read_bytes())
        except (OSError, ValueError):
            return None
        return {str(key) for key in keys} if isinstance(keys, list) else None

    def _store(self, keys: set[str]) -> None:
        if keys != self._told():
            write_private(self.home.path / TOLD, json.dumps(sorted(keys)).encode() + b"\n")


@asynccontextmanager
async def reminding(
    peer: PeerApp,
    home: PeerHome,
    supervisor: Supervisor,
    now: Callable[[], float],
    random_bytes: Callable[[int], bytes],
    waiting: Callable[[], Collection[str]] = tuple,
) -> AsyncIterator[None]:
    """Remind as long as the block lasts, where this system can show anything at all."""
    try:
        tell = notices_here()
    except Refused:
        yield
        return
    running = asyncio.create_task(Reminders(peer, home, tell, now, random_bytes, supervisor, waiting).run())
    try:
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def reminding_beside(server: ServedPage) -> AbstractAsyncContextManager[None]:
    """Notify the owner of a page as long as the block lasts, if that is switched on (`anonml peer notify`)."""
    site = server.site
    return reminding(
        site.peer,
        server.home,
        server.supervisor,
        site.now,
        site.random_bytes,
        lambda: [key.hex() for key in site.invites],
    )
