"""The greatest document lengths that a manifest implies are those that an honest aggregator can need, to the byte."""

from __future__ import annotations

import os

import pytest
from attrs import evolve

from anon.protocols.histogram import thresholds as cuts
from anon.protocols.histogram.asked import asks_label
from anon.protocols.kinds import LONGEST_MANIFEST
from anon.protocols.sizes import LONGEST_UNSEEN_CHAIN, longest_body, longest_chain, most_documents
from anon.study.manifest import Manifest
from anon.transparency.buckets import document_over
from anon.transparency.documents import LONGEST_HEAD, MAX_BODY, encode_chain
from anon.transparency.merkle import leaf_hash
from anon.transparency.transcript import digest_list
from anon.wire.cbor import encode
from anon.wire.messages import RosterEntry, encode_seed
from tests.support.documents import credentials_body, roster_body
from tests.support.fake_aggregator import BINNED, DECLARED, PAPER, FakeAggregator

EVERY = pytest.mark.parametrize("text", [DECLARED, BINNED, PAPER], ids=["declared", "binned", "paper"])
PEOPLE = 300


def small(text: str) -> Manifest:
    manifest = FakeAggregator.with_study(text).manifest
    return evolve(manifest, cohort=evolve(manifest.cohort, maximum=PEOPLE))


@EVERY
def test_a_full_cohort_fills_its_documents_exactly(text: str) -> None:
    manifest = small(text)
    study = manifest.study_id
    entries = [RosterEntry(os.urandom(32), os.urandom(32), os.urandom(48)) for _ in range(PEOPLE)]
    assert len(roster_body(study, entries)) == longest_body(manifest, "roster")
    assert len(credentials_body(study, [os.urandom(80)] * PEOPLE)) == longest_body(manifest, "credentials")
    for part in (0, 1):
        assert len(encode_seed(study, os.urandom(32))) == longest_body(manifest, "seed", part)
    assert len(encode([1, study, PEOPLE])) == longest_body(manifest, "abandoned")


@EVERY
def test_a_packet_of_everybody_fills_a_transcript_exactly(text: str) -> None:
    manifest = small(text)
    for slot in manifest.slots:
        listed = digest_list(manifest.study_id, slot.slot, [os.urandom(32)] * PEOPLE)
        made = document_over(manifest.study_id, "transcript", slot.slot, PEOPLE, [leaf_hash(listed)], listed)
        assert len(made.to_bytes()) == longest_body(manifest, "transcript", slot.slot)


@EVERY
def test_counts_of_everybody_fill_the_documents_of_the_rounds(text: str) -> None:
    manifest = small(text)
    for turn in {one.round for one in manifest.surveys if not asks_label(one)}:
        asked = cuts.surveys_of_round(manifest, turn)
        answers = {one.survey: cuts.RoundCounts.of(one, PEOPLE, (PEOPLE,) * one.m) for one in asked}
        assert len(cuts.body(manifest, turn, answers)) == longest_body(manifest, *cuts.place_of(manifest, turn))


@EVERY
def test_a_document_that_the_study_cannot_have_has_no_bytes(text: str) -> None:
    manifest = small(text)
    slots = len(manifest.slots)
    for kind, part in (("roster", 1), ("seed", 2), ("transcript", slots), ("thresholds", 0), ("thresholds", 99),
                       ("edges", 1), ("manifest", 1), ("report", 1), ("novel", 0)):
        assert longest_body(manifest, kind, part) == 0


@EVERY
def test_no_chain_of_an_honest_aggregator_is_longer(text: str) -> None:
    aggregator = FakeAggregator.with_study(text)
    aggregator.crowd(4)
    aggregator.close()
    for turn in sorted({one.round for one in aggregator.manifest.surveys if not asks_label(one)}):
        kind, part = cuts.place_of(aggregator.manifest, turn)
        aggregator.publish(kind, b"", part)
    aggregator.transcribe()
    for kind, part in (("seed", 1), ("model", 0), ("report", 0)):
        aggregator.publish(kind, b"", part)
    assert len(aggregator.chain) == most_documents(aggregator.manifest)
    assert len(encode_chain(aggregator.chain)) <= longest_chain(aggregator.manifest)


def test_the_longest_manifest_implies_no_longer_chain_than_is_read_unseen() -> None:
    """A survey takes over 100 bytes of a manifest, and its row ten."""
    assert LONGEST_MANIFEST // 110 * LONGEST_HEAD <= LONGEST_UNSEEN_CHAIN < MAX_BODY
