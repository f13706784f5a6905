"""The calibration itself: one report per person through the real mechanisms, and tables that lean the right way."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from anon.study.proposal import Proposal
from examples.mooc import calibrate
from examples.mooc.features import STUDY, Record
from tests.support.protocols import load_proposal

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
    train, scoring = calibrate.collect(_people(proposal, rng), asked, 0.2, rng)
    assert sum(tally.n for tally in train + scoring) == PEOPLE
    assert sum(int(tally.counts.sum()) for tally in train + scoring) == PEOPLE
    assert 60 < sum(tally.n for tally in scoring) < 140


def test_the_learner_is_near_the_ceiling_where_all_agrees(proposal: Proposal) -> None:
    rng = np.random.default_rng(2)
    people, test = _people(proposal, rng), _people(proposal, rng)
    found = calibrate.collect(people, calibrate.surveys(proposal, 4.0), 0.1, rng)
    reached = calibrate.ensemble_auc(proposal, *found, test)
    assert 0.95 < reached <= calibrate.ceiling_auc(proposal, people, test) + 0.01


def test_labels_of_others_teach_nothing(proposal: Proposal) -> None:
    """Labels of the test people are exchanged too; 4.5 standard errors of a rank test: false alarm below 1e-5."""
    rng = np.random.default_rng(3)

    def mixed(people: list[Record]) -> list[Record]:
        order = rng.permutation(len(people))
        return [evolve(person, label=people[other].label) for person, other in zip(people, order, strict=True)]

    people, test = mixed(_people(proposal, rng)), mixed(_people(proposal, rng))
    found = calibrate.collect(people, calibrate.surveys(proposal, 4.0), 0.1, rng)
    assert abs(calibrate.ensemble_auc(proposal, *found, test) - 0.5) < 4.5 * 0.0266
