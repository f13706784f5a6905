"""The greatest document lengths that a manifest implies are those that an honest aggregator can need, to the byte."""

from __future__ import annotations

import os

import pytest
from attrs import evolve

from anon.credential import token_size
from anon.protocols.histogram import thresholds as cuts
from anon.protocols.histogram.asked import asks_label
from anon.protocols.kinds import LONGEST_MANIFEST, most_drawn
from anon.protocols.sizes import LONGEST_UNSEEN_CHAIN, longest_body, longest_chain, most_documents
from anon.protocols.sortition import occasion_of
from anon.study.manifest import Manifest, Survey
from anon.transparency.documents import LONGEST_HEAD, MAX_BODY, encode_chain
from anon.wire.cbor import encode
from anon.wire.messages import RosterEntry, encode_credentials, encode_roster, encode_seed
from anon.wire.packets import PublishedPacket
from tests.support.fake_aggregator import BINNED, DECLARED, PAPER, FakeAggregator

EVERY = pytest.mark.parametrize("text", [DECLARED, BINNED, PAPER], ids=["declared", "binned", "paper"])
PEOPLE = 300


def small(text: str) -> Manifest:
    manifest = FakeAggregator.with_study(text).manifest
    return evolve(manifest, cohort=evolve(manifest.cohort, maximum=PEOPLE), bucketed_from=0)


@EVERY
def test_a_full_cohort_fills_its_documents_exactly(text: str) -> None:
    manifest = small(text)
    study = manifest.study_id
    entries = [RosterEntry(os.urandom(32), os.urandom(32), os.urandom(48)) for _ in range(PEOPLE)]
    assert len(encode_roster(study, entries)) == longest_body(manifest, "roster")
    assert len(encode_credentials(study, [os.urandom(80)] * PEOPLE)) == longest_body(manifest, "credentials")
    for part in (0, 1):
        assert len(encode_seed(study, os.urandom(32))) == longest_body(manifest, "seed", part)
    assert len(encode([1, study, PEOPLE])) == longest_body(manifest, "abandoned")


@EVERY
def test_all_who_can_have_drawn_a_survey_fill_its_transcript_exactly(text: str) -> None:
    manifest = small(text)
    for slot in manifest.slots:
        for row in slot.rows:
            survey = manifest.survey(row.survey)
            packet = _packet(manifest, slot.slot, survey).to_bytes()
            body = encode([1, manifest.study_id, survey.survey, [packet] * most_drawn(manifest, survey)])
            assert len(body) == longest_body(manifest, "transcript", survey.survey)


def _packet(manifest: Manifest, slot: int, survey: Survey) -> PublishedPacket:
    """A packet of the survey's report, as transcripts have it."""
    token = bytes(token_size(manifest.packets))
    report = bytes(survey.build().report_size)
    return PublishedPacket(occasion_of(manifest, slot), survey.survey, report, (), token)


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
    surveys = len(manifest.surveys)
    for kind, part in (("roster", 1), ("seed", 2), ("transcript", surveys), ("thresholds", 0), ("thresholds", 99),
                       ("edges", 1), ("manifest", 1), ("report", 1), ("novel", 0)):
        assert longest_body(manifest, kind, part) == 0


@pytest.mark.parametrize(("weights", "people", "most"), [((1,), 300, 300), ((1, 9), 100_000, 100_000)])
def test_who_can_have_drawn_a_survey(weights: tuple[int, ...], people: int, most: int) -> None:
    """Never more than all; for one in ten of 100,000 the mean and a tail, 2,000 beyond it at most."""
    manifest = small(DECLARED)
    first = manifest.slots[0].rows[0]
    others = [evolve(first, weight=weight) for weight in weights[1:]]
    shaped = evolve(manifest.slots[0], rows=(evolve(first, weight=1), *others))
    object.__setattr__(manifest, "slots", (shaped,))
    object.__setattr__(manifest, "cohort", evolve(manifest.cohort, maximum=people))
    found = most_drawn(manifest, manifest.surveys[first.survey])
    assert found == most if len(weights) == 1 else 10_000 < found < 12_000


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
