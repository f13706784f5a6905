"""Where packets come in: performs the numbered steps of `verify` in their order. It knows no enrolment."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen

from aggregator.answer import Turned
from aggregator.batcher import Batcher
from aggregator.packet_store import PacketStore
from aggregator.store import Clock
from aggregator.verify import (
    Opened,
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


@frozen
class Issued:
    """What a closed roster fixes: the study's seed and the digest of the roster's body."""

    seed: bytes = field(repr=False)
    roster_digest: bytes


class Door:
    """One study's packets."""

    def __init__(self, rules: PacketRules, store: PacketStore, workers: Workers, now: Clock) -> None:
        self.rules = rules
        self.issued: Issued | None = None
        self.frozen_until = 0
        self._store = store
        self._workers = workers
        self._now = now
        self._batcher: Batcher[tuple[Opened, float], str] = Batcher(self._judge)

    async def submit(self, sealed_untrusted: bytes) -> str:
        """The answer's word, once it is durable."""
        arrived = self._now()
        try:
            return await self._batcher.submit((open_packet(self.rules, sealed_untrusted), arrived))  # 1. to 4.
        except Turned as turned:
            return turned.word

    async def drain(self) -> None:
        """Return when every packet that came before this call is answered."""
        await self._batcher.drain()

    async def stop(self) -> None:
        """End the batcher's tasks."""
        await self._batcher.close()

    async def _judge(self, batch: Sequence[tuple[Opened, float]]) -> list[str]:
        known = await self._store.digests(self.rules.study, (opened.kept.place for opened, _ in batch))
        words: list[str | None] = [self._before_token(known.get(one.kept.place), one, at) for one, at in batch]
        left = [place for place, word in enumerate(words) if word is None]
        held = await self._check_tokens([batch[place][0] for place in left])  # 9.
        for place, holds in zip(left, held, strict=True):
            if not holds:
                words[place] = "rejected-proof"
        good = [place for place in left if words[place] is None]
        if good:
            holders = await self._store.insert(self.rules.study, [batch[place][0].kept for place in good])  # 10.
            for place in good:
                words[place] = settle(batch[place][0], holders[batch[place][0].kept.place])
        return [str(word) for word in words]

    def _before_token(self, stored_digest: bytes | None, opened: Opened, arrived: float) -> str | None:
        if acknowledged(opened, stored_digest):  # 5.
            return ACCEPTED
        if self.issued is None:
            return "window-not-open"
        try:
            check_window(self.rules, opened, arrived, self.frozen_until)  # 6.
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
