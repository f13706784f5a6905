"""One study while it runs: its chain, its two intakes, and what its posts and fetches are answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from weakref import WeakValueDictionary

from attrs import frozen

from aggregator.intake.enrolments import EnrolmentIntake
from aggregator.intake.packets import PacketIntake, RosterValues
from aggregator.intake.workers import Workers
from aggregator.protocols.contract import part_of
from aggregator.protocols.tally import Tally
from aggregator.rules.acceptance import PacketRules
from aggregator.rules.counters import Traffic
from aggregator.rules.faults import Fault, NoSum
from aggregator.rules.lengths import demand_signable
from aggregator.rules.lifecycle import Phase, deadline, may_lack, read_word, word_of
from aggregator.store.answers import AnswerStore
from aggregator.store.buckets import BucketStore
from aggregator.store.enrolments import EnrolStore
from aggregator.store.home import ERASED, KEPT, Home, StudySecrets
from aggregator.store.lists import ListStore
from aggregator.store.packets import PacketStore, in_words, slot_of
from aggregator.store.studies import Beside, Clock, Progress, StudyStore
from aggregator.study.answers import Answers
from aggregator.study.counting import accepted_in, count_all, tally_all
from aggregator.study.learn import Counting, TranscriptCounts, prints_of
from aggregator.study.shelf import Shelf
from aggregator.tellers.study_tellers import LinkTo, study_tellers
from anon.errors import Damaged
from anon.machine.clock import OF_ONE
from anon.protocols.contract import Place, documents_of
from anon.protocols.registry import Protocols, protocol_of
from anon.protocols.resolve import StudyKeys
from anon.sharing.round_document import parse_unsummed
from anon.storage.durable import reading
from anon.study.manifest import Manifest
from anon.text.sentences import Term, attributed
from anon.transparency.bucketed import BUCKETED
from anon.transparency.buckets import BucketDocument, parse_bucket_document
from anon.transparency.documents import Head, SignedHead, body_digest, check_chain, encode_chain, find
from anon.transparency.together import HeadGroup, heads_of, told_time, with_heads
from anon.wire.messages import study_seed

_LOG = logging.getLogger(__name__)
_KEPT_BYTES = 64 * 1024 * 1024


@frozen
class Tools:
    """The parts that all studies of an aggregator share."""

    home: Home
    studies: StudyStore
    enrolments: EnrolStore
    packets: PacketStore
    lists: ListStore
    buckets: BucketStore
    answers: AnswerStore
    workers: Workers
    now: Clock
    link_to: LinkTo
    protocols: Protocols


class LiveStudy:
    """A study in memory. Make it with `load_study`."""

    def __init__(self, tools: Tools, progress: Progress, manifest_bytes: bytes, secrets: StudySecrets) -> None:
        self.tools = tools
        self.study = progress.study
        self.manifest_bytes = manifest_bytes
        self.manifest: Manifest = tools.protocols.manifest(manifest_bytes)
        self.secrets = secrets
        self.protocol_part = part_of(self.manifest)
        self.rounds = protocol_of(self.manifest).rounds(self.manifest)
        self._windows = [study_round.window for study_round in self.rounds]
        self._words = [study_round.state for study_round in self.rounds]
        self.tellers = study_tellers(self.manifest, tools.link_to, tools.packets, tools.lists)
        self.no_sum: NoSum | None = None
        """Why there is no sum, until it is published."""
        self.ended = ""
        """The same in words, once it is."""
        self.phase: Phase
        self.turn: int
        self.phase, self.turn = read_word(progress.phase, progress.turn, self._words)
        self.answers = Answers(self.study, tools.answers)
        rules = PacketRules(self.study, self.manifest, secrets.sealing_key)
        self.packet_intake = PacketIntake(rules, tools.packets, tools.workers, tools.now)
        self.packet_intake.frozen_until = progress.frozen
        self.enrolment_intake = EnrolmentIntake(
            self.study, self.manifest, rules.opener, tools.enrolments, tools.workers, tools.now
        )
        self.fault: Fault | None = None
        """Why it does not go on; None while it does."""
        self.spoilt = ""
        """Which published document cannot be served, and what to do; empty when all can be."""
        self.chain: tuple[SignedHead, ...] = ()
        self.rostered = 0
        """How many the signed roster has; 0 before there is one."""
        self._counted: TranscriptCounts | None = None
        self._accepted: Mapping[int, int] | None = None
        self._encoded_chain = b""
        self._bodies: dict[int, bytes] = {}
        self._lent: WeakValueDictionary[int, memoryview] = WeakValueDictionary()
        self._reading = asyncio.Lock()
        self._shelf = Shelf(self.study, tools.buckets, tools.studies)

    @property
    def state(self) -> str:
        """The word under which it is stored and shown to programs."""
        return word_of(self.phase, self.turn, self._words)

    @property
    def ends(self) -> float | None:
        """When the present phase ends, in unix seconds; None when nothing more happens."""
        return deadline(self.manifest, self._windows, self.phase, self.turn)

    @property
    def due(self) -> float | None:
        """When it goes on (see `ends`), or is tried again where it cannot: the end of its phase may have passed."""
        return self.ends if self.fault is None else self.fault.again

    def may_lack(self, now: float) -> bool:
        """See `lifecycle.may_lack`."""
        return may_lack(self.manifest, self._windows, self.phase, self.turn, now)

    @property
    def waits(self) -> bool:
        """True while its tellers are at work."""
        return self.tellers is not None and self.tellers.job.waits

    async def reach(self, phase: Phase, turn: int) -> None:
        """Store, then say, that the study has come so far."""
        await self.tools.studies.move(self.study, word_of(phase, turn, self._words), turn, len(self.chain))
        self.phase, self.turn = phase, turn

    async def round_documents(self) -> dict[Place, bytes]:
        """The given documents, and those of the rounds that are published."""
        places: list[Place] = [("given", part) for part in range(len(self.manifest.given))]
        places += documents_of(self.rounds)
        heads = {place: find(self.chain, *place) for place in places}
        return {place: await self.body_of(head) for place, head in heads.items() if head is not None}

    def stand(self, stands: Progress, documents: int) -> bool:
        """Take from the store where another process has brought it; True if its chain has to be read anew."""
        intake = self.packet_intake
        intake.frozen_until = max(intake.frozen_until, stands.frozen)
        self.phase, self.turn = read_word(stands.phase, stands.turn, self._words)
        return documents != len(self.chain)

    async def refresh(self) -> None:
        """Take chain, and once there is one the roster's consequences, from the store."""
        chain = await self.tools.studies.chain(self.study)
        with reading(self.tools.studies.place, KEPT, Term(f"study {self.study.hex()[:8]}, signed heads")):
            check_chain(chain, self.tools.home.public_key, self.study)
        self._take(chain)
        roster = find(self.chain, "roster")
        self.enrolment_intake.taken = roster is not None or find(self.chain, "abandoned") is not None
        if roster is not None:
            self.open_packet_intake(await self.body_of(roster))
            await self.count_rostered()
        await self.read_end()

    async def count_rostered(self) -> None:
        """Take from the signed roster how many it has."""
        roster = find(self.chain, "roster")
        document = None if roster is None else await self._in_buckets(roster.number)
        self.rostered = 0 if document is None else document.count

    async def read_end(self) -> None:
        """Take from the chain why the study ended without a sum, if it did."""
        head = find(self.chain, "unsummed")
        if head is not None:
            arrangement = None if self.tellers is None else self.tellers.arrangement
            said = parse_unsummed(arrangement, self.study, await self.body_of(head))
            self.ended = str(self.no_sum or NoSum(said.round, said.why, said.evidence))

    def slot_of(self, survey: int) -> int:
        """The slot in which a survey is asked."""
        return slot_of(self.manifest, survey)

    def open_packet_intake(self, roster_body: bytes) -> None:
        """From here on tags can be drawn and tokens verified."""
        seed = study_seed(self.manifest_bytes, roster_body, self.secrets.seed_value)
        self.packet_intake.issued = RosterValues(seed, body_digest(roster_body))

    async def publish(self, kind: str, part: int, body: bytes, beside: Beside | None = None) -> None:
        """Append a document, or keep the one of this kind and part that is there already. `beside` is stored with it.

        Raises `TooLong`, with nothing signed, for one that no reader takes.
        """
        demand_signable(self.manifest, kind, part, len(body))
        key = self.tools.home.signing_key
        self._take(await self.tools.studies.append(self.study, kind, part, body, key, beside, len(self.chain)))

    async def body_of(self, head: Head) -> bytes:
        """The body of a document of the chain."""
        body = await self.document(head.number)
        if body is None:
            named = f"study {self.study.hex()[:8]}: the body of {head.kind} {head.part} is gone"
            raise KEPT.damaged(self.tools.studies.place, attributed(named))
        return body

    async def tally_of(self, survey: int) -> Tally:
        """The protocol's tally of a survey's packets: of those of the signed transcripts once all are there."""
        if (found := await self.counted()) is not None:
            return found.tallies[survey]
        pages = self.tools.packets.pages_of(self.study, self.slot_of(survey), survey)
        return await tally_all(self.protocol_part, self.manifest, self.manifest.survey(survey), pages)

    async def accepted(self) -> Mapping[int, int]:
        """How many packets each survey has: by the signed transcripts once all are there, until then by the store."""
        if self._accepted is None and (heads := await self._published()):
            self._accepted = await accepted_in(self.manifest, self._transcripts(heads))
        return await self.tools.packets.counts(self.study) if self._accepted is None else self._accepted

    async def counted(self) -> TranscriptCounts | None:
        """The counts in the signed transcripts. None before all are published, and once they are erased."""
        if self._counted is None and (heads := await self._published()):
            asked = Counting(self.manifest_bytes, self.tools.protocols, self.secrets.score_value)
            self._counted = await count_all(self.tools.workers, asked, self._transcripts(heads))
            self._accepted = self._counted.accepted
        return self._counted

    async def _published(self) -> list[Head]:
        """The heads of all transcripts; none before all are signed, and once they are erased."""
        heads = [find(self.chain, "transcript", slot.slot) for slot in self.manifest.slots]
        there = [head for head in heads if head is not None]
        whole = there and len(there) == len(heads) and await self.document(there[-1].number) is not None
        return there if whole else []

    async def _transcripts(self, heads: Sequence[Head]) -> AsyncIterator[bytes]:
        for head in heads:
            async for _bucket, content in self.contents(head):
                yield content

    async def contents(self, head: Head) -> AsyncIterator[tuple[int, bytes]]:
        """The buckets of a document with their numbers, one in memory at a time; none of one that has no buckets."""
        document = await self._in_buckets(head.number)
        if document is not None:
            async for bucket, content in self._shelf.contents(head.number, document):
                yield bucket, content

    async def _in_buckets(self, number: int) -> BucketDocument | None:
        head = self.chain[number].head if number < len(self.chain) else None
        if head is None or head.kind not in BUCKETED:
            return None
        body = await self.document(number)
        if body is None:
            return None
        with reading(self.tools.studies.place, KEPT, Term(f"study {self.study.hex()[:8]}, document {number}")):
            return parse_bucket_document(body, self.study, head.kind, head.part)

    async def left_out(self) -> tuple[str, ...]:
        """The packets that were found damaged, in words."""
        return tuple(in_words(place) for place in await self.tools.packets.left_out(self.study))

    async def traffic(self) -> Traffic:
        """The report's facts beside the documents."""
        enrolments, packets = await self.answers.all()
        return Traffic(
            await self.tools.enrolments.count(self.study),
            enrolments.exact(),
            packets.exact(),
            tuple(prints_of(self.manifest, self.chain)),
            await self.left_out(),
        )

    def heads(self) -> bytes:
        """The chain for the wire."""
        return self._encoded_chain

    async def document(self, number: int) -> bytes | None:
        """A body; None when there is none. Raises `Damaged` for one that is not what was signed."""
        if number in self._bodies:
            return self._bodies[number]
        if not 0 <= number < len(self.chain):
            return None
        body = await self.tools.studies.body(self.study, number)
        if body is not None and sum(map(len, self._bodies.values())) + len(body) <= _KEPT_BYTES:
            self._bodies[number] = body
        return body

    async def served(self, number: int) -> memoryview | None:
        """A body for the wire; None if there is none.

        All readers at a time share one copy, however many they are and however slowly they read.
        A damaged one is not there for its readers, and staff are told.
        """
        try:
            async with self._reading:
                lent = self._lent.get(number)
                if lent is None and (body := await self.document(number)) is not None:
                    self._lent[number] = lent = memoryview(body)
                return lent
        except Damaged as damage:
            self._tell_spoilt(damage)
            return None

    async def served_together(self, group: HeadGroup) -> list[bytes | memoryview]:
        """The heads with the bodies of a group, or with the time; nothing if a body is missing."""
        heads, chain = self._encoded_chain, self.chain
        if group is HeadGroup.CLOCK:
            late = find(chain, "roster") is not None
            told = [told_time(self.tools.now(), self.manifest.timetable.margin)] if late else []
            return with_heads(heads, told)
        wanted = heads_of(group, chain, len(self.manifest.slots))
        bodies = [body for head in wanted if (body := await self.served(head.number)) is not None]
        return with_heads(heads, bodies) if len(bodies) == len(wanted) else []

    async def served_bucket(self, number: int, bucket: int, whole: bool) -> bytes | None:
        """A bucket for the wire, or its `whole` content; None when there is none. A damaged one is not there."""
        try:
            document = await self._in_buckets(number)
            if document is None:
                return None
            read = self._shelf.content if whole else self._shelf.bucket
            return await read(number, document, bucket)
        except Damaged as damage:
            self._tell_spoilt(damage)
            return None

    def _tell_spoilt(self, damage: Damaged) -> None:
        if self.spoilt != str(damage):
            self.spoilt = str(damage)
            study = self.study.hex()[:8]
            _LOG.error("study %s: a published document is not served: %s", study, damage, extra=OF_ONE)

    @property
    def trouble(self) -> str:
        """The fault, or why there is no sum, and the next step; empty when all is well."""
        return self.fault.said if self.fault is not None else self.spoilt or self.ended

    async def erase_transcripts(self) -> None:
        """Forget the bodies of transcripts, their buckets, and the pages that show the same packets; the signed heads
        stay."""
        await self.tools.studies.erase_bodies(self.study)
        transcripts = [signed.head.number for signed in self.chain if signed.head.kind == "transcript"]
        await self._shelf.erase(transcripts, len(self.chain))
        self.forget_bodies()

    def forget_bodies(self) -> None:
        """Drop what is cached; after an erasure."""
        self._bodies.clear()
        self._lent.clear()
        self._counted = self._accepted = None

    async def enrol(self, sealed_untrusted: bytes) -> str:
        """The answer's word."""
        return await self.answers.counted(self.enrolment_intake.enrol(sealed_untrusted))

    async def withdraw(self, sealed_untrusted: bytes) -> str:
        """The answer's word."""
        return await self.answers.counted(self.enrolment_intake.withdraw(sealed_untrusted))

    async def submit(self, sealed_untrusted: bytes) -> str:
        """The answer's word."""
        answered = await self.packet_intake.submit(sealed_untrusted)
        if not answered.dummy:
            self.answers.packets.count(answered.word)
        return answered.word

    async def stop(self) -> None:
        """End the study's tasks; nothing durable changes."""
        await self.enrolment_intake.stop()
        await self.packet_intake.stop()
        if self.tellers is not None:
            await self.tellers.job.stop()

    def _take(self, chain: tuple[SignedHead, ...]) -> None:
        self.chain = chain
        self._encoded_chain = encode_chain(chain)


async def load_study(tools: Tools, progress: Progress) -> LiveStudy:
    """A study from its store, as far as it has come. Raises `Damaged` and `Refused` for one that cannot be read."""
    manifest = await tools.studies.body(progress.study, 0)
    with reading(tools.studies.place, KEPT, Term(f"study {progress.study.hex()[:8]}, manifest")):
        if manifest is None:
            raise KeyError("manifest")
        over = progress.phase == Phase.ERASED
        study = LiveStudy(tools, progress, manifest, ERASED if over else tools.home.load_secrets(progress.study))
    if over:  # also where a crash, or an earlier version, left its keys
        tools.home.erase_secrets(study.study)
        await study.refresh()
        return study
    named = study.manifest
    keys = StudyKeys(named.aggregator_key, named.sealing_key, named.credential_key, named.seed_commitment)
    tools.home.demand_keys_of(study.study, study.secrets, keys)
    await study.refresh()
    return study
