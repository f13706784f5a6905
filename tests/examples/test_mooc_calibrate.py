"""The calibration itself: one report per person through the real mechanisms, and tables that lean the right way."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from anon.study.proposal import Proposal, load_proposal
from examples.mooc import calibrate
from examples.mooc.features import STUDY, Record

PEOPLE = 500


@pytest.fixture(scope="module")
def proposal() -> Proposal:
    return load_proposal(STUDY)


def _people(proposal: Proposal, rng: np.random.Generator) -> list[Record]:
    """Every category agrees with the label for four people in five."""
    found = []
    for _ in range(PEOPLE):
        label = int(rng.random() < 0.4)
        categories = tuple(label if rng.random() < 0.8 else 1 - label for _ in proposal.features)
        found.append(Record({}, categories, label))
    return found


def test_everyone_answers_once_within_the_budget(proposal: Proposal) -> None:
    rng = np.random.default_rng(1)
    asked = calibrate.surveys(proposal, 4.0)
    assert max(survey.mechanism.epsilon for survey in asked) <= 4_000_000_000
    tables = calibrate.collect(_people(proposal, rng), asked, 0.0, rng)
    assert sum(table[0].sum() for table in tables) == pytest.approx(PEOPLE)


def test_tables_tell_agreeing_categories_from_noise(proposal: Proposal) -> None:
    rng = np.random.default_rng(2)
    people, test = _people(proposal, rng), _people(proposal, rng)
    asked = calibrate.surveys(proposal, 4.0)
    reached = calibrate.ensemble_auc(asked, calibrate.collect(people, asked, 0.1, rng), test)
    assert 0.95 < reached <= calibrate.ceiling_auc(proposal, people, test) + 0.01
    mixed = [evolve(person, label=other.label) for person, other in zip(people, test, strict=True)]
    tables = calibrate.collect(mixed, asked, 0.1, rng)
    assert all(np.abs(calibrate.log_odds(table)).max() < 1.2 for table in tables)


def test_an_empty_table_says_nothing() -> None:
    assert calibrate.log_odds(np.zeros((2, 4, 2))).tolist() == [0.0] * 4
