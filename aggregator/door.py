"""Where packets come in: performs the numbered steps of `verify` in their order. It knows no enrolment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from attrs import field, frozen

from aggregator.answer import Turned
from aggregator.batcher import Batcher
from aggregator.packet_store import PacketStore
from aggregator.store import Clock
from aggregator.verify import (
    Opened,
    OpenedDummy,
    PacketRules,
    acknowledged,
    check_report,
    check_window,
    open_packet,
    settle,
)
from aggregator.work import verify_tokens
from aggregator.workers import Workers
from anon.answers import ACCEPTED
from anon.messages import credential_header

ANSWER_SECONDS = 0.25
"""In a study with cover traffic no answer leaves sooner after its packet came: a dummy costs no proof and no commit."""

Arrival = tuple[Opened | OpenedDummy, float]


@frozen
class Issued:
    """What a closed roster fixes: the study's seed and the digest of the roster's body."""

    seed: bytes = field(repr=False)
    roster_digest: bytes


@frozen
class Answered:
    """The word for one post, and whether it was cover traffic, which nothing counts."""

    word: str
    dummy: bool = False


class Door:
    """One study's packets."""

    def __init__(self, rules: PacketRules, store: PacketStore, workers: Workers, now: Clock) -> None:
        self.rules = rules
        self.issued: Issued | None = None
        self.frozen_until = 0
        self._store = store
        self._workers = workers
        self._now = now
        self._batcher: Batcher[Arrival, str] = Batcher(self._judge)

    async def submit(self, sealed_untrusted: bytes) -> Answered:
        """The answer, once it is durable."""
        if not self.rules.manifest.cover.connections:
            return await self._answer(sealed_untrusted)
        loop = asyncio.get_running_loop()
        earliest = loop.time() + ANSWER_SECONDS
        answered = await self._answer(sealed_untrusted)
        await asyncio.sleep(earliest - loop.time())
        return answered

    async def drain(self) -> None:
        """Return when every packet that came before this call is answered."""
        await self._batcher.drain()

    async def stop(self) -> None:
        """End the batcher's tasks."""
        await self._batcher.close()

    async def _answer(self, sealed_untrusted: bytes) -> Answered:
        arrived, dummy = self._now(), False
        try:
            opened = open_packet(self.rules, sealed_untrusted)  # 1. to 4.
            dummy = isinstance(opened, OpenedDummy)
            return Answered(await self._batcher.submit((opened, arrived)), dummy)
        except Turned as turned:
            return Answered(turned.word, dummy)

    async def _judge(self, batch: Sequence[Arrival]) -> list[str]:
        packets = [(place, one) for place, (one, _at) in enumerate(batch) if isinstance(one, Opened)]
        known = await self._store.digests(self.rules.study, (one.kept.place for _place, one in packets))
        words = [self._before_token(known, one, at) for one, at in batch]
        left = [(place, one) for place, one in packets if words[place] is None]
        held = await self._check_tokens([one for _place, one in left])  # 9.
        for (place, _one), holds in zip(left, held, strict=True):
            if not holds:
                words[place] = "rejected-proof"
        good = [(place, one) for place, one in left if words[place] is None]
        if good:
            holders = await self._store.insert(self.rules.study, [one.kept for _place, one in good])  # 10.
            for place, one in good:
                words[place] = settle(one, holders[one.kept.place])
        return [str(word) for word in words]

    def _before_token(
        self, known: dict[tuple[int, bytes], bytes], opened: Opened | OpenedDummy, arrived: float
    ) -> str | None:
        if isinstance(opened, Opened) and acknowledged(opened, known.get(opened.kept.place)):  # 5.
            return ACCEPTED
        if self.issued is None:
            return "window-not-open"
        try:
            check_window(self.rules, opened, arrived, self.frozen_until)  # 6.
            if isinstance(opened, OpenedDummy):
                return ACCEPTED
            check_report(self.rules, opened, self.issued.seed)  # 7. and 8.
        except Turned as turned:
            return turned.word
        return None

    async def _check_tokens(self, opened: Sequence[Opened]) -> list[bool]:
        if not opened or self.issued is None:
            return []
        manifest = self.rules.manifest
        header = credential_header(self.rules.study, self.issued.roster_digest)
        items = [one.token_item() for one in opened]
        return await self._workers.run(verify_tokens, manifest.credential_key, header, manifest.packets, items)
