"""Forecasts: intervals hold nine in ten, signals are of many strengths, directions as declared; last year's file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from aggregator.lab.planning.outlook import Outlook
from aggregator.lab.planning.population import MADE_UP, Assumptions, made_up
from aggregator.lab.planning.trials import Trials, interval, plan_of, worlds_of
from anon.study.features import Feature
from tests.support.protocols import load_proposal

STUDY = load_proposal(Path(__file__).parents[2] / "examples" / "census" / "study.toml")
NUMBER = Feature("score", "numeric", "Points.", "SELECT 1", 0.0, (0.0, 100.0), cuts=(30.0, 60.0))
ASKED = evolve(STUDY, features=(evolve(NUMBER, expects=(1,)), evolve(NUMBER, name="other", expects=(-1,))))
FEW = Assumptions(people=1500, test=500)


def test_the_interval_holds_nine_in_ten_further_results() -> None:
    """In the mean over many samples of 32: 5,000 of them have a standard error of .0008. Plain quantiles hold .85."""
    draws = np.random.default_rng(1).standard_normal((5000, 33)) / 10 + 0.5
    held = [low <= drawn[-1] <= high for drawn in draws for low, high in [interval(drawn[:-1])]]
    assert np.mean(held) == pytest.approx(0.9, abs=0.015)


def test_studies_differ_in_how_much_there_is_to_find() -> None:
    """The first 32 populations cover the strengths that were fitted: from .53 to more than .99, half below .76."""
    signals = np.sort([MADE_UP.signal_of(number, 8) for number in range(32)])
    assert signals[1] == pytest.approx(0.53, abs=0.02) and signals[-2] > 0.99
    assert np.median(signals) == pytest.approx(0.76, abs=0.02)
    assert MADE_UP.signal_of(5, 16) > MADE_UP.signal_of(5, 8)
    assert Assumptions(signal=0.7).signal_of(5, 8) == 0.7


def test_made_up_people_follow_the_declared_directions() -> None:
    """All but one in twenty: of 40 populations with two directions each, at least 60 of 80 (chance of fewer: 1e-8)."""
    right = 0
    for number in range(40):
        people, _ = made_up(ASKED, evolve(FEW, signal=0.9), np.random.default_rng(number), number)
        for name, sign in (("score", 1), ("other", -1)):
            column = people.columns[name]
            values = np.array(column.numbers)[column.index]
            right += np.mean(values[people.labels == 1]) * sign > np.mean(values[people.labels == 0]) * sign
    assert right >= 60


def test_made_up_people_follow_the_declared_categories() -> None:
    """As numbers do: of 60 populations whose one feature has three categories, at least 45 rise as declared (chance of
    fewer: 1e-8), where a sign at random had half of them rise."""
    words = ("no", "some", "often")
    told = Feature("forum", "categorical", "Often?", "SELECT 1", "no", categories=words, expects=(-1, 0, 1))
    rising = 0
    for number in range(60):
        people, _ = made_up(evolve(STUDY, features=(told,)), FEW, np.random.default_rng(number), number)
        index = people.columns["forum"].index
        rising += people.labels[index == 2].mean() > people.labels[index == 0].mean()
    assert rising >= 45


def test_last_years_people_take_the_place_of_made_up_ones() -> None:
    """A file whose label the features do not know has nothing to find, and one that they know has much."""
    known, _ = made_up(ASKED, evolve(FEW, signal=0.95), np.random.default_rng(1))
    unknown = known.shuffled(np.random.default_rng(2))
    found = []
    for file in (known, unknown):
        trials = Trials(plan_of(ASKED), 400)
        worlds = worlds_of(ASKED, 8, Assumptions(file=file))
        assert all(len(peers) + len(test) == len(file) for peers, test in (world.people for world in worlds))
        trials.go_on(worlds)
        found.append(trials.forecast("", 2.0))
    assert found[0].low > 0.7 and found[0].low < found[0].auc < found[0].high
    assert found[1].auc == pytest.approx(0.5, abs=0.1)


def test_the_outlook_says_its_interval_and_whose_people_it_is_from() -> None:
    said = " ".join(Outlook(100, 1.0, 0.6, 0.45, 0.72, 0.1, 800).sentences())
    assert "expected ROC AUC is 0.60. In nine of ten of them it lies between 0.45 and 0.72." in said
    assert "100 made-up studies" in said
    from_file = " ".join(Outlook(100, 1.0, 0.6, 0.45, 0.72, 0.1, 800, True).sentences())
    assert "of 100 studies of last year's people" in from_file


def test_a_design_that_left_early_has_an_interval_as_wide_as_the_leaders() -> None:
    """Four trials have no interval of nine in ten."""
    leader, left = (Trials(plan_of(ASKED), 100) for _ in range(2))
    leader.aucs, left.aucs = [0.5 + number / 100 for number in range(32)], [0.6, 0.61, 0.62, 0.63]
    ahead, behind = leader.forecast("", 1.0), left.forecast("", 1.0, 0.55, leader)
    assert behind.high - behind.low == pytest.approx(ahead.high - ahead.low)
    assert behind.low < behind.auc == 0.55 < behind.high
