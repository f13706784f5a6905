"""Fetching what the aggregator published of one study. Nothing here decides; every document is checked by the rules."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TypeVar

from attrs import evolve

from anon.errors import AnonmlError, Malformed, RejectedProof, Unreachable
from anon.protocols.contract import DocumentArrived
from anon.protocols.kinds import longest_bucket
from anon.protocols.sizes import longest_body
from anon.text.sentences import say
from anon.transparency.buckets import Bucket, BucketDocument, wire_bytes
from anon.transparency.documents import Head, SignedHead, find
from anon.transparency.together import HeadGroup, parse_told_time, taken_apart
from peer.network.client import ChainAnswer
from peer.rules.checks import extend_chain
from peer.rules.distrust import Distrust
from peer.run.context import Later, StudyRun
from peer.store.records import Study
from peer.store.troubles import Troubles
from peer.threads import heads_off_loop, off_loop

FETCH_FAULTS = (Unreachable, Malformed, RejectedProof)
"""Errors of a fetch that blame no one: it is tried again."""
MOST_WASTED = 256 * 1024 * 1024
"""Bytes of bodies that did not match their heads, after which a study has cost enough."""
MOST_KEPT = 32 * 1024 * 1024
"""Bytes of a study's documents in memory, each fetched once while this process runs. Further ones are fetched again."""
WASTED = (
    say(
        "the aggregator sent more than {most_wasted} MiB that did not match what it had signed; nothing more is "
        "fetched or sent: tell staff",
        most_wasted=MOST_WASTED >> 20,
    )
)
ANOTHER_KEY = say("an answer was signed by another key than the pinned one; nothing of it was believed")
"""Noted, and no reason to stop: where the route is not an onion address, anybody on the way could have said it."""
_T = TypeVar("_T")


class Exchanges:
    """One study's. Remembers the documents of its rounds, how much was fetched in vain, and what the owner was told."""

    def __init__(self, run: StudyRun) -> None:
        self._run = run
        self._wasted = 0
        self._kept: dict[Head, DocumentArrived] = {}
        self._troubles: Troubles | None = None
        self._chain: tuple[bytes, tuple[SignedHead, ...]] | None = None

    async def answered(self, answer: Awaitable[_T]) -> _T:
        """The result of an exchange; the time since none came is kept for the owner."""
        try:
            arrived = await answer
        except Unreachable:
            self.tell(silent=True)
            raise
        except AnonmlError:
            self.tell(silent=False)
            raise
        self.tell(silent=False)
        return arrived

    def tell(self, silent: bool | None = None) -> None:
        """Keep what the owner should know, when it has changed: of a silence only its beginning."""
        clock, known = self._run.tools.clock, self._known_troubles()
        since = known.silent_since
        if silent is not None:
            since = (since or self._run.tools.now()) if silent else None
        doubt = round(clock.doubt) if clock is not None else 0
        self._keep(evolve(known, silent_since=since, clock=float(doubt or -round(self._run.now.behind))))

    def tell_fault(self, fault: str) -> None:
        """Keep for the owner what this study cannot go on for; empty when it goes on."""
        self._keep(evolve(self._known_troubles(), fault=fault))

    def _known_troubles(self) -> Troubles:
        return self._troubles or self._run.store.troubles(self._run.study)

    def _keep(self, troubles: Troubles) -> None:
        if troubles != self._known_troubles():
            self._run.store.trouble(self._run.study, troubles)
        self._troubles = troubles

    async def word(self, answer: Awaitable[str]) -> str:
        """The aggregator's word. Raises `Later`."""
        try:
            return await self.answered(answer)
        except FETCH_FAULTS:
            raise Later from None

    async def chain(self, study: Study) -> tuple[SignedHead, ...]:
        """The chain, fetched anew and consistent with what was seen. Raises `Later`, `Distrust`.

        A shorter one than was seen contradicts nothing and so checks nothing: it counts as no answer. Otherwise an
        aggregator of two stories would show everybody the manifest's head alone, once each had its own story. A longer
        one is kept at once, whatever comes of its documents: the next one is compared with it.
        """
        return (await self._fetched_chain(study)).chain

    async def chain_with(self, study: Study, group: HeadGroup) -> tuple[tuple[SignedHead, ...], dict[Head, bytes]]:
        """The same with the bodies of a group, in one exchange; none before all are published. Raises `Later`,
        `Distrust`."""
        fetched = await self._fetched_chain(study, group)
        bodies = off_loop(taken_apart, fetched.wanted, fetched.rest)
        return fetched.chain, await self._fetched(bodies, len(fetched.rest))

    async def look_at_clock(self, study: Study) -> None:
        """The same with the aggregator's time, once there is a roster. Raises `Later`, `Distrust`."""
        await self._fetched_chain(study, HeadGroup.CLOCK)

    async def _fetched_chain(self, study: Study, group: HeadGroup | None = None) -> ChainAnswer:
        seen = await self._stored_chain(study)
        try:
            fetched = await self.answered(self._run.tools.client(study).longer_chain(study.manifest, seen, group))
            told = parse_told_time(fetched.rest) if group is HeadGroup.CLOCK else None
        except RejectedProof:
            self._run.store.note(study.study, ANOTHER_KEY)
            raise Later from None
        except FETCH_FAULTS:
            raise Later from None
        if not fetched.came:
            raise Later
        self._run.now.compare(study.manifest, fetched.chain, told)
        if len(fetched.chain) > len(seen):
            self._run.store.see_chain(study.study, fetched.chain, extend_chain)
        return fetched

    async def _stored_chain(self, study: Study) -> tuple[SignedHead, ...]:
        """The chain seen before. It is read once, until the store has another."""
        if self._chain is None or self._chain[0] != study.chain_bytes:
            self._chain = study.chain_bytes, await heads_off_loop(lambda: study.chain)
        return self._chain[1]

    async def document(self, study: Study, chain: Sequence[SignedHead], kind: str, part: int) -> DocumentArrived:
        """A document of the chain, fetched once. Raises `Later` while it has no head."""
        head = find(chain, kind, part)
        if head is None:
            raise Later
        document = self._kept.get(head)
        if document is None:
            document = DocumentArrived(kind, part, await self.body(study, head))
            if sum(len(kept.body) for kept in (document, *self._kept.values())) <= MOST_KEPT:
                self._kept[head] = document
        return document

    async def body(self, study: Study, head: Head) -> bytes:
        """The document of a head. Raises `Later`, `Distrust`."""
        longest = longest_body(study.manifest, head.kind, head.part)
        return await self._fetched(self._run.tools.client(study).body(head, longest), head.length)

    async def bucket(self, study: Study, head: Head, document: BucketDocument, number: int) -> Bucket:
        """A bucket of a document, over a connection of its own. Raises `Later`, `Distrust`."""
        longest = wire_bytes(longest_bucket(head.kind), document.bits)
        return await self._fetched(self._run.tools.client(study).bucket(head, document, number, longest), longest)

    async def _fetched(self, answer: Awaitable[_T], length: int) -> _T:
        """The result of a fetch of so many bytes. Raises `Later`, and `Distrust` when too many bytes never matched."""
        try:
            return await self.answered(answer)
        except Malformed:
            self._wasted += length
            if self._wasted > MOST_WASTED:
                raise Distrust(WASTED) from None
            raise Later from None
        except FETCH_FAULTS:
            raise Later from None
