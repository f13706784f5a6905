"""The published model of a calibrated rule: its tables, its test, and what it says of belief and answers."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

from aggregator.protocols.additive.results import LearnedStudy
from aggregator.protocols.sum.part import SumPart, learned_from
from anon.errors import InvalidValue
from anon.protocols.consent_words import declared
from anon.protocols.models.belief import Belief
from anon.protocols.models.tables import Model, from_json
from anon.protocols.sum.rule import enough_for, residuals, rule_of, scores
from anon.protocols.sum.standing import RoundSum, arrangement_of
from tests.support.sums import RULE, manifest_of

STUDY = manifest_of(RULE)
MIDDLES = np.array([-1.25, -0.4, 0.25, 1.1])
NOISES = [one.sigma_squared * 2 for one in arrangement_of(STUDY).sums]


def learned(count: int, slope: float, corrections: tuple[float, ...] = (), seed: int = 3) -> LearnedStudy:
    """The model of so many people whose log-odds are a slope times their score, as the noise of two tellers shows it.
    `corrections`: the mean residual by each code."""
    spring, cards = np.random.default_rng(seed), rule_of(STUDY).cards
    bins = spring.integers(0, 4, count)
    yes = spring.random(count) < 1 / (1 + np.exp(-slope * MIDDLES[bins]))
    table = np.bincount(2 * bins + yes, minlength=8) * scores(cards).mark
    shape = residuals(cards)
    later = np.zeros(shape.length)
    later[: len(corrections)] = np.array(corrections) * count * shape.scale
    exact = [table, later, later]
    sums = []
    for one, noise in zip(exact, NOISES, strict=True):
        noisy = np.rint(one + spring.normal(0, float(noise) ** 0.5, len(one))).astype(int)
        sums.append(RoundSum(tuple(noisy.tolist()), count, noise))
    found = learned_from(STUDY, sums)
    assert isinstance(found, LearnedStudy)
    return found


def belief_of(found: LearnedStudy) -> Belief:
    assert found.model.belief is not None
    return found.model.belief


def test_a_rule_that_is_true_is_shown_and_most_of_it_is_declared() -> None:
    found = learned(5000, 1.0)
    model = found.model
    assert model.shown and model.chance == found.chance < 1e-6 and belief_of(found).heard < 0.2
    assert belief_of(found).members == 5000 > belief_of(found).enough and not belief_of(found).contradicted
    assert model.classifier == "additive"
    assert [table.features for table in model.tables] == [("age",), ("sleep",), ("cups",)]
    old, young = ({"age": age, "sleep": sleep, "cups": "some"} for age, sleep in ((90, 3), (10, 9)))
    assert model.predict(old).probability > 0.6 > 0.4 > model.predict(young).probability
    assert from_json(model.to_json()) == model


def test_a_rule_that_is_wrong_is_contradicted_and_turned_around() -> None:
    found = learned(5000, -1.0)
    assert belief_of(found).contradicted and belief_of(found).heard == 1.0 and found.model.shown
    old, young = ({"age": age, "sleep": sleep, "cups": "some"} for age, sleep in ((90, 3), (10, 9)))
    assert found.model.predict(old).probability < found.model.predict(young).probability
    assert "The answers contradict what was declared." in map(str, belief_of(found).sentences())


def test_few_members_leave_what_staff_believed() -> None:
    found = learned(60, 0.0)
    model = found.model
    assert not model.shown and model.predict({"age": 90, "sleep": 3, "cups": "some"}).positive is None
    assert not belief_of(found).contradicted and belief_of(found).against > 0.015
    assert model.tables[0].log_odds[2] > 0.2 > -0.2 > model.tables[0].log_odds[0]
    (said,) = [str(line) for line in belief_of(found).sentences() if "could" in str(line)]
    assert f"about {enough_for(STUDY, NOISES[0])} could" in said.replace(",", "")


def test_what_is_heard_of_a_feature_corrects_it() -> None:
    plain, moved = learned(5000, 1.0), learned(5000, 1.0, (0, 0, 0, 0, 0, 0.1))
    assert belief_of(moved).heard > belief_of(plain).heard + 0.1
    cups = moved.model.tables[2].log_odds
    assert max(cups) - min(cups) > 0.5 > max(plain.model.tables[2].log_odds)


def test_the_model_is_the_same_to_the_byte_each_time() -> None:
    assert learned(300, 0.5).model.to_json() == learned(300, 0.5).model.to_json()


@pytest.mark.slow
def test_models_of_noise_decide_for_the_likelier_label() -> None:
    """Of studies in which the score says nothing, one in two has a chance above one half."""
    found = [learned(400, 0.0, seed=seed) for seed in range(20)]
    assert {one.model.threshold == 0.5 for one in found if one.chance > 0.5} == {True}
    assert 3 < sum(one.chance > 0.5 for one in found) < 17


def test_the_report_says_how_much_is_declared_and_how_much_was_heard() -> None:
    found = learned(60, 0.0)
    values = SumPart().report(STUDY, found).values
    told, rest = map(str, belief_of(found).sentences())
    declared_part, heard = belief_of(found).shares
    said = f"Of the differences that this model sees between people, {declared_part} follow from what staff declared "
    assert re.match(rf"{said}beforehand of 2 features, and {heard} from the answers of \d+ members\.$", told)
    assert "as a whole: about" in rest
    assert values["belief"] == belief_of(found)
    assert values["partitions"] == []


@pytest.mark.slow
def test_consent_says_from_how_many_members_on_a_wrong_rule_is_found_out() -> None:
    (line,) = map(str, declared(STUDY))
    assert line.startswith("The model starts from what staff declared of 2 features, and answers correct it.")
    assert f"fewer than about {enough_for(STUDY, NOISES[0])} members it is mostly" in line.replace(",", "")


def test_a_belief_that_cannot_be_is_refused() -> None:
    for heard, members in ((1.5, 3), (0.5, -1)):
        with pytest.raises(InvalidValue, match="belief"):
            Belief(2, heard, members, 0.5, False, 100)


def test_a_share_that_is_not_quite_none_says_so() -> None:
    shares = [Belief(2, heard, 90, 0.5, False, 100).shares for heard in (0.0, 0.002, 0.04, 0.998, 1.0)]
    assert shares == [
        ("100 %", "0 %"), ("> 99 %", "< 1 %"), ("96 %", "4 %"), ("< 1 %", "> 99 %"), ("0 %", "100 %")
    ]  # fmt: skip


def test_models_without_a_rule_say_nothing_of_it() -> None:
    found = learned(60, 0.0).model
    assert isinstance(found, Model) and '"belief"' in found.to_json()
    assert '"belief"' not in learned_from(manifest_of(), [
        RoundSum((5,) * manifest_of().surveys[0].m, 20, Fraction(1))
    ]).results["model", 0].decode()  # fmt: skip
