"""Following every study of a home side by side, each from one due thing to the next.

A fault of one study stops no other. It is logged by its kind, because its text may quote data. Its owner sees it as
this study's trouble. It is tried again after a random while, which grows. A fault of the home ends the run.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import suppress

from anon.errors import AnonmlError, Damaged, NoRoom
from anon.machine.guard import Guard, told
from anon.text.sentences import Term, joined
from anon.values import frozen
from peer.rules.lifecycle import State
from peer.rules.schedule import draw_backoff
from peer.run.context import RunContext
from peer.run.runner import StudyRunner
from peer.store.home import RunElsewhere

_LOG = logging.getLogger(__name__)
POLL_SECONDS = 5.0
"""How often it is looked for studies that were joined meanwhile."""
LONGEST_SLEEP = 30.0
"""Sleep is cut into such pieces, so that a machine that was suspended notices what time it is."""
MOST_DOUBLINGS = 4
"""How often the wait after a fault of a study grows, from `POLL_SECONDS` on."""
HOME_FAULTS = (Damaged, RunElsewhere)
"""Faults of the home: no study of it can go on."""
NOTICE_SECONDS = 1.0
"""While enrolment is open the pieces are as short as this, so that a withdrawal by another process leaves at once."""


@frozen
class StudyFault:
    """A study's fault, how often it was met, and when the study is tried again (unix seconds)."""

    error: Exception
    times: int
    again: float


class Following:
    """The studies of one home. Holds nothing that may not be lost."""

    def __init__(self, tools: RunContext, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._tools = tools
        self._sleep = sleep
        self._runners: dict[bytes, StudyRunner] = {}
        self._faults: dict[bytes, StudyFault] = {}
        self._full = ""

    async def step(self, study: bytes) -> float | None:
        """Do one due thing of a study; the unix time of the next, or None when it is over."""
        return await self.runner(study).step()

    async def run(self, deadline: float | None, once: bool) -> None:
        """Follow all studies until the deadline (unix seconds), if there is one; `once`: no longer than something is
        due before it. Raises a fault of the home at once; one of a study that was met to the end, after the others."""
        try:
            async with asyncio.TaskGroup() as group:
                await self._follow_all(group, deadline, once)
        except BaseExceptionGroup as errors:  # `except*` of Python 3.11.2 would wrap what is raised
            ours, others = errors.split(AnonmlError)
            raise first_of(ours) if ours and not others else errors from None
        for fault in self._faults.values():
            if isinstance(fault.error, AnonmlError):
                raise fault.error

    def runner(self, study: bytes) -> StudyRunner:
        """The runner of a study, made when there is none."""
        if study not in self._runners:
            self._runners[study] = StudyRunner(study, self._tools)
        return self._runners[study]

    async def _follow_all(self, group: asyncio.TaskGroup, deadline: float | None, once: bool) -> None:
        followed: dict[bytes, asyncio.Task[None]] = {}
        guard = Guard("looking for studies", ends=(Exception,) if once else HOME_FAULTS)
        while True:
            with guard.turn():
                for study in self._tools.store.active():
                    if (study not in followed or followed[study].done()) and self._may_go_on(study):
                        followed[study] = group.create_task(self._follow(study, deadline))
            left = None if deadline is None else deadline - self._tools.now()
            if once or (left is not None and left <= 0):
                return
            await self._sleep(POLL_SECONDS if left is None else min(POLL_SECONDS, left))

    async def _follow(self, study: bytes, deadline: float | None) -> None:
        """Follow one study until it is over, the deadline, or a fault in it."""
        try:
            await self._follow_closely(study, deadline)
        except NoRoom as full:
            if self._full != str(full):
                self._full = str(full)
                _LOG.error("study %s: %s", study.hex()[:8], full)
        except HOME_FAULTS:
            raise
        except Exception as error:
            self._failed(study, error)

    def _failed(self, study: bytes, error: Exception) -> None:
        known = self._faults.get(study)
        times = 0 if known is None else known.times
        wait = draw_backoff(min(times, MOST_DOUBLINGS), POLL_SECONDS, self._tools.random_bytes)
        self._faults[study] = StudyFault(error, times + 1, self._tools.now() + wait)
        if known is None or type(known.error) is not type(error):
            _LOG.error("study %s: %s; it is tried again", study.hex()[:8], type(error).__name__)  # no text: data
        with suppress(NoRoom, sqlite3.Error):  # a store that is full, or held by another program, is told of later
            self.runner(study).tell_fault(told_fault(error))

    def _may_go_on(self, study: bytes) -> bool:
        return study not in self._faults or self._tools.now() >= self._faults[study].again

    async def _stepped(self, study: bytes) -> float | None:
        """Step a study. A step that worked ends what was told of a fault before it."""
        due = await self.runner(study).step()
        self._faults.pop(study, None)
        self.runner(study).tell_fault("")
        return due

    async def _follow_closely(self, study: bytes, deadline: float | None) -> None:
        standing = self._standing(study)
        while (due := await self._stepped(study)) is not None:
            if deadline is not None and (due > deadline or self._tools.now() > deadline):
                return
            await self._rest(study, standing, due)
            standing = self._standing(study)
        self._runners.pop(study, None)

    async def _rest(self, study: bytes, standing: tuple[State, float], due: float) -> None:
        """Sleep until `due`, or until the study does not stand so any more: the owner left, paused or resumed it."""
        longest = NOTICE_SECONDS if standing[0] in (State.CONSENTED, State.ENROLLED) else LONGEST_SLEEP
        while (left := due - self._tools.now()) > 0 and self._standing(study) == standing:
            await self._sleep(min(left, longest))

    def _standing(self, study: bytes) -> tuple[State, float]:
        return self._tools.store.state(study), self._tools.store.paused_until(study)


def told_fault(error: Exception) -> str:
    """A study's fault as its owner reads it. A text that is not ours may quote data, and is not shown."""
    if isinstance(error, AnonmlError):
        return str(error) or joined((Term(error.code),))
    return told(error)


def first_of(errors: BaseExceptionGroup[AnonmlError]) -> AnonmlError:
    """The first error of a group: the others are tried again with the next run."""
    first = errors.exceptions[0]
    return first_of(first) if isinstance(first, BaseExceptionGroup) else first
