"""A round's document and the model, each a pure function of published bytes: the study computes them, the audit repeats
them. Each protocol learns in its own part; the histogram's is `aggregator.protocols.histogram.ensemble`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from aggregator.intake.counters import Traffic
from aggregator.protocols.contract import AggregatorPart, CountingPart, Learned
from aggregator.protocols.registry import part_of
from aggregator.report.page import render
from anon.protocols.contract import Place
from anon.study.manifest import Manifest, parse_manifest
from anon.transparency.fingerprint import HeadPrint
from anon.transparency.transcript import published, reports

_REFUSED = re.compile(r'<tr><th>refused: ([a-z-]+)</th><td class="n">([0-9]{1,12})</td></tr>')


def counted(part: AggregatorPart, manifest: Manifest, number: int, packets: Mapping[int, Sequence[bytes]]) -> bytes:
    """The document after round `number`, from the accepted packets of each of its surveys. Raises `TypeError` for a
    protocol whose rounds nobody counts."""
    if not isinstance(part, CountingPart):
        raise TypeError("a round with a document, of a protocol that does not count")
    asked = part.rounds(manifest)[number].surveys
    return part.counted(manifest, number, {survey: reports(packets.get(survey, ())) for survey in asked})


def learn_from_documents(
    manifest: Manifest, documents: Mapping[Place, bytes], score_value: bytes, transcripts: Sequence[bytes]
) -> Learned:
    """The model that these documents determine; `documents` are those of the rounds. Raises `Malformed` for documents
    that do not fit together. Packets of a transcript that cannot be read are left out of it."""
    packets = published(manifest, transcripts).packets
    return part_of(manifest).learn(manifest, documents, score_value, packets)


def learn_from_bytes(
    manifest_bytes: bytes,
    documents: Mapping[Place, bytes],
    score_value: bytes,
    transcripts: Sequence[bytes],
    traffic: Traffic,
) -> tuple[bytes, bytes]:
    """The bodies of the model document (canonical JSON) and of the report (HTML), for a worker process."""
    manifest = parse_manifest(manifest_bytes)
    packets = published(manifest, transcripts)
    learned = part_of(manifest).learn(manifest, documents, score_value, packets.packets)
    page = render(manifest, learned, traffic, packets.accepted, unreadable=packets.unreadable)
    return learned.model.to_json().encode(), page.encode()


def report_again(
    manifest: Manifest,
    learned: Learned,
    enrolled: int,
    signed: Sequence[HeadPrint],
    transcripts: Sequence[bytes],
    report_untrusted: str = "",
) -> str:
    """The report that published documents give. Only the counts of refusals, which no document has, are taken from
    the published report."""
    packets = published(manifest, transcripts)
    refused = {word: int(number) for word, number in _REFUSED.findall(report_untrusted)}
    traffic = Traffic(enrolled, {}, refused, tuple(signed))
    return render(manifest, learned, traffic, packets.accepted, unreadable=packets.unreadable)
