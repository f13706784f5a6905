"""Tellers in memory as an aggregator calls them: real sessions on real journals, which may be away, or lie."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field

from anon.errors import Unreachable
from anon.sharing.arrangement import TellerEntry
from anon.teller.journal import Journal
from anon.teller.session import Teller
from anon.transparency.closing import Bodies
from anon.wire.packets import Occasion
from tests.support.protocols import parse_manifest
from tests.support.reopened_teller import reopened


@define
class MemoryTeller:
    """One teller, and the link to it. `away(call)`: the call gets nowhere. `mute(call)`: its answer is lost.

    `turned`: what a lying aggregator sends in place of a call's last argument; `lies`: what a lying teller answers.
    `calls`: the names of all that came.
    """

    folder: Path
    away: Callable[[str], bool] = lambda _call: False
    mute: Callable[[str], bool] = lambda _call: False
    turned: Callable[[str, Any], Any] = lambda _call, given: given
    lies: Callable[[str, Any], Any] = lambda _call, answer: answer
    calls: list[str] = field(factory=list)
    _session: Teller | None = None
    _journal: Journal | None = None
    _manifests: dict[bytes, bytes] = field(factory=dict)

    @property
    def session(self) -> Teller:
        """Its process, begun at the first call."""
        if self._session is None:
            key, self._journal = reopened(self.folder)
            self._session = Teller(key, self._journal, os.urandom)
        return self._session

    @property
    def studies(self) -> list[bytes]:
        """The ids of all that it was asked to sign."""
        return list(self._manifests)

    def restart(self) -> None:
        """Its process ends; the next call finds another, with what is on the disk."""
        if self._journal is not None:
            self._journal.close()
        self._session = self._journal = None

    async def entry(self, name: str, address: str) -> TellerEntry:
        return await self._answered("entry", lambda last: self.session.offer(name, last), address)

    async def countersign(self, manifest: bytes) -> bytes:
        def sign(body: bytes) -> bytes:
            named = parse_manifest(body)
            self._manifests[named.study_id] = body
            return self.session.countersign(named.study_id, named.part, body)

        return await self._answered("countersign", sign, manifest)

    async def key_shares(self, study: bytes) -> Mapping[int, bytes]:
        return await self._answered("key-shares", self.session.key_shares, study)

    async def key_share(self, study: bytes, sender: int, sealed: bytes) -> None:
        await self._answered("key-share", lambda last: self.session.take_key_share(study, sender, last), sealed)

    async def roll(
        self, study: bytes, heads: bytes, roster: bytes, seed: bytes, credentials: bytes, beside: Sequence[bytes]
    ) -> None:
        manifest, buckets = self._manifests.get(study) or self._manifest_of(study), tuple(beside)

        def take(last: bytes) -> None:
            self.session.take_roll(study, manifest, heads, Bodies(roster, seed, last, beside=buckets))

        await self._answered("roll", take, credentials)

    def _manifest_of(self, study: bytes) -> bytes:
        """Of a study, or of a pair of its tellers."""
        assert self.session is not None and self._journal is not None
        return self._journal.manifest(study) or b""

    async def admit(self, occasion: Occasion, items: Sequence[bytes]) -> tuple[bytes, Mapping[str, int]]:
        admitted = await self._answered("admit", lambda last: self.session.admit(occasion, last), items)
        return admitted.statement, admitted.refused

    async def settle(self, occasion: Occasion, statements: Sequence[bytes]) -> frozenset[bytes]:
        return await self._answered("settle", lambda last: self.session.settle(occasion, last), statements)

    async def accepted(self, occasion: Occasion) -> frozenset[bytes]:
        return await self._answered("accepted", self.session.accepted, occasion)

    async def sign_list(self, occasion: Occasion, body: bytes) -> bytes:
        return await self._answered("list", lambda last: self.session.sign_list(occasion, last), body)

    async def noise(self, occasion: Occasion, signatures: Sequence[bytes]) -> bytes:
        return await self._answered("noise", lambda last: self.session.add_noise(occasion, last), signatures)

    async def finish(self, study: bytes) -> None:
        await self._answered("finish", lambda last: self.session.finish(last, 0), study)

    async def _answered(self, call: str, work: Callable[[Any], Any], given: Any) -> Any:
        await asyncio.sleep(0)
        self.calls.append(call)
        if self.away(call):
            raise Unreachable("away")
        answer = work(self.turned(call, given))
        if self.mute(call):
            raise Unreachable("mute")
        return self.lies(call, answer)
