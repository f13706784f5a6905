"""A study file that names no largest cohort: as many as its documents have room for, and never a refused number."""

from __future__ import annotations

import os
import secrets

import pytest
from attrs import evolve

import aggregator.rules.lengths
from aggregator.lab.planning.study_file import to_toml
from aggregator.rules.lengths import TooLong, largest_cohort
from aggregator.study.publish import prepare
from anon.errors import InvalidValue
from anon.sharing.drafts import drafted
from anon.study import Manifest
from anon.study.features import USUAL_MOST
from anon.study.proposal import Proposal
from tests.support.protocols import parse_proposal
from tests.support.sums import GRADIENT, MOMENTS, TABLES, sum_study
from tests.support.world import study_text

SUMS = [TABLES, MOMENTS, GRADIENT]


def _published(proposal: Proposal) -> Manifest:
    return prepare(drafted(proposal), bytes(32), 1_800_000_000, os.urandom, secrets.randbelow)[0]


def _unnamed(text: str) -> Proposal:
    assert "maximum = 1000" in text
    return parse_proposal(text.replace("maximum = 1000", ""))


@pytest.mark.parametrize("design", SUMS)
def test_the_first_study_of_sums_is_published_with_the_maximum_that_fits(design: str) -> None:
    proposal = _unnamed(sum_study(design))
    manifest = _published(proposal)
    assert manifest.cohort.minimum <= manifest.cohort.maximum == largest_cohort(manifest) <= USUAL_MOST


@pytest.mark.parametrize("held", [10 * 2**20, 2**30])
def test_no_larger_one_would_fit(monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    monkeypatch.setattr(aggregator.rules.lengths, "MOST_ROLL", held)
    proposal = _unnamed(sum_study())
    most = _published(proposal).cohort.maximum
    assert _published(evolve(proposal, cohort=evolve(proposal.cohort, maximum=most))).cohort.maximum == most
    if most < USUAL_MOST:
        with pytest.raises(TooLong, match=rf"cohort\.maximum = {most} or lower"):
            _published(evolve(proposal, cohort=evolve(proposal.cohort, maximum=most + 1)))


def test_a_study_in_buckets_keeps_the_usual_one_and_a_larger_minimum_counts() -> None:
    assert _published(_unnamed(study_text())).cohort.maximum == USUAL_MOST
    many = _published(parse_proposal(study_text(minimum=150_000).replace("maximum = 1000", "")))
    assert many.cohort.maximum == 150_000


def test_a_study_for_which_no_cohort_fits_is_still_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregator.rules.lengths, "MOST_ROLL", 1000)
    with pytest.raises(TooLong, match="No cohort that reaches the minimum fits"):
        _published(_unnamed(sum_study()))


def test_a_written_study_file_names_none_either_and_a_manifest_must() -> None:
    proposal = parse_proposal(study_text().replace("maximum = 1000", ""))
    assert "maximum" not in to_toml(proposal) and parse_proposal(to_toml(proposal)) == proposal
    manifest = _published(proposal)
    with pytest.raises(InvalidValue, match=r"cohort\.maximum"):
        evolve(manifest, cohort=evolve(manifest.cohort, maximum=0))
