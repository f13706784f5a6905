"""An audit on bytes, by the steps of `aggregator.audit`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import isclose
from typing import Any

from attrs import evolve

from aggregator.audit.buckets import CheckedBuckets, Contents, no_contents
from aggregator.audit.packets import BATCH, Asked, Checked, check
from aggregator.audit.result import AuditResult, Finding
from aggregator.compute import HERE, Compute
from aggregator.protocols.contract import Learned, Round, SummingPart
from aggregator.protocols.registry import part_of
from aggregator.study.learn import counted, learn_from_documents, report_again
from anon.errors import AnonmlError, Malformed, RejectedProof
from anon.protocols.kinds import KINDS, Stage, kinds_of
from anon.protocols.registry import check_study
from anon.protocols.tellers import tellers_of
from anon.sharing.round_document import parse_unsummed
from anon.sharing.statements import parse_countersignatures
from anon.study.manifest import Manifest, parse_manifest
from anon.transparency.bucketed import by_survey, has_buckets, is_in_buckets
from anon.transparency.buckets import BucketDocument, parse_bucket_document
from anon.transparency.closing import CLOSING, Bodies, read_closing
from anon.transparency.closing_buckets import read_closing_documents
from anon.transparency.documents import Head, SignedHead, body_digest, check_body, find, parse_chain
from anon.transparency.fingerprint import head_prints
from anon.transparency.transcript import parse_transcript, transcript_body
from anon.wire.messages import parse_roster, parse_seed, study_seed

_OTHER_REPORT = "report.html: not the words of this program, perhaps another version's; --report FILE writes your own"
_MOST_NAMED = 10


def audit_documents(
    chain_untrusted: bytes,
    bodies_untrusted: Mapping[int, bytes],
    key: bytes | None = None,
    compute: Compute = HERE,
    contents: Contents = no_contents,
) -> AuditResult:
    """Audit the study whose manifest is body 0; `key` is the aggregator's, when it is known from elsewhere. `compute`
    is where packets are checked: another machine is then trusted for the verdict on them. `contents` gives the buckets
    of documents that are in buckets, one at a time.

    Raises `Malformed` or `RejectedProof` only where nothing can be checked: no manifest, or no valid chain.
    """
    if 0 not in bodies_untrusted:
        raise Malformed("audit: document 0, the manifest, is missing; fetch it")
    manifest = parse_manifest(bodies_untrusted[0])
    if key is not None and key != manifest.aggregator_key:
        raise RejectedProof("the study was published under another key")
    chain = parse_chain(chain_untrusted, manifest.aggregator_key, manifest.study_id)
    return evolve(_Audit(manifest, chain, bodies_untrusted, compute, contents).run(), pinned=key is not None)


class _Audit:
    """One audit under way."""

    def __init__(
        self,
        manifest: Manifest,
        chain: Sequence[SignedHead],
        bodies: Mapping[int, bytes],
        compute: Compute,
        contents: Contents,
    ) -> None:
        self.compute = compute
        self.manifest = manifest
        self.contents = contents
        self.study = manifest.study_id
        self.protocol_part = part_of(manifest)
        self.rounds = self.protocol_part.rounds(manifest)
        self.places = [one.document for one in self.rounds if one.document]
        self.chain = chain
        self.findings: list[Finding] = []
        self.bodies: dict[tuple[str, int], bytes] = {}
        self.tags: dict[int, tuple[bytes, ...]] = {}
        self.whole: list[bytes] = []
        """The transcript of every survey."""
        self.left_out: dict[int, int] = {}
        self.unsummed = ""
        self.enrolled = 0
        self.packets = 0
        self.model_checked = False
        self.report = ""
        self.report_checked = False
        for signed in chain:
            self._take(signed.head, bodies)

    def run(self) -> AuditResult:
        """All checks, in the order in which documents appear."""
        self._check_order()
        self._check_complete()
        with _noting(self, "manifest"):
            check_study(self.manifest)
        self._check_tellers()
        packets: dict[int, tuple[bytes, ...]] = {}
        if ("roster", 0) in self.bodies:
            with _noting(self, "roster"):
                self._check_enrolments()
            packets = self._check_transcripts()
        self._check_rounds(packets)
        with _noting(self, "model"):
            self._check_model()
        report = self.bodies.get(("report", 0))
        unlike = (_OTHER_REPORT,) if report is not None and not self.report_checked else ()
        return AuditResult(
            self.study,
            self.enrolled,
            self.packets,
            self.model_checked,
            tuple(self.findings),
            self.report_checked,
            self.report,
            not_checked=unlike,
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
            with _noting(self, name):
                self.bodies[head.kind, head.part] = check_body(head, bodies[head.number])

    def _check_order(self) -> None:
        kinds = [signed.head.kind for signed in self.chain]
        if [kind for kind in kinds if kind not in kinds_of(Stage.FIRST)] == [*kinds_of(Stage.INSTEAD)]:
            return
        of_rounds = dict.fromkeys(kind for kind, _ in self.places)
        remaining = iter((*kinds_of(Stage.FIRST, Stage.BEFORE), *of_rounds, *kinds_of(Stage.AFTER)))
        current = next(remaining)
        for kind in kinds:
            while kind != current:
                following = next(remaining, None)
                if following is None:
                    self.note(kind, "published out of order")
                    return
                current = following

    def _check_complete(self) -> None:
        """Whatever was learned rests on a roster and on every transcript; nothing stands beside what is checked."""
        kinds = {one.head.kind for one in self.chain}
        needed = [*CLOSING] if kinds & {kind for kind, _ in self.places} else []
        needed += [below for row in KINDS if row.kind in kinds for below in row.rests_on]
        for kind in dict.fromkeys(needed):
            if kind not in kinds:
                self.note(kind, "was never published, but what rests on it was")
        known = {*self.places, *((row.kind, part) for row in KINDS for part in row.parts(self.manifest))}
        for one in self.chain:
            if (one.head.kind, one.head.part) not in known:
                self.note(f"{one.head.kind} {one.head.part}", "no such document belongs to the study")

    def _check_tellers(self) -> None:
        with _noting(self, "tellers 0"):
            arrangement = tellers_of(self.manifest)
            if arrangement is None:
                return
            parse_countersignatures(self.bodies["tellers", 0], self.study, arrangement)
            if ("unsummed", 0) in self.bodies:
                with _noting(self, "unsummed 0"):
                    self.unsummed = str(parse_unsummed(arrangement, self.study, self.bodies["unsummed", 0]).why)

    def _check_enrolments(self) -> None:
        in_buckets = has_buckets(self.manifest, self.chain)
        if in_buckets:
            self.enrolled = self._bucketed("roster").count
        else:
            self.enrolled = len(parse_roster(self.bodies["roster", 0], self.study))
        if not self.manifest.cohort.minimum <= self.enrolled <= self.manifest.cohort.maximum:
            self.note("roster 0", "fewer or more entries than the manifest allows")
        if is_in_buckets(self.manifest, self.enrolled) != in_buckets:
            self.note("roster 0", "whole where it belongs in buckets, or the other way round")
        if in_buckets:
            return self._check_buckets_of_members()
        if ("credentials", 0) in self.bodies and ("seed", 0) in self.bodies:
            with _noting(self, "credentials 0"):
                self._check_credentials()

    def _check_credentials(self) -> None:
        """All of them, whatever the roster's size: about 0.3 s for a thousand."""
        bodies = Bodies(*(self.bodies[kind, 0] for kind in CLOSING))
        closing = read_closing(self.manifest.to_bytes(), self.manifest, bodies)
        bad = closing.bad_credentials(os.urandom, most=_MOST_NAMED)
        if bad:
            more = " (there may be more)" if len(bad) == _MOST_NAMED else ""
            named = ", ".join(map(str, bad))
            self.note("credentials 0", f"bad for the roster's entries {named}{more}: their holders were shut out")

    def _bucketed(self, kind: str, part: int = 0) -> BucketDocument:
        return parse_bucket_document(self.bodies[kind, part], self.study, kind, part)

    def _buckets_of(self, kind: str, part: int = 0) -> CheckedBuckets:
        head = find(self.chain, kind, part)
        number = -1 if head is None else head.number
        return CheckedBuckets(self._bucketed(kind, part), lambda bucket: self.contents(number, bucket))

    def _note_faults(self, checked: CheckedBuckets) -> None:
        named = f"{checked.document.kind} {checked.document.part}"
        self.findings += [Finding(named, fault) for fault in checked.faults]

    def _check_buckets_of_members(self) -> None:
        """Roster and credentials, a bucket of both in memory at a time."""
        roster = self._buckets_of("roster")
        if ("credentials", 0) not in self.bodies or ("seed", 0) not in self.bodies:
            for _bucket in roster.all():
                pass
            return self._note_faults(roster)
        bodies = Bodies(*(self.bodies[kind, 0] for kind in CLOSING))
        documents = read_closing_documents(self.manifest.to_bytes(), self.manifest, bodies)
        credentials = self._buckets_of("credentials")
        for bucket, entries in roster.all():
            issued = credentials.take(bucket)
            with _noting(self, f"credentials 0, bucket {bucket}"):
                closing = None if issued is None else documents.closing(bucket, entries, issued)
                bad = [] if closing is None else closing.bad_credentials(os.urandom, most=_MOST_NAMED)
                if bad:
                    named = ", ".join(map(str, bad))
                    self.note("credentials 0", f"bad in bucket {bucket} for {named}: their holders were shut out")
        credentials.finished()
        self._note_faults(roster)
        return self._note_faults(credentials)

    def _seed(self) -> bytes | None:
        with _noting(self, "seed 0"):
            value = parse_seed(self.bodies["seed", 0], self.study, self.manifest.seed_commitment)
            return study_seed(self.manifest.to_bytes(), self.bodies["roster", 0], value)
        return None

    def _check_transcripts(self) -> dict[int, tuple[bytes, ...]]:
        transcripts: dict[int, tuple[bytes, ...]] = {}
        parts = [part for kind, part in self.bodies if kind == "transcript"]
        seed = self._seed() if parts else None
        if seed is None:
            return transcripts
        if has_buckets(self.manifest, self.chain):
            return self._check_slots(parts, seed)
        self.whole = [self.bodies["transcript", part] for part in parts]
        for part in parts:
            with _noting(self, f"transcript {part}"):
                survey, plaintexts = parse_transcript(self.bodies["transcript", part], self.study)
                if survey != part:
                    raise Malformed("says it is of another survey than its head")
                transcripts[part] = plaintexts
        for part, checked in self._checked(transcripts, seed).items():
            with _noting(self, f"transcript {part}"):
                self._note_packets(part, checked)
        if parts and sorted(parts) != [known_survey.survey for known_survey in self.manifest.surveys]:
            self.note("transcript", "not every survey has one")
        return transcripts

    def _check_slots(self, parts: Sequence[int], seed: bytes) -> dict[int, tuple[bytes, ...]]:
        """Transcripts in buckets. Their order is checked a bucket at a time; what is learned needs all packets."""
        contents: list[bytes] = []
        for part in parts:
            with _noting(self, f"transcript {part}"):
                checked = self._buckets_of("transcript", part)
                contents += [content for _bucket, content in checked.all()]
                self._note_faults(checked)
        if sorted(parts) != [slot.slot for slot in self.manifest.slots]:
            self.note("transcript", "not every slot has one")
        found: dict[int, tuple[bytes, ...]] = {}
        with _noting(self, "transcript"):
            found = {survey: tuple(packets) for survey, packets in by_survey(self.manifest, contents).items()}
            self.whole = [transcript_body(self.study, survey, packets) for survey, packets in found.items()]
        for survey, packets in self._checked(found, seed).items():
            with _noting(self, f"transcript, survey {survey}"):
                self._note_packets(survey, packets)
        return found

    def _checked(self, transcripts: Mapping[int, Sequence[bytes]], seed: bytes) -> dict[int, list[Checked]]:
        """By survey what its packets give, in pieces; all surveys' pieces are computed at once."""
        asked = Asked(self.manifest.to_bytes(), body_digest(self.bodies["roster", 0]), seed)
        pieces = [
            (survey, plaintexts[start : start + BATCH])
            for survey, plaintexts in transcripts.items()
            for start in range(0, len(plaintexts), BATCH)
        ]
        found: dict[int, list[Checked]] = {survey: [] for survey in transcripts}
        for (survey, _), one in zip(pieces, self.compute.each(partial(check, asked), pieces), strict=True):
            found[survey].append(one)
        return found

    def _note_packets(self, survey: int, checked: Sequence[Checked]) -> None:
        name = f"transcript {survey}"
        for one in checked:
            if one.fault is not None:
                raise Malformed(one.fault) if one.fault else ValueError
        tags = self.tags[survey] = tuple(tag for one in checked for tag in one.tags)
        self.packets += len(tags)
        if any(one.foreign for one in checked):
            self.note(name, "holds packets of another survey")
            return
        if not all(first < second for first, second in pairwise(tags)):
            self.note(name, "not strictly sorted by tag: a tag counts twice, or the order tells something")
        for word in (word for one in checked for word in one.refused):
            self.note(name, f"a packet is not acceptable: {word}")
        if bad := sum(one.bad_tokens for one in checked):
            self.note(name, f"{bad} tokens do not verify")

    def _check_rounds(self, packets: Mapping[int, Sequence[bytes]]) -> None:
        for number, one in enumerate(self.rounds if packets else ()):
            if one.document is None:
                continue
            name = f"{one.document[0]} {one.document[1]}"
            with _noting(self, name):
                if isinstance(self.protocol_part, SummingPart):
                    self._check_sums(self.protocol_part, number, one)
                elif self.bodies.get(one.document) != counted(self.protocol_part, self.manifest, number, packets):
                    self.note(name, "its counts are not those of the transcripts")

    def _check_sums(self, summing: SummingPart, number: int, one: Round) -> None:
        tags = {survey: self.tags.get(survey, ()) for survey in one.surveys}
        body = self.bodies.get(one.document or ("", 0), b"")
        self.left_out |= summing.check_sums(self.manifest, number, body, tags)

    def _check_model(self) -> None:
        if find(self.chain, "model") is None or ("model", 0) not in self.bodies:
            return
        value = parse_seed(self.bodies["seed", 0], self.study, self.manifest.seed_commitment)
        score_value = parse_seed(self.bodies.get(("seed", 1), b""), self.study, value)
        documents = {place: self.bodies[place] for place in self.places if place in self.bodies}
        transcripts = self.whole
        learned = learn_from_documents(self.manifest, documents, score_value, transcripts)
        self.model_checked = True
        published = json.loads(self.bodies["model", 0], object_pairs_hook=_without_repeats)
        again = json.loads(learned.model.to_json())
        if not _alike(published, again):
            self.note("model 0", "is not what the transcripts give")
        if not _alike(_score(published), _score(again)):
            self.note("model 0", "its declared score is not what the transcripts give")
        self._compare_report(learned, transcripts)

    def _compare_report(self, learned: Learned, transcripts: Sequence[bytes]) -> None:
        published = self.bodies.get(("report", 0), b"").decode("utf-8", "replace")
        end = find(self.chain, "report")
        prints = [one for one in head_prints(self.chain[: end.number if end else None]) if one.kind != "transcript"]
        for signed in (prints, prints[:-1]):  # after a restart the report was made when the model was signed already
            self.report = report_again(self.manifest, learned, self.enrolled, signed, transcripts, published)
            self.report_checked = self.report == published
            if self.report_checked:
                return


def _score(model: Any) -> Any:
    return model.get("score") if isinstance(model, dict) else None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key twice would be read as one value here and as another elsewhere."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def _alike(published: Any, recomputed: Any) -> bool:
    """Equal, but for the last digits that another machine's arithmetic may give."""
    if isinstance(published, dict) and isinstance(recomputed, dict):
        return published.keys() == recomputed.keys() and all(_alike(published[k], recomputed[k]) for k in published)
    if isinstance(published, list) and isinstance(recomputed, list):
        return len(published) == len(recomputed) and all(map(_alike, published, recomputed))
    if isinstance(published, float) and isinstance(recomputed, float):
        return isclose(published, recomputed, rel_tol=1e-6, abs_tol=1e-9)
    return type(published) is type(recomputed) and bool(published == recomputed)


class _noting:
    """Turns a typed error, or a document too damaged to be read, into a finding."""

    def __init__(self, audit: _Audit, document: str) -> None:
        self._audit = audit
        self._document = document

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        if isinstance(error, AnonmlError):
            self._audit.note(self._document, str(error))
            return True
        if isinstance(error, (KeyError, ValueError, TypeError)):
            self._audit.note(self._document, "cannot be read with the documents there are")
            return True
        return False
