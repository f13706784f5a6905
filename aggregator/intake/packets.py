"""Where packets come in: performs the numbered steps of `acceptance` in their order. It knows no enrolment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from attrs import field, frozen

from aggregator.intake.batcher import Batcher
from aggregator.intake.token_jobs import verify_tokens
from aggregator.intake.workers import Workers
from aggregator.rules.acceptance import (
    OpenedDummy,
    OpenedPacket,
    PacketRules,
    acknowledged,
    check_report,
    check_window,
    open_packet,
    settle,
)
from aggregator.rules.accepted import AcceptedPacket
from aggregator.rules.refusal import PacketRefused
from aggregator.store.packets import PacketStore
from aggregator.store.studies import Clock
from anon.wire.messages import credential_header
from anon.wire.replies import ACCEPTED

REPLY_SECONDS = 0.25
"""In a study with cover traffic no answer leaves sooner after its packet came: a dummy costs no proof and no commit."""

AT_MOST = 1024
"""Packets that are judged together where so many wait. Nothing waits until they are so many. A token costs a tenth less
than in batches of 256."""

Arrival = tuple[OpenedPacket | OpenedDummy, float]


@frozen
class RosterValues:
    """Values that a closed roster fixes: the study's seed and the digest of the roster's body."""

    seed: bytes = field(repr=False)
    roster_digest: bytes


@frozen
class Reply:
    """The word for one post, and whether it was cover traffic, which nothing counts."""

    word: str
    dummy: bool = False


class PacketIntake:
    """One study's packets."""

    def __init__(self, rules: PacketRules, store: PacketStore, workers: Workers, now: Clock) -> None:
        self.rules = rules
        self.issued: RosterValues | None = None
        self.frozen_until = 0
        self._store = store
        self._workers = workers
        self._now = now
        self._batcher: Batcher[Arrival, str] = Batcher(self._judge, AT_MOST)

    async def submit(self, sealed_untrusted: bytes) -> Reply:
        """The answer, once it is durable."""
        if not self.rules.manifest.cover.connections:
            return await self._answer(sealed_untrusted)
        loop = asyncio.get_running_loop()
        earliest = loop.time() + REPLY_SECONDS
        answered = await self._answer(sealed_untrusted)
        # A negative time is no wait.
        await asyncio.sleep(earliest - loop.time())
        return answered

    async def drain(self) -> None:
        """Return when every packet that came before this call is answered."""
        await self._batcher.drain()

    async def stop(self) -> None:
        """End the batcher's tasks."""
        await self._batcher.close()

    async def _answer(self, sealed_untrusted: bytes) -> Reply:
        # The clock comes first: windows are judged by arrival, however long the queue is.
        arrived, dummy = self._now(), False
        try:
            opened = open_packet(self.rules, sealed_untrusted)  # 1. to 4.
            dummy = isinstance(opened, OpenedDummy)
            return Reply(await self._batcher.submit((opened, arrived)), dummy)
        except PacketRefused as turned:
            return Reply(turned.word, dummy)

    async def _judge(self, batch: Sequence[Arrival]) -> list[str]:
        packets = [(index, opened) for index, (opened, _at) in enumerate(batch) if isinstance(opened, OpenedPacket)]
        known = await self._store.digests(self.rules.study, (packet.kept.place for _place, packet in packets))
        words = [self._before_token(known, opened, at) for opened, at in batch]
        left = [(index, packet) for index, packet in packets if words[index] is None]
        held = await self._check_tokens([packet for _place, packet in left])  # 9.
        for (index, _one), holds in zip(left, held, strict=True):
            if not holds:
                words[index] = "rejected-proof"
        good = [(place, packet) for place, packet in left if words[place] is None]
        if good:
            kept = [packet.kept for _place, packet in good]
            holders = await self._store.insert(self.rules.study, kept, self._closes)  # 10.
            for index, packet in good:
                words[index] = settle(packet, holders.get(packet.kept.place))
        return [str(word) for word in words]

    def _closes(self, kept: AcceptedPacket) -> int:
        return self.rules.manifest.surveys[kept.survey].window.closes

    def _before_token(
        self, known: dict[tuple[int, bytes], bytes], opened: OpenedPacket | OpenedDummy, arrived: float
    ) -> str | None:
        if isinstance(opened, OpenedPacket) and acknowledged(opened, known.get(opened.kept.place)):  # 5.
            return ACCEPTED
        if self.issued is None:
            return "window-not-open"
        try:
            check_window(self.rules, opened, arrived, self.frozen_until)  # 6.
            if isinstance(opened, OpenedDummy):
                return ACCEPTED
            check_report(self.rules, opened.packet, self.issued.seed)  # 7. and 8.
        except PacketRefused as turned:
            return turned.word
        return None

    async def _check_tokens(self, opened: Sequence[OpenedPacket]) -> list[bool]:
        if not opened or self.issued is None:
            return []
        manifest = self.rules.manifest
        header = credential_header(self.rules.study, self.issued.roster_digest)
        tokens = (manifest.credential_key, header, manifest.packets)
        items = [self.rules.token_item(packet.packet) for packet in opened]
        return await self._workers.run(verify_tokens, *tokens, items)
