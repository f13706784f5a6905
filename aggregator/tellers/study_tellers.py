"""One study's tellers as its aggregator meets them: the links to them, and the work with them that is under way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

from aggregator.rules.faults import TellerAway, TellerRefuses
from aggregator.store.packets import PacketStore, slot_of
from aggregator.tellers import walk
from aggregator.tellers.job import Job
from aggregator.tellers.link import TellerLink
from aggregator.tellers.walk import Batch, KeptLists
from anon.protocols.tellers import tellers_of
from anon.sharing.arrangement import Arrangement
from anon.sharing.exchange import BATCH_BYTES, MOST_IN_A_BATCH
from anon.sharing.quorum import Quorum, quorums
from anon.sharing.round_document import RoundSums, SlotSum
from anon.study.manifest import Manifest, Survey
from anon.transparency.closing import Bodies
from anon.wire.packets import Occasion, Relayed


class LinkTo(Protocol):
    """Makes the link to a teller: at its address, and once its entry is known under its lasting key."""

    def __call__(self, address: str, key: bytes = b"", arrangement: Arrangement | None = None) -> TellerLink: ...


class StudyTellers:
    """The tellers of one study. `finished`: told the end since this process began.

    `summed`: the documents of rounds that were summed and are not published yet, by the round's place in its order.
    With a spare each sum is made by one of three pairs (`quorums`).
    """

    def __init__(
        self, manifest: Manifest, arrangement: Arrangement, link_to: LinkTo, packets: PacketStore, lists: KeptLists
    ) -> None:
        self.arrangement = arrangement
        self.job = Job()
        self.finished = False
        self.finish_again = 0.0
        self.summed: dict[int, bytes] = {}
        self._manifest = manifest
        self._study = manifest.study_id
        self._links = links_of(arrangement, link_to)
        self._quorums = quorums(self._study, arrangement)
        self._rolled: set[int] = set()
        self._packets = packets
        self._lists = lists

    @property
    def rolled(self) -> bool:
        """True once tellers that make a sum together were handed the roll, since this process began."""
        return any(quorum.number in self._rolled for quorum in self._quorums)

    @property
    def ids(self) -> tuple[bytes, ...]:
        """The ids that the lists of the study are about."""
        return tuple(quorum.id for quorum in self._quorums)

    async def hand_roll(self, heads: bytes, closing: Bodies, patient: bool) -> None:
        """The signed roster, to tellers that make a sum together; once in the life of this process. See `sum_round`."""
        await self._first(lambda quorum: self._hand(quorum, heads, closing), patient)

    async def sum_round(self, turn: int, surveys: Sequence[int], heads: bytes, closing: Bodies, patient: bool) -> None:
        """All sums of a round, one survey after the other; `summed` has its document then.

        With a spare the first pair is asked while `patient`, and after that the next one where a teller is away or
        refuses. A teller signs one list, so at most one pair of honest tellers completes. Raises what `walk.sum_up`
        does, for the first pair.
        """
        asked = sorted((self._manifest.survey(number) for number in surveys), key=self._slot)
        slots = list[SlotSum]()

        async def add_up(quorum: Quorum) -> None:
            survey = asked[len(slots)]
            await self._hand(quorum, heads, closing)
            occasion, batches = quorum.occasion(self._occasion(survey)), partial(self._batches, survey, quorum)
            links = self._links_of(quorum)
            slots.append(await walk.sum_up(links, quorum.arrangement, occasion, batches, self._lists))

        for _ in asked:
            await self._first(add_up, patient)
        self.summed[turn] = RoundSums(self._study, asked[0].round, tuple(slots)).to_bytes()

    async def _hand(self, quorum: Quorum, heads: bytes, closing: Bodies) -> None:
        if quorum.number not in self._rolled:
            await walk.hand_roll(self._links_of(quorum), quorum.arrangement, quorum.id, heads, closing)
            self._rolled.add(quorum.number)

    async def _first(self, work: Callable[[Quorum], Awaitable[None]], patient: bool) -> None:
        """Work with the first quorum whose tellers answer. Raises the first one's trouble where none does."""
        trouble: TellerAway | TellerRefuses | None = None
        for quorum in self._quorums[: 1 if patient else None]:
            try:
                return await work(quorum)
            except (TellerAway, TellerRefuses) as error:
                trouble = trouble or error
        if trouble is not None:
            raise trouble

    async def finish(self) -> None:
        """The study is over: every teller erases its secrets."""
        await walk.finish(self._links, self.arrangement, self._study)
        self.finished = True

    def _slot(self, survey: Survey) -> int:
        return slot_of(self._manifest, survey.survey)

    def _occasion(self, survey: Survey) -> Occasion:
        return Occasion(self._study, survey.round, self._slot(survey))

    def _links_of(self, quorum: Quorum) -> tuple[TellerLink, ...]:
        return tuple(self._links[number] for number in quorum.members)

    async def _batches(self, survey: Survey, quorum: Quorum, but: frozenset[bytes]) -> AsyncIterator[Batch]:
        places, slot = range(quorum.first, quorum.first + len(quorum.members)), self._slot(survey)
        streams = [self._packets.relayed(self._study, slot, survey.survey, place) for place in places]
        async for batch in batched(row async for row in aligned(streams) if row[0].tag not in but):
            yield batch


def links_of(arrangement: Arrangement, link_to: LinkTo) -> tuple[TellerLink, ...]:
    """A link to each teller, in their order."""
    return tuple(link_to(teller.address, teller.key, arrangement) for teller in arrangement.tellers)


def study_tellers(
    manifest: Manifest, link_to: LinkTo, packets: PacketStore, lists: KeptLists
) -> StudyTellers | None:
    """Those of a study; None for a study without tellers."""
    arrangement = tellers_of(manifest)
    return None if arrangement is None else StudyTellers(manifest, arrangement, link_to, packets, lists)


async def aligned(streams: Sequence[AsyncIterator[Relayed]]) -> AsyncIterator[tuple[Relayed, ...]]:
    """The packets that are there for every teller, in the order of their tags. One with a damaged share is left out."""
    heads = [await anext(stream, None) for stream in streams]
    while True:
        present = [head for head in heads if head is not None]
        if len(present) < len(heads):
            return
        last = max(head.tag for head in present)
        if all(head.tag == last for head in present):
            yield tuple(present)
            last += b"\0"
        for number, head in enumerate(present):
            if head.tag < last:
                heads[number] = await anext(streams[number], None)


async def batched(rows: AsyncIterator[tuple[Relayed, ...]]) -> AsyncIterator[Batch]:
    """Batches of bounded size: for each teller the same packets."""
    batch: list[tuple[bytes, ...]] = []
    size = 0
    async for row in rows:
        items = tuple(packet.to_bytes() for packet in row)
        longest = max(map(len, items))
        if batch and (len(batch) == MOST_IN_A_BATCH or size + longest > BATCH_BYTES):
            yield list(zip(*batch, strict=True))
            batch, size = [], 0
        batch.append(items)
        size += longest
    if batch:
        yield list(zip(*batch, strict=True))
