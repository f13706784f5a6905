"""The manifest's threshold for documents in buckets: who has it, and the lengths that follow."""

from __future__ import annotations

import pytest
from attrs import evolve

from aggregator.rules.lengths import demand_readable, largest_cohort
from anon.errors import InvalidValue, Malformed
from anon.protocols.kinds import longest_bucket
from anon.protocols.registry import check_study
from anon.protocols.sizes import MOST_HELD, longest_at_once, longest_body
from anon.study.manifest import Manifest
from anon.transparency import buckets
from anon.transparency.buckets import LONGEST_DOCUMENT, USUAL_THRESHOLD
from anon.transparency.documents import MAX_BODY
from tests.support.fake_aggregator import DECLARED, FakeAggregator
from tests.support.protocols import parse_manifest
from tests.support.sums import MOMENTS, manifest_of


def study_of(maximum: int, text: str = DECLARED) -> Manifest:
    return FakeAggregator.with_study(text.replace("minimum = 3", f"minimum = 3\nmaximum = {maximum}")).manifest


def test_a_study_that_stays_below_the_threshold_never_says_so() -> None:
    small, large = study_of(USUAL_THRESHOLD - 1), study_of(USUAL_THRESHOLD)
    assert (small.bucketed_from, large.bucketed_from) == (0, USUAL_THRESHOLD)
    assert b"bucketed_from" not in small.to_bytes() and b"bucketed_from" in large.to_bytes()
    assert parse_manifest(large.to_bytes()) == large
    assert evolve(large, bucketed_from=0).to_bytes() != large.to_bytes()


@pytest.mark.parametrize("threshold", [1, -1, 1_000_001])
def test_no_threshold_is_without_meaning(threshold: int) -> None:
    with pytest.raises(InvalidValue, match="bucketed_from"):
        evolve(study_of(5000), bucketed_from=threshold)


def test_studies_with_tellers_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = manifest_of(MOMENTS)
    assert manifest.cohort.maximum < USUAL_THRESHOLD and not manifest.bucketed_from
    monkeypatch.setattr(buckets, "USUAL_THRESHOLD", 2)
    assert not manifest_of(MOMENTS).bucketed_from
    with pytest.raises(Malformed, match="tellers take whole lists"):
        check_study(evolve(manifest, bucketed_from=USUAL_THRESHOLD))


def test_a_million_members_fit() -> None:
    """Without buckets no more than 300,000 do."""
    manifest = study_of(1_000_000)
    demand_readable(manifest)
    assert largest_cohort(manifest) == 1_000_000
    assert largest_cohort(evolve(manifest, bucketed_from=0)) < 350_000
    assert longest_body(manifest, "roster") < 500_000 and longest_body(manifest, "transcript", 0) < MAX_BODY
    assert longest_at_once(manifest) < MOST_HELD / 4
    assert longest_body(evolve(manifest, bucketed_from=2), "roster") >= LONGEST_DOCUMENT


def test_lengths_of_buckets() -> None:
    manifest = study_of(1_000_000)
    assert (
        longest_bucket(manifest, "roster")
        > longest_bucket(manifest, "credentials")
        > longest_bucket(manifest, "transcript")
        > 0
    )
    assert longest_bucket(manifest, "model") == longest_bucket(study_of(100), "roster") == 0
