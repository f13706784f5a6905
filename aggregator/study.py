"""One study while it runs: its chain, its registry, its door, and what its posts and fetches are answered."""

from __future__ import annotations

from collections.abc import Awaitable

from attrs import frozen

from aggregator.answer import Turned
from aggregator.counters import Counters
from aggregator.door import Door, Issued
from aggregator.enrol_store import EnrolStore
from aggregator.home import Home, StudySecrets
from aggregator.packet_store import PacketStore
from aggregator.registry import Registry
from aggregator.session import Phase
from aggregator.store import Clock, Progress, StudyStore
from aggregator.verify import PacketRules
from aggregator.workers import Workers
from anon.documents import Head, SignedHead, body_digest, encode_chain, find
from anon.messages import study_seed
from anon.study.manifest import Manifest, parse_manifest

_KEPT_BYTES = 64 * 1024 * 1024


@frozen
class Tools:
    """What every study of an aggregator shares."""

    home: Home
    studies: StudyStore
    enrolments: EnrolStore
    packets: PacketStore
    workers: Workers
    now: Clock


class LiveStudy:
    """A study in memory. Make it with `load_study`."""

    def __init__(self, tools: Tools, progress: Progress, manifest_bytes: bytes, secrets: StudySecrets) -> None:
        self.tools = tools
        self.study = progress.study
        self.manifest_bytes = manifest_bytes
        self.manifest: Manifest = parse_manifest(manifest_bytes)
        self.secrets = secrets
        self.phase = Phase(progress.phase)
        self.turn = progress.turn
        self.enrolment_answers = Counters()
        self.packet_answers = Counters()
        rules = PacketRules(self.study, self.manifest, secrets.sealing_key)
        self.door = Door(rules, tools.packets, tools.workers, tools.now)
        self.door.frozen_until = progress.frozen
        self.registry = Registry(
            self.study, self.manifest, secrets.sealing_key, tools.enrolments, tools.workers, tools.now
        )
        self.chain: tuple[SignedHead, ...] = ()
        self._encoded_chain = b""
        self._bodies: dict[int, bytes] = {}

    async def refresh(self) -> None:
        """Take chain, and once there is one the roster's consequences, from the store."""
        self._take(await self.tools.studies.chain(self.study))
        roster = find(self.chain, "roster")
        self.registry.taken = roster is not None or find(self.chain, "abandoned") is not None
        if roster is not None:
            self.open_door(await self.body_of(roster))

    def open_door(self, roster_body: bytes) -> None:
        """From here on tags can be drawn and tokens verified."""
        seed = study_seed(self.manifest_bytes, roster_body, self.secrets.seed_value)
        self.door.issued = Issued(seed, body_digest(roster_body))

    async def publish(self, kind: str, part: int, body: bytes) -> None:
        """Append a document, or keep the one of this kind and part that is there already."""
        key = self.tools.home.signing_key
        self._take(await self.tools.studies.append(self.study, kind, part, body, key))

    async def body_of(self, head: Head) -> bytes:
        """The body of a document of the chain."""
        body = await self.document(head.number)
        if body is None:
            raise AssertionError(f"{head.kind}: the body of a signed head is gone")
        return body

    def heads(self) -> bytes:
        """The chain for the wire."""
        return self._encoded_chain

    async def document(self, number: int) -> bytes | None:
        """A body for the wire; None when there is none."""
        if number in self._bodies:
            return self._bodies[number]
        if not 0 <= number < len(self.chain):
            return None
        body = await self.tools.studies.body(self.study, number)
        if body is not None and sum(map(len, self._bodies.values())) + len(body) <= _KEPT_BYTES:
            self._bodies[number] = body
        return body

    def forget_bodies(self) -> None:
        """Drop what is cached; after an erasure."""
        self._bodies.clear()

    async def enrol(self, sealed_untrusted: bytes) -> str:
        """The answer's word."""
        return await _counted(self.enrolment_answers, self.registry.enrol(sealed_untrusted))

    async def withdraw(self, sealed_untrusted: bytes) -> str:
        """The answer's word."""
        return await _counted(self.enrolment_answers, self.registry.withdraw(sealed_untrusted))

    async def submit(self, sealed_untrusted: bytes) -> str:
        """The answer's word."""
        answered = await self.door.submit(sealed_untrusted)
        if not answered.dummy:
            self.packet_answers.count(answered.word)
        return answered.word

    async def stop(self) -> None:
        """End the study's tasks; nothing durable changes."""
        await self.registry.stop()
        await self.door.stop()

    def _take(self, chain: tuple[SignedHead, ...]) -> None:
        self.chain = chain
        self._encoded_chain = encode_chain(chain)


async def _counted(counters: Counters, answering: Awaitable[str]) -> str:
    try:
        word = await answering
    except Turned as turned:
        word = turned.word
    counters.count(word)
    return word


async def load_study(tools: Tools, progress: Progress) -> LiveStudy:
    """A study from its store, as far as it has come."""
    manifest = await tools.studies.body(progress.study, 0)
    if manifest is None:
        raise AssertionError("a stored study has no manifest")
    study = LiveStudy(tools, progress, manifest, tools.home.load_secrets(progress.study))
    await study.refresh()
    return study
