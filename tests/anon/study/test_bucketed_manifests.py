"""The lengths of the documents of large studies, which follow from the manifest and the constants of every program."""

from __future__ import annotations

import pytest
from attrs import evolve

from aggregator.rules.lengths import demand_readable, largest_cohort
from anon.protocols.kinds import longest_bucket
from anon.protocols.sizes import longest_body
from anon.study.manifest import Manifest
from anon.transparency import buckets
from anon.transparency.buckets import DECOYS, LONGEST_DOCUMENT, THRESHOLD
from anon.transparency.closing import CLOSING
from anon.transparency.documents import MAX_BODY
from anon.wire.packets import MOST_SLOTS
from tests.support.fake_aggregator import DECLARED, FakeAggregator
from tests.support.sums import MOMENTS, manifest_of

MIB = 2**20


def study_of(maximum: int, text: str = DECLARED) -> Manifest:
    return FakeAggregator.with_study(text.replace("minimum = 3", f"minimum = 3\nmaximum = {maximum}")).manifest


def test_no_study_chooses_how_its_members_are_split() -> None:
    """A smaller bucket would name who fetches it."""
    assert b"bucket" not in study_of(THRESHOLD).to_bytes()
    assert study_of(THRESHOLD - 1).to_bytes().count(b"bucket") == 0


@pytest.mark.parametrize("kind", ["roster", "credentials", "transcript"])
def test_a_document_is_longest_with_the_most_entries_of_one_bucket(kind: str) -> None:
    shorter, longest = (longest_body(study_of(maximum), kind, 0) for maximum in (THRESHOLD - 2, THRESHOLD - 1))
    assert LONGEST_DOCUMENT < shorter < longest
    assert longest == longest_body(study_of(1_000_000), kind, 0) < MIB / 2


def test_studies_with_tellers_have_buckets_too(monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = manifest_of(MOMENTS)
    larger = evolve(manifest, cohort=evolve(manifest.cohort, maximum=1_000_000))
    assert longest_body(larger, "roster") == longest_body(study_of(1_000_000), "roster")
    monkeypatch.setattr(buckets, "THRESHOLD", 2)
    assert longest_body(manifest_of(MOMENTS), "roster") < 300


def test_a_million_members_fit() -> None:
    manifest = study_of(1_000_000)
    demand_readable(manifest)
    assert largest_cohort(manifest) == 1_000_000


def test_no_peer_holds_more_than_64_mib_at_once() -> None:
    """The documents that close an enrolment with the buckets of both, or the transcripts of every slot that can be."""
    manifest = study_of(1_000_000)
    closing = sum(longest_body(manifest, kind) for kind in CLOSING)
    opened = (1 + DECOYS) * sum(longest_bucket(kind) for kind in ("roster", "credentials"))
    assert closing + opened < 16 * MIB
    assert MOST_SLOTS * longest_body(manifest, "transcript") < 35 * MIB < MAX_BODY


def test_lengths_of_buckets() -> None:
    assert longest_bucket("roster") > longest_bucket("credentials") > longest_bucket("transcript") > 0
