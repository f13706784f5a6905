"""What every errand of a study needs: its tools, its random times, and fetching what the aggregator published."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from attrs import field, frozen

from anon.credential import Credential
from anon.documents import Head, SignedHead, find
from anon.errors import Malformed, RejectedProof, Unreachable
from anon.protocols.contract import Answering, DocumentArrived
from anon.study.manifest import Manifest, Window
from peer.checks import (
    extend_chain,
)
from peer.client import AggregatorClient
from peer.data.features import Snapshot
from peer.home import Settings
from peer.protocols.histogram import Record
from peer.protocols.registry import half_of
from peer.records import COVER_FROM, Queued, Status, Study
from peer.release import Drawn, dummy, release
from peer.schedule import (
    draw_backoff,
    draw_send_time,
)
from peer.secrets import StudySecrets, Vault
from peer.session import Event
from peer.store import Covering, Scheduled, Store

LONGEST_BACKOFF_BASE = 60.0
WITHDRAW = "withdraw"
"""The job that may not wait long: it is due before enrolment closes."""
FETCH_FAULTS = (Unreachable, Malformed, RejectedProof)
"""What a fetch may end in without any blame: it is tried again."""
ANOTHER_KEY = "an answer was signed by another key than the pinned one; nothing of it was believed"
"""Noted, and no reason to stop: where the route is not an onion address, anybody on the way could have said it."""


@frozen
class Tools:
    """What a runner works with."""

    store: Store
    data_path: Path
    vault: Vault
    settings: Settings
    client: Callable[[Study], AggregatorClient]
    now: Callable[[], float]
    random_bytes: Callable[[int], bytes]


Action = Callable[[], Awaitable[None]]
LEAST_LEFT = 0.1
"""Seconds of a window in which a packet is still drawn again."""
CHECK = "-check"
"""What a packet's name is followed by in the name of the look at the heads before it."""


@frozen
class Job:
    """Something to do from `due` on. `name` tells its random times and failures apart from others'."""

    due: float
    name: str
    action: Callable[[], Awaitable[None]]


@frozen
class Grounds:
    """All that the packets of a study are made from: what they answer, and what makes them the peer's own."""

    manifest: Manifest = field(repr=False)
    secrets: StudySecrets
    credential: Credential = field(repr=False)
    seed: bytes
    snapshot: Snapshot
    documents: tuple[DocumentArrived, ...] = field(default=(), repr=False)

    def answers(self, slots: Sequence[tuple[int, int]]) -> tuple[Answering, ...]:
        """One answer for each of the slots (slot, survey) whose documents are there. Raises `Malformed`."""
        record = Record(self.snapshot.values, self.snapshot.label)
        return half_of(self.manifest).answers(self.manifest, record, slots, self.documents)

    def drawn(self, slot: int, survey: int) -> Drawn:
        """The slot's random bytes. Only documents that its survey needs count: others are there or not by chance."""
        needed = half_of(self.manifest).needs(self.manifest, survey)
        bodies = [one.body for one in self.documents if (one.kind, one.part) in needed]
        return Drawn(
            self.secrets.drawn[slot],
            self.credential.public_key,
            self.credential.header,
            self.seed,
            survey.to_bytes(4, "big"),
            self.snapshot.to_bytes(),
            *bodies,
        )


class Later(Exception):
    """The other side has not published or answered yet; the job is tried again after a random while."""


class Errands:
    """One study's errands. Holds nothing that may not be lost."""

    def __init__(self, study: bytes, tools: Tools) -> None:
        self._study = study
        self._tools = tools
        self._times: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._last_done = ("", 0.0)

    def _job(
        self, name: str, due: float, action: Callable[[], Awaitable[None]], instead: Action | None = None
    ) -> Job:
        """`instead`: what is done when the job fell due while another one was waited for."""
        due = max(due, self._times.get("again-" + name, 0.0))
        return Job(due, name, partial(self._act, name, due, action, instead))

    async def _act(self, name: str, due: float, action: Action, instead: Action | None) -> None:
        """Nothing begins because an answer came. Whoever answers chooses when, and whatever of this peer had fallen due
        meanwhile and now left at once would be tied to what was answered. A packet may follow its own check."""
        before, ended = self._last_done
        if instead is not None and due < ended <= self._tools.now() and before != name + CHECK:
            return await instead()
        try:
            await action()
        finally:
            self._last_done = (name, self._tools.now())

    def _drawn(self, name: str, draw: Callable[[], float]) -> float:
        if name not in self._times:
            self._times[name] = draw()
        return self._times[name]

    def _postpone(self, name: str, manifest: Manifest) -> None:
        table, now = manifest.timetable, self._tools.now()
        base = min(LONGEST_BACKOFF_BASE, max(0.25, (table.settled - table.enrol_closes) / 20))
        failures = self._failures.get(name, 0)
        self._failures[name] = failures + 1
        wait = draw_backoff(failures, 1.0 if name == WITHDRAW else base, self._tools.random_bytes)
        longest = max(0.25, (table.enrol_closes - now) / 4) if name == WITHDRAW else wait
        self._times["again-" + name] = now + min(wait, longest)

    async def _word(self, answer: Awaitable[str]) -> str:
        try:
            return await answer
        except FETCH_FAULTS:
            raise Later from None

    async def _chain(self, study: Study) -> tuple[SignedHead, ...]:
        """The chain, fetched anew and consistent with what was seen. Raises `Later`, `Distrust`.

        A shorter one than was seen contradicts nothing and so checks nothing: it counts as no answer. Otherwise an
        aggregator of two stories would show everybody the manifest's head alone, once each had its own story. A longer
        one is kept at once, whatever comes of its documents: the next one is compared with it.
        """
        try:
            fresh = await self._tools.client(study).chain()
        except RejectedProof:
            self._tools.store.note(self._study, ANOTHER_KEY)
            raise Later from None
        except FETCH_FAULTS:
            raise Later from None
        chain = extend_chain(study.chain, fresh)
        if len(fresh) < len(chain):
            raise Later
        if len(chain) > len(study.chain):
            self._tools.store.see_chain(self._study, chain)
        return chain

    async def _document(
        self, study: Study, chain: Sequence[SignedHead], kind: str, part: int
    ) -> DocumentArrived:
        head = find(chain, kind, part)
        if head is None:
            raise Later
        return DocumentArrived(kind, part, await self._body(study, head))

    async def _body(self, study: Study, head: Head) -> bytes:
        try:
            return await self._tools.client(study).body(head)
        except FETCH_FAULTS:
            raise Later from None

    def _secrets(self, study: Study) -> StudySecrets:
        assert study.secrets is not None
        return StudySecrets.from_bytes(self._tools.vault.open(study.secrets))

    def _released(
        self, grounds: Grounds, slots: Sequence[tuple[int, int]], now: float
    ) -> tuple[list[Scheduled], list[int]]:
        """Finished packets of the slots that can be answered, with their times, and those whose window had passed.

        `now` was read before the data was: how long its evaluation took moves no packet.
        """
        manifest = grounds.manifest
        packets: list[Scheduled] = []
        missed: list[int] = []
        for answering in grounds.answers(slots):
            window = manifest.survey(answering.survey).window
            send_at = draw_send_time(window, manifest.timetable.margin, now, self._tools.random_bytes)
            if send_at is None:
                missed.append(answering.slot)
                continue
            drawn = grounds.drawn(answering.slot, answering.survey)
            made = release(self._study, manifest, answering, grounds.credential, drawn)
            packets.append(Scheduled(made, send_at))
        return packets, missed

    def _dummies(self, manifest: Manifest, window: Window, packets: int, now: float) -> list[Covering]:
        """What fills the window's connections up beside so many packets, each at a time of its own, drawn as a packet's
        is; nothing when the window has passed."""
        margin, cover = manifest.timetable.margin, []
        first = next(one.survey for one in manifest.surveys if one.window == window)
        for _ in range(manifest.cover.connections - packets):
            send_at = draw_send_time(window, margin, now, self._tools.random_bytes)
            if send_at is None:
                return []
            cover.append(Covering(dummy(self._study, manifest, window), first, send_at))
        return cover

    def _waiting(self, study: Study, departures: Sequence[Queued]) -> dict[Window, list[tuple[int, int]]]:
        """Per window, the slots (slot, survey) still to be decided; with cover traffic every window that is still to be
        filled, also with none, so that nothing depends on what was drawn."""
        manifest, decided = study.manifest, {one.slot for one in departures}
        waiting: dict[Window, list[tuple[int, int]]] = {}
        for slot, survey in enumerate(study.draws):
            if slot not in decided:
                waiting.setdefault(manifest.survey(survey).window, []).append((slot, survey))
        if manifest.cover.connections and not study.barred:
            filled = {manifest.survey(one.survey).window for one in departures if one.slot >= COVER_FROM}
            for window in manifest.windows:
                lacking = manifest.cover.connections - packets_in(manifest, study.draws, window)
                if lacking and window not in filled and not self._over(manifest, window):
                    waiting.setdefault(window, [])
        return waiting

    def _settle_if_done(self, study: Study) -> None:
        departures = self._tools.store.departures(self._study)
        if not self._waiting(study, departures) and all(one.status is not Status.QUEUED for one in departures):
            self._tools.store.settle(self._study, self._settled_events())

    async def _settle(self, study: Study) -> None:
        self._settle_if_done(study)

    def _settled_events(self) -> tuple[Event, ...]:
        if self._tools.settings.check_inclusion:
            return (Event.SLOTS_SETTLED,)
        return (Event.SLOTS_SETTLED, Event.INCLUSION_SETTLED)

    def _send_time(self, manifest: Manifest, window: Window) -> float | None:
        """A time for a packet that had one before; None when hardly anything is left of the window."""
        now, margin = self._tools.now(), manifest.timetable.margin
        if window.closes - margin - now < LEAST_LEFT:
            return None
        return draw_send_time(window, margin, now, self._tools.random_bytes)

    def _over(self, manifest: Manifest, window: Window) -> bool:
        return self._tools.now() >= window.closes - manifest.timetable.margin


def packets_in(manifest: Manifest, draws: Sequence[int], window: Window) -> int:
    """How many of the drawn surveys have this window."""
    return sum(manifest.survey(survey).window == window for survey in draws)


def documents_of(manifest: Manifest, surveys: Sequence[int]) -> list[tuple[str, int]]:
    """The documents (kind, part) without which one of the surveys cannot be answered."""
    return sorted({needed for survey in surveys for needed in half_of(manifest).needs(manifest, survey)})


def surveys_in(manifest: Manifest, window: Window) -> list[int]:
    """All surveys of a window, whoever draws them."""
    return [one.survey for one in manifest.surveys if one.window == window]
