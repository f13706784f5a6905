"""Looks at the home at random times and tells its owner, once each, what is new. Off unless switched on."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from attrs import define

from anon.errors import Refused
from peer.app import PeerApp
from peer.desktop.notices import Tell, notices_here
from peer.desktop.telling import SENTENCES, Matter, Seen, draw_look, happenings, next_told
from peer.home import PeerHome, write_private
from peer.records import Study
from peer.web.engine import Engine, Running

_LOG = logging.getLogger(__name__)
TOLD = "told.json"


class Sleep(Protocol):
    """`asyncio.sleep`, or a clock of a test."""

    def __call__(self, seconds: float, /) -> Awaitable[None]: ...


@define
class Reminders:
    """One home's. `waiting` names the studies whose link was opened and not answered; `engine` whether it runs well."""

    peer: PeerApp
    home: PeerHome
    tell: Tell
    now: Callable[[], float]
    random_bytes: Callable[[int], bytes]
    engine: Engine
    waiting: Callable[[], Collection[str]] = tuple
    sleep: Sleep = asyncio.sleep

    async def run(self) -> None:
        """Never returns by itself; a fault in it stops nothing else and is tried again at the next look."""
        first = True
        while True:
            await self.sleep(draw_look(first, self.random_bytes))
            first = False
            try:
                await self.look()
            except Exception as error:
                _LOG.error("notification: %s", type(error).__name__)  # no text: data

    async def look(self) -> None:
        """Tell the most urgent new matter, if there is one and the owner wants to be told.

        The first look of a home only takes note of what is there: that is no news. What was told is stored first, so
        that a crash tells too little rather than the same for ever.
        """
        if not self.home.settings().notifications:
            return
        faulty = self.engine.running is Running.FAULTY
        happened = happenings(map(_seen, self.peer.store.studies()), self.waiting(), faulty, self.now())
        told = self._told()
        if told is None:
            self._store({one.key for one in happened if one.matter is not Matter.ANSWER})
            return
        matter = next_told(happened, told)
        current = {one.key for one in happened}
        if matter is None:
            self._store(told & current)
            return
        self._store((told & current) | {one.key for one in happened if one.matter is matter})
        with suppress(Refused):  # nobody is logged in: nobody to be told
            await self.tell(SENTENCES[matter])

    def _told(self) -> set[str] | None:
        """None when nothing was ever stored, or it cannot be read."""
        try:
            keys = json.loads((self.home.path / TOLD).read_text(encoding="utf-8"))
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
    engine: Engine,
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
    running = asyncio.create_task(Reminders(peer, home, tell, now, random_bytes, engine, waiting).run())
    try:
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def _seen(study: Study) -> Seen:
    closes = max(window.closes for window in study.manifest.windows)
    return Seen(study.study.hex(), study.state, closes, bool(study.reason))
