"""A round's document and the results, each a pure function of published bytes: the study computes them, and the audit
repeats them. Each protocol learns in its own part; the histogram's is `aggregator.protocols.histogram.ensemble`.

1. `count`: the tallies of some buckets of transcripts. Pieces are counted anywhere, and added.
2. `counted`: the document after a round, from the tallies of its surveys.
3. `too_few_wrote`: if a study of letters ends after a round.
4. `learn_from_counts`: the results and their report, from the documents and all tallies.
5. `report_again`: the same report in an audit, with the counts of refusals that no other document has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from attrs import field, frozen

from aggregator.protocols.contract import AggregatorPart, CountingPart, EndingPart, LearningResult, part_of
from aggregator.protocols.tally import Tally
from aggregator.report.page import render
from aggregator.rules.counters import Traffic
from anon.errors import Malformed
from anon.protocols.contract import Place
from anon.protocols.registry import Protocols, protocol_of
from anon.study.manifest import Manifest
from anon.transparency.bucketed import by_survey, published
from anon.transparency.documents import SignedHead
from anon.transparency.fingerprint import HeadPrint, head_prints
from anon.transparency.transcript import PublishedTranscripts
from anon.wire.packets import PublishedPacket

_REFUSED = re.compile(r'<tr><th>refused: ([a-z-]+)</th><td class="n">([0-9]{1,12})</td></tr>')


@frozen
class Counting:
    """All that is needed to count in transcripts."""

    manifest: bytes = field(repr=False)
    protocols: Protocols = field(repr=False)
    score_value: bytes = field(repr=False)


@frozen(eq=False)
class TranscriptCounts:
    """The counts that learning needs of transcripts: the protocol's tally of every survey, how many packets each has
    that can be counted, and how many packets cannot be read. Those count for nothing."""

    tallies: Mapping[int, Tally]
    accepted: Mapping[int, int]
    unreadable: int

    def __add__(self, other: TranscriptCounts) -> TranscriptCounts:
        return TranscriptCounts(
            {survey: tally + other.tallies[survey] for survey, tally in self.tallies.items()},
            {survey: number + other.accepted[survey] for survey, number in self.accepted.items()},
            self.unreadable + other.unreadable,
        )


def count(asked: Counting, bodies: Sequence[bytes]) -> TranscriptCounts:
    """The counts in some buckets of transcripts. Raises `Malformed` for a body that is none."""
    manifest = _manifest(asked.manifest, asked.protocols)
    return _counts(manifest, published(manifest, bodies), asked.score_value)


def count_read(asked: Counting, packets: Sequence[PublishedPacket | Malformed]) -> TranscriptCounts:
    """The counts in packets that are decoded already, or cannot be (`ReadTranscript.packets`)."""
    manifest = _manifest(asked.manifest, asked.protocols)
    return _counts(manifest, by_survey(manifest, packets), asked.score_value)


def _counts(manifest: Manifest, found: PublishedTranscripts, score_value: bytes) -> TranscriptCounts:
    part = part_of(manifest)
    packets = {survey.survey: found.packets.get(survey.survey, ()) for survey in manifest.surveys}
    tallies = {
        survey.survey: part.tally(manifest, survey, packets[survey.survey], score_value)
        for survey in manifest.surveys
    }
    return TranscriptCounts(tallies, {survey: len(some) for survey, some in packets.items()}, found.unreadable)


@lru_cache(maxsize=2)
def _manifest(body: bytes, protocols: Protocols) -> Manifest:
    return protocols.manifest(body)


def counted(part: AggregatorPart, manifest: Manifest, number: int, tallies: Mapping[int, Tally]) -> bytes:
    """The document after round `number`, from the tallies of its surveys. Raises `TypeError` for a protocol whose
    rounds nobody counts."""
    if not isinstance(part, CountingPart):
        raise TypeError("a round with a document, of a protocol that does not count")
    return part.counted(manifest, number, tallies)


def too_few_wrote(
    manifest_bytes: bytes, protocols: Protocols, number: int, documents: Mapping[Place, bytes]
) -> bool:
    """True if the study ends after round `number`, for a worker process: to see that may take as long as to learn."""
    manifest = _manifest(manifest_bytes, protocols)
    part = part_of(manifest)
    return isinstance(part, EndingPart) and part.ends(manifest, number, documents)


def learn_from_counts(
    manifest_bytes: bytes,
    protocols: Protocols,
    documents: Mapping[Place, bytes],
    found: TranscriptCounts,
    traffic: Traffic,
) -> tuple[Mapping[Place, bytes], bytes]:
    """The bodies of the results (canonical JSON) and of the report (HTML), for a worker process. `documents` are
    those of the rounds. Raises `Malformed` for documents that do not fit together."""
    manifest = protocols.manifest(manifest_bytes)
    learned = part_of(manifest).learn(manifest, documents, found.tallies)
    page = render(manifest, learned, traffic, found.accepted, unreadable=found.unreadable)
    return learned.results, page.encode()


def prints_of(manifest: Manifest, chain: Sequence[SignedHead]) -> list[HeadPrint]:
    """The fingerprints in a report: of all documents before the results, but for the transcripts."""
    after = [*protocol_of(manifest).results(manifest), ("report", 0)]
    ends = min((signed.head.number for signed in chain if (signed.head.kind, signed.head.part) in after), default=None)
    return [head_print for head_print in head_prints(chain[:ends]) if head_print.kind != "transcript"]


def report_again(
    manifest: Manifest,
    learned: LearningResult,
    enrolled: int,
    signed: Sequence[HeadPrint],
    found: TranscriptCounts,
    report_untrusted: str = "",
) -> str:
    """The report that published documents give. Only the counts of refusals, which no document has, are taken from
    the published report."""
    refused = {word: int(number) for word, number in _REFUSED.findall(report_untrusted)}
    traffic = Traffic(enrolled, {}, refused, tuple(signed))
    return render(manifest, learned, traffic, found.accepted, unreadable=found.unreadable)
