"""Step 6 of an audit: every packet of the transcripts, and all that is counted in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from aggregator.audit.buckets import CheckedPackets, GatheredBuckets, checked_transcripts
from aggregator.audit.noting import Note
from aggregator.audit.packets import PacketContext
from aggregator.compute import Compute
from aggregator.study.learn import TranscriptCounts, count
from anon.transparency.buckets import BucketDocument


class CheckedTranscripts:
    """The transcripts of a study as far as they were taken.

    `packets`: how many were checked; `in_each`: by slot, how many a transcript holds, or is signed for; `tags`: by
    survey those of its packets, `with_tags`; `found`: what is counted in all of them, None where something cannot be.
    """

    def __init__(self, compute: Compute, asked: PacketContext, with_tags: bool, note: Note) -> None:
        self.packets = 0
        self.in_each: dict[int, int] = {}
        self.tags: dict[int, list[bytes]] = {}
        self.found: TranscriptCounts | None = count(asked.counting, ())
        self._compute = compute
        self._asked = asked
        self._with_tags = with_tags
        self._note = note

    def take(self, documents: Sequence[BucketDocument], content_of: Callable[[int, int], bytes | None]) -> None:
        """The transcripts of these slots, a bucket at a time. `content_of`: by slot and bucket."""
        checked = checked_transcripts(self._compute, self._asked, self._with_tags, documents, content_of)
        for document in documents:
            self._take_slot(document, islice(checked, document.buckets))

    def _take_slot(self, document: BucketDocument, checked: Iterable[CheckedPackets]) -> None:
        name, gathered, refused, bad = f"transcript {document.part}", GatheredBuckets(document), Counter[str](), 0
        for bucket, result in enumerate(checked):
            gathered.take(bucket, result.leaf)
            if result.fault is not None:
                gathered.fault(f"bucket {bucket}: {result.fault}")
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
        if bad:
            self._note(name, f"{bad} {'token does' if bad == 1 else 'tokens do'} not verify")

    def _add(self, counted: TranscriptCounts | None) -> None:
        self.found = None if self.found is None or counted is None else self.found + counted
