"""Step 6 of an audit: every packet of the transcripts, and all that is counted in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise

from aggregator.audit.buckets import GatheredBuckets, checked_transcript
from aggregator.audit.noting import UNREADABLE, Note, noting
from aggregator.audit.packets import BATCH, PacketContext, PacketVerdicts, check
from aggregator.compute import Compute
from aggregator.study.learn import Counting, TranscriptCounts, count
from anon.errors import Malformed
from anon.transparency.buckets import BucketDocument
from anon.transparency.transcript import parse_transcript


class CheckedTranscripts:
    """The transcripts of a study as far as they were taken.

    `packets`: how many were checked; `in_each`: how many each transcript holds, or is signed for; `tags`: by survey
    those of its packets, in buckets only `with_tags`; `found`: what is counted in all of them, None where something
    cannot be.
    """

    def __init__(self, compute: Compute, asked: PacketContext, in_buckets: bool, with_tags: bool, note: Note) -> None:
        self.packets = 0
        self.in_each: dict[int, int] = {}
        self.tags: dict[int, list[bytes]] = {}
        self.counting = asked.counting(in_buckets)
        self.found: TranscriptCounts | None = count(self.counting, ())
        self._compute = compute
        self._asked = asked
        self._with_tags = with_tags
        self._note = note

    def take_slot(self, document: BucketDocument, content_of: Callable[[int], bytes | None]) -> None:
        """The transcript of a slot, a bucket at a time."""
        name, gathered, refused, bad = f"transcript {document.part}", GatheredBuckets(document), Counter[str](), 0
        checked = checked_transcript(self._compute, self._asked, self._with_tags, document, content_of)
        for bucket, result in enumerate(checked):
            gathered.take(bucket, result.leaf)
            if result.fault is not None:
                gathered.fault(f"bucket {bucket}: {result.fault or UNREADABLE}")
            self.packets += result.packets
            self._add(result.counted)
            refused.update(result.refused)
            bad += result.bad_tokens
            for survey, tags in result.tags.items():
                self.tags.setdefault(survey, []).extend(tags)
        self.in_each[document.part] = max(document.count, gathered.entries)
        for fault in gathered.finished():
            self._note(name, fault)
        for word, number in refused.items():
            self._note(name, f"a packet is not acceptable: {word} ({number} in all)")
        self._note_tokens(name, bad)

    def take_surveys(self, bodies: Mapping[int, bytes], study: bytes) -> None:
        """Whole transcripts, by survey."""
        transcripts: dict[int, tuple[bytes, ...]] = {}
        for part, body in bodies.items():
            with noting(self._note, f"transcript {part}"):
                survey, plaintexts = parse_transcript(body, study)
                if survey != part:
                    raise Malformed("says it is of another survey than its head")
                transcripts[part] = plaintexts
                self.in_each[part] = len(plaintexts)
        for part, checked in self._checked(transcripts).items():
            with noting(self._note, f"transcript {part}"):
                self._take_survey(part, checked)
        for result in self._compute.each(partial(_count, self.counting), list(bodies.values())):
            self._add(result)

    def _add(self, counted: TranscriptCounts | None) -> None:
        self.found = None if self.found is None or counted is None else self.found + counted

    def _checked(self, transcripts: Mapping[int, Sequence[bytes]]) -> dict[int, list[PacketVerdicts]]:
        """By survey what its packets give, in pieces; all surveys' pieces are computed at once."""
        pieces = [
            (survey, plaintexts[start : start + BATCH])
            for survey, plaintexts in transcripts.items()
            for start in range(0, len(plaintexts), BATCH)
        ]
        found: dict[int, list[PacketVerdicts]] = {survey: [] for survey in transcripts}
        for (survey, _), result in zip(pieces, self._compute.each(partial(check, self._asked), pieces), strict=True):
            found[survey].append(result)
        return found

    def _take_survey(self, survey: int, checked: Sequence[PacketVerdicts]) -> None:
        name = f"transcript {survey}"
        for result in checked:
            if result.fault is not None:
                raise Malformed(result.fault) if result.fault else ValueError
        tags = self.tags[survey] = [tag for result in checked for tag in result.tags]
        self.packets += len(tags)
        if any(result.foreign for result in checked):
            self._note(name, "holds packets of another survey")
            return
        if not all(first < second for first, second in pairwise(tags)):
            self._note(name, "not strictly sorted by tag: a tag counts twice, or the order tells something")
        for word in (word for result in checked for word in result.refused):
            self._note(name, f"a packet is not acceptable: {word}")
        self._note_tokens(name, sum(result.bad_tokens for result in checked))

    def _note_tokens(self, name: str, bad: int) -> None:
        if bad:
            self._note(name, f"{bad} tokens do not verify")


def _count(counting: Counting, body: bytes) -> TranscriptCounts | None:
    try:
        return count(counting, [body])
    except Malformed:
        return None
