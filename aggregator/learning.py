"""Learning as one pure function of published bytes, run in a worker process and by the audit alike."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from aggregator.counters import Traffic
from aggregator.protocols.histogram.accept import learn_study
from aggregator.protocols.histogram.ensemble import LearnedStudy
from aggregator.report.page import render
from aggregator.transcript import parse_transcript
from anon.protocols.histogram.cuts import known_shares, parse_all, study_cuts
from anon.study.manifest import Manifest, parse_manifest


def learn_from_documents(
    manifest: Manifest,
    thresholds: Sequence[bytes],
    edges: bytes | None,
    score_value: bytes,
    transcripts: Sequence[bytes],
) -> LearnedStudy:
    """The model that these documents determine, saying how far it is from noise. Raises `Malformed` for documents that
    do not fit together."""
    bodies = {("thresholds", turn): body for turn, body in enumerate(thresholds, start=1)}
    published = parse_all(manifest, bodies if edges is None else {**bodies, ("edges", 0): edges})
    packets = dict(parse_transcript(body, manifest.study_id) for body in transcripts)
    shares = known_shares(manifest, published)
    learned = learn_study(manifest, study_cuts(manifest, published), score_value, packets, shares)
    return evolve(learned, model=evolve(learned.model, chance=learned.chance, shown=learned.learnable))


def learn_from_bytes(
    manifest_bytes: bytes,
    thresholds: Sequence[bytes],
    edges: bytes | None,
    score_value: bytes,
    transcripts: Sequence[bytes],
    traffic: Traffic,
) -> tuple[bytes, bytes]:
    """The bodies of the model document (canonical JSON) and of the report (HTML)."""
    manifest = parse_manifest(manifest_bytes)
    learned = learn_from_documents(manifest, thresholds, edges, score_value, transcripts)
    accepted = {survey: len(rows) for survey, rows in (parse_transcript(t, manifest.study_id) for t in transcripts)}
    return learned.model.to_json().encode(), render(manifest, learned, traffic, accepted).encode()
