"""An audit on bytes, by the steps of `aggregator.audit`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from attrs import evolve

from aggregator.audit.buckets import Contents, GatheredBuckets, checked_members, checked_roster, no_contents
from aggregator.audit.counts import crowded
from aggregator.audit.likeness import alike, read_result
from aggregator.audit.noting import noting
from aggregator.audit.order import ending_faults, order_faults
from aggregator.audit.packets import PacketContext
from aggregator.audit.result import AuditResult, Finding
from aggregator.audit.transcripts import CheckedTranscripts
from aggregator.compute import HERE, Compute
from aggregator.protocols.contract import EndingPart, LearningResult, SummingPart, part_of
from aggregator.protocols.installed import PROTOCOLS
from aggregator.study.learn import TranscriptCounts, counted, prints_of, report_again
from anon.errors import Malformed, RejectedProof
from anon.protocols.contract import Place, Round, documents_of
from anon.protocols.kinds import is_given
from anon.protocols.registry import Protocols, check_study, protocol_of
from anon.protocols.tellers import tellers_of
from anon.sharing.round_document import UnsummedRound, parse_unsummed
from anon.sharing.statements import parse_countersignatures
from anon.study.manifest import Manifest
from anon.transparency.bucketed import hashed_body
from anon.transparency.buckets import BucketDocument, parse_bucket_document
from anon.transparency.closing import CLOSING, Bodies
from anon.transparency.documents import Head, SignedHead, body_digest, check_body, find, parse_chain
from anon.transparency.transcript import parse_digest_list
from anon.wire.messages import parse_abandoned, parse_seed, study_seed

_NO_PACKETS = "its packets are published when collection is over"
_SEAT = "the aggregator made it from secrets of its own; nobody can make it again"
_OTHER_REPORT = "report.html: not the words of this program, perhaps another version's; --report FILE writes your own"


def audit_documents(
    chain_untrusted: bytes,
    bodies_untrusted: Mapping[int, bytes],
    key: bytes | None = None,
    compute: Compute = HERE,
    contents: Contents = no_contents,
    protocols: Protocols = PROTOCOLS,
) -> AuditResult:
    """Audit the study whose manifest is body 0; `key` is the aggregator's, when it is known from elsewhere. `compute`
    is where packets are checked: another machine is then trusted for the verdict on them. `contents` gives the buckets
    of roster, credentials and transcripts, one at a time.

    Raises `Malformed` or `RejectedProof` only where nothing can be checked: no manifest, or no valid chain.
    """
    if 0 not in bodies_untrusted:
        raise Malformed("audit: document 0, the manifest, is missing; fetch it")
    manifest = protocols.manifest(bodies_untrusted[0])
    if key is not None and key != manifest.aggregator_key:
        raise RejectedProof("the study was published under another key")
    chain = parse_chain(chain_untrusted, manifest.aggregator_key, manifest.study_id)
    return evolve(_Audit(manifest, protocols, chain, bodies_untrusted, compute, contents).run(), pinned=key is not None)


class _Audit:
    """One audit under way."""

    def __init__(
        self,
        manifest: Manifest,
        protocols: Protocols,
        chain: Sequence[SignedHead],
        bodies: Mapping[int, bytes],
        compute: Compute,
        contents: Contents,
    ) -> None:
        self.compute = compute
        self.manifest = manifest
        self.protocols = protocols
        self.contents = contents
        self.study = manifest.study_id
        self.protocol_part = part_of(manifest)
        self.rounds = protocol_of(manifest).rounds(manifest)
        self.places = documents_of(self.rounds)
        self.chain = chain
        self.findings: list[Finding] = []
        self.bodies: dict[tuple[str, int], bytes] = {}
        self.left_out: dict[int, int] = {}
        self.unsummed = ""
        self.not_checked: list[str] = []
        self.enrolled = 0
        self.packets = 0
        self.model_checked = False
        self.report = ""
        self.report_checked = False
        for signed in chain:
            self._take(signed.head, bodies)

    def run(self) -> AuditResult:
        """All checks, in the order in which documents appear."""
        for fault in order_faults(self.manifest, self.places, self.chain):
            self.note(*fault)
        with noting(self.note, "manifest"):
            check_study(self.manifest)
        self._check_tellers()
        self._check_abandoned()
        checked = None
        if ("roster", 0) in self.bodies:
            with noting(self.note, "roster"):
                self._check_enrolments()
            checked = self._check_transcripts()
            self._check_rounds(checked)
        with noting(self.note, "model"):
            self._check_model(checked)
        report = self.bodies.get(("report", 0))
        if report is not None and not self.report_checked:
            self.not_checked.append(_OTHER_REPORT)
        return AuditResult(
            self.study,
            self.enrolled,
            self.packets,
            self.model_checked,
            tuple(self.findings),
            self.report_checked,
            self.report,
            not_checked=tuple(self.not_checked),
            not_summed=self.left_out,
            unsummed=self.unsummed,
        )

    def note(self, document: str, fault: str) -> None:
        """Keep a finding."""
        self.findings.append(Finding(document, fault))

    def _take(self, head: Head, bodies: Mapping[int, bytes]) -> None:
        name = f"{head.kind} {head.part}"
        if (head.kind, head.part) in self.bodies:
            self.note(name, "published twice")
        elif head.number not in bodies:
            self.note(name, "its body is missing; fetch it, or it was erased when the retention ended")
        else:
            if not is_given(self.manifest, head):
                return self.note(name, "is another document than the manifest names")
            with noting(self.note, name):
                self.bodies[head.kind, head.part] = check_body(head, bodies[head.number])

    def _check_tellers(self) -> None:
        with noting(self.note, "tellers 0"):
            arrangement = tellers_of(self.manifest)
            if ("unsummed", 0) in self.bodies:
                with noting(self.note, "unsummed 0"):
                    self._check_ending(parse_unsummed(arrangement, self.study, self.bodies["unsummed", 0]))
            if arrangement is None:
                return
            parse_countersignatures(self.bodies["tellers", 0], self.study, arrangement)

    def _check_ending(self, ended: UnsummedRound) -> None:
        self.unsummed = str(ended.why)
        summed = [study_round.document for study_round in self.rounds if study_round.document is not None]
        for fault in ending_faults(self.manifest, ended.round, summed, self.chain):
            self.note("unsummed 0", fault)

    def _check_abandoned(self) -> None:
        if ("abandoned", 0) in self.bodies:
            with noting(self.note, "abandoned 0"):
                enrolled = parse_abandoned(self.bodies["abandoned", 0], self.study)
                if enrolled >= self.manifest.cohort.minimum:
                    self.note("abandoned 0", f"for too few members, and {enrolled} enrolled, which is enough")

    def _check_enrolments(self) -> None:
        self.enrolled = self._bucketed("roster").count
        if not self.manifest.cohort.minimum <= self.enrolled <= self.manifest.cohort.maximum:
            self.note("roster 0", "fewer or more entries than the manifest allows")
        self._check_buckets_of_members()

    def _bucketed(self, kind: str, part: int = 0) -> BucketDocument:
        """Raises `Malformed`, also for more entries than the manifest has room for: their buckets are not looked for.
        """
        document = parse_bucket_document(self.bodies[kind, part], self.study, kind, part)
        if document.count > self.manifest.cohort.maximum:
            raise Malformed(f"signed for {document.count} entries, more than the manifest allows")
        return document

    def _content(self, kind: str, part: int, bucket: int) -> bytes | None:
        head = find(self.chain, kind, part)
        return None if head is None else self.contents(head.number, bucket)

    def _note_faults(self, gathered: GatheredBuckets) -> None:
        named = f"{gathered.document.kind} {gathered.document.part}"
        self.findings += [Finding(named, fault) for fault in gathered.finished()]

    def _check_buckets_of_members(self) -> None:
        """Roster and credentials, a bucket of both at a time: about 0.3 s for a thousand members."""
        if ("credentials", 0) not in self.bodies or ("seed", 0) not in self.bodies:
            content_of = partial(self._content, "roster", 0)
            return self._note_faults(checked_roster(self._bucketed("roster"), content_of))
        bodies = Bodies(*(self.bodies[kind, 0] for kind in CLOSING))
        roster, credentials = GatheredBuckets(self._bucketed("roster")), GatheredBuckets(self._bucketed("credentials"))

        def content(bucket: int, kind: str) -> bytes | None:
            return self._content(kind, 0, bucket)

        checked = checked_members(self.compute, self.manifest.to_bytes(), bodies, content)
        for bucket, result in enumerate(checked):
            roster.take(bucket, result.roster)
            credentials.take(bucket, result.credentials)
            if result.fault:
                credentials.fault(f"bucket {bucket}: {result.fault}")
            if result.bad:
                named = ", ".join(map(str, result.bad))
                credentials.fault(f"bad in bucket {bucket} for {named}: their holders were shut out")
        self._note_faults(roster)
        self._note_faults(credentials)

    def _seed(self) -> bytes | None:
        with noting(self.note, "seed 0"):
            value = parse_seed(self.bodies["seed", 0], self.study, self.manifest.seed_commitment)
            return study_seed(self.manifest.to_bytes(), self.bodies["roster", 0], value)
        return None

    def _score_value(self) -> bytes:
        """The value that draws which packets only score, if it was revealed; `_check_model` says where it was not."""
        with suppress(Malformed, KeyError):
            value = parse_seed(self.bodies["seed", 0], self.study, self.manifest.seed_commitment)
            return parse_seed(self.bodies["seed", 1], self.study, value)
        return b""

    def _check_transcripts(self) -> CheckedTranscripts | None:
        parts = [part for kind, part in self.bodies if kind == "transcript"]
        seed = self._seed() if parts else None
        if seed is None:
            return None
        roster, documents = body_digest(self.bodies["roster", 0]), list[BucketDocument]()
        asked = PacketContext(self.manifest.to_bytes(), self.protocols, roster, seed, self._score_value())
        with_tags = isinstance(self.protocol_part, SummingPart)
        checked = CheckedTranscripts(self.compute, asked, with_tags, self.note)
        for part in parts:
            with noting(self.note, f"transcript {part}"):
                documents.append(self._bucketed("transcript", part))
        checked.take(documents, partial(self._content, "transcript"))
        if sorted(parts) != [slot.slot for slot in self.manifest.slots]:
            self.note("transcript", "not every slot has one")
        self.packets = checked.packets
        for fault in crowded(checked.in_each, self.enrolled):
            self.note("transcript", fault)
        return checked

    def _check_rounds(self, checked: CheckedTranscripts | None) -> None:
        """Before the transcripts are there, the documents that are there: of sums all but the tags."""
        for number, study_round in enumerate(self.rounds):
            if any(self.manifest.survey(survey).written for survey in study_round.surveys):
                self._check_page(number, study_round, checked)
                continue
            if study_round.document is None or (checked is None and study_round.document not in self.bodies):
                continue
            name = f"{study_round.document[0]} {study_round.document[1]}"
            if checked is None:
                self.not_checked.append(f"{name}: {_NO_PACKETS}")
            with noting(self.note, name):
                if isinstance(self.protocol_part, SummingPart):
                    self._check_sums(self.protocol_part, number, study_round, checked)
                elif checked is not None:
                    self._check_counts(number, study_round, checked)

    def _check_page(self, number: int, study_round: Round, checked: CheckedTranscripts | None) -> None:
        """A page has the packets of its round's transcripts, no more and no fewer, and each token holds. No audit
        makes again what the aggregator's seat said. Where too few wrote, nothing follows."""
        from anon.protocols.board import check_tokens, demand_members, read_page  # late: in studies with letters alone

        place, name = ("page", number), f"page {number}"
        if place not in self.bodies:
            return
        with noting(self.note, name):
            page = read_page(self.manifest, number, self.bodies[place])
            demand_members(self.manifest, {number: page}, self.enrolled)
            check_tokens(self.manifest, body_digest(self.bodies["roster", 0]), [page], os.urandom)
            for survey, entries in page.entries.items() if checked is not None else ():
                if sorted(entry.digest for entry in entries.values()) != self._listed(survey):
                    self.note(name, "has other packets than the transcripts")
        if study_round.seat is not None and study_round.seat in self.bodies:
            self._check_seat(study_round.seat)
        if isinstance(self.protocol_part, EndingPart):
            with noting(self.note, name):  # it reads the pages before too, and one of them may be none
                self._check_ends(self.protocol_part, number, name)

    def _check_seat(self, place: Place) -> None:
        seat, longest = f"{place[0]} {place[1]}", protocol_of(self.manifest).documents(self.manifest)[place]
        self.not_checked.append(f"{seat}: {_SEAT}")
        if len(self.bodies[place]) > longest:
            self.note(seat, f"expected at most {longest} bytes")

    def _check_ends(self, part: EndingPart, number: int, name: str) -> None:
        known = {at: self.bodies[at] for at in documents_of(self.rounds[: number + 1]) if at in self.bodies}
        ends = part.ends(self.manifest, number, known)
        last = max(at for at in range(len(self.rounds)) if ("page", at) in self.bodies)
        if ends != (number == last and bool(self.unsummed)):
            self.note(name, "too few wrote, and the study went on" if ends else "enough wrote, and the study ended")

    def _listed(self, survey: int) -> list[bytes]:
        """The digests in the transcript of a written survey, which has a slot of its own."""
        slot = next(slot.slot for slot in self.manifest.slots if slot.rows[0].survey == survey)
        document = self._bucketed("transcript", slot)
        contents = [self._content("transcript", slot, bucket) or b"" for bucket in range(document.buckets)]
        bodies = [hashed_body(self.study, "transcript", slot, content) for content in contents]
        return sorted(digest for body in bodies for digest in parse_digest_list(body, self.study, slot))

    def _check_counts(self, number: int, study_round: Round, checked: CheckedTranscripts) -> None:
        again = counted(self.protocol_part, self.manifest, number, _demand_counted(checked).tallies)
        if study_round.document is not None and self.bodies.get(study_round.document) != again:
            kind, part = study_round.document
            self.note(f"{kind} {part}", "its counts are not those of the transcripts")

    def _check_sums(
        self, summing: SummingPart, number: int, study_round: Round, checked: CheckedTranscripts | None
    ) -> None:
        body = self.bodies.get(study_round.document or ("", 0), b"")
        tags = None if checked is None else {survey: checked.tags.get(survey, ()) for survey in study_round.surveys}
        self.left_out |= summing.check_sums(self.manifest, number, body, self.enrolled, tags)

    def _check_model(self, checked: CheckedTranscripts | None) -> None:
        places = [place for place in protocol_of(self.manifest).results(self.manifest) if place in self.bodies]
        if not places and ("report", 0) not in self.bodies:
            return
        value = parse_seed(self.bodies["seed", 0], self.study, self.manifest.seed_commitment)
        parse_seed(self.bodies.get(("seed", 1), b""), self.study, value)
        given: list[Place] = [("given", part) for part in range(len(self.manifest.given))]
        documents = {place: self.bodies[place] for place in (*given, *self.places) if place in self.bodies}
        found = _demand_counted(checked)
        learned = self.protocol_part.learn(self.manifest, documents, found.tallies)
        self.model_checked = True
        for kind, part in places:
            with noting(self.note, f"{kind} {part}"):
                self._compare_result(kind, part, learned.results.get((kind, part), b""))
        self._compare_report(learned, found)

    def _compare_result(self, kind: str, part: int, recomputed: bytes) -> None:
        body = self.bodies[kind, part]
        if not alike(read_result(body), read_result(recomputed)):
            self.note(f"{kind} {part}", "is not what the transcripts give")
        if self.protocols.result(body).to_json().encode() != body:
            self.note(f"{kind} {part}", "is not in its one spelling")

    def _compare_report(self, learned: LearningResult, found: TranscriptCounts) -> None:
        body = self.bodies.get(("report", 0), b"")
        published = body.decode("utf-8", "replace")
        signed = prints_of(self.manifest, self.chain)
        self.report = report_again(self.manifest, learned, self.enrolled, signed, found, published)
        self.report_checked = self.report.encode() == body


def _demand_counted(checked: CheckedTranscripts | None) -> TranscriptCounts:
    if checked is None or checked.found is None:
        raise Malformed("the transcripts cannot be counted")
    return checked.found
