"""The declared score: unbiased, with the stated error, few false alarms also for a wrong guess, and power where
true."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from attrs import evolve

from aggregator.lab.simulation.people import FeatureColumn, People
from aggregator.lab.simulation.simulate import NO_KEYS, run_once
from aggregator.protocols.additive.declared_score import (
    ScoreEstimate,
    ScoreTest,
    declared_score,
    mean_sign,
    score_test,
)
from aggregator.protocols.additive.moments import BitTally
from aggregator.protocols.additive.noise_test import FALSE_ALARM, LEVEL
from anon.errors import Malformed
from anon.ldp import SCALE, build, nano
from anon.protocols.contract import Record
from anon.protocols.histogram.answers import answer_map
from anon.protocols.histogram.declared import SHARES, directions, far_centre, score_signs
from anon.protocols.histogram.describe import packet_kinds
from anon.protocols.histogram.one_bit import bit_parameters, centre_of, plus_share, scale
from anon.protocols.models.tables import from_json
from anon.protocols.registry import check_study, protocol_of
from anon.protocols.resolve import resolve
from anon.study.features import Feature
from anon.study.manifest import Manifest, Survey, Window
from tests.support.protocols import parse_manifest, parse_proposal
from tests.support.world import directed, study_text

TRIALS = 3000
MOST = FALSE_ALARM + 3 * (FALSE_ALARM * (1 - FALSE_ALARM) / TRIALS) ** 0.5


def bit(centre: int, epsilon: float) -> Survey:
    built = build("krr", 2, nano(epsilon))
    return Survey(0, "bit", ("score",), (2,), 2, "krr", built.p, built.q, built.epsilon, Window(0, 1),
                  parameters=bit_parameters(centre, (-1, 1)))  # fmt: skip


def studies(
    cells: dict[tuple[int, int], float], guess: float, epsilon: float, people: int, seed: int = 1
) -> tuple[list[ScoreEstimate], ScoreTest]:
    """`TRIALS` studies at once. `cells`: the share of the people with each (b, label). Each report of a random person
    is a plus with one chance, so that their number is binomial: exactly what single packets would give."""
    generator = np.random.default_rng(seed)
    near = round(guess * SCALE)
    far, read = far_centre(near), []
    for centre, share, alone in zip((near, far, near), SHARES, (False, False, True), strict=True):
        asked = bit(centre, epsilon)
        plus = sum(part * plus_share(asked, 1 if alone else b, y) / SCALE for (b, y), part in cells.items())
        told = plus * asked.p / SCALE + (1 - plus) * asked.q / SCALE
        size = round(people * share)
        read.append(mean_sign(asked.build(), generator.binomial(size, told, TRIALS), size, scale(asked)))
    return read, score_test(*read, (far - near) / SCALE)


def shown(found: ScoreTest) -> float:
    return float(np.mean(found.chance <= LEVEL))


def crossed(plus: float, rate: float, covariance: float = 0.0) -> dict[tuple[int, int], float]:
    """The shares of (b, label) with P(b = 1) = plus, P(label) = rate and this covariance of [b = 1] and label."""
    return {
        (b, y): (plus if b > 0 else 1 - plus) * (rate if y else 1 - rate) + covariance * b * (2 * y - 1)
        for b, y in product((-1, 1), (0, 1))
    }


@pytest.mark.parametrize("off", [-0.1, 0.0, 0.1])
@pytest.mark.parametrize("plus", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("people", "epsilon", "rate"), [(300, 0.5, 0.5), (2000, 1.0, 0.25), (5000, 4.0, 0.8)])
def test_a_score_that_says_nothing_is_rarely_shown(
    off: float, plus: float, people: int, epsilon: float, rate: float
) -> None:
    """3,000 studies each, the guess off by as much as .1, b lopsided: at most .02, and three standard errors."""
    _, found = studies(crossed(plus, rate), rate + off, epsilon, people)
    assert shown(found) <= MOST


def test_a_guess_taken_for_the_rate_would_raise_false_alarms() -> None:
    """The same test without reading the line at the rate, so that the test above can fail."""
    read, _ = studies(crossed(0.1, 0.25), 0.35, 4.0, 5000)
    nothing = ScoreEstimate(np.zeros(TRIALS), np.zeros(TRIALS))
    assert shown(score_test(read[0], read[1], nothing, 0.65)) > 0.5


@pytest.mark.parametrize("guess", [0.15, 0.25, 0.35])
def test_the_estimate_is_unbiased_and_its_error_is_stated(guess: float) -> None:
    """The covariance of b = +-1 with the label is twice that of [b = 1]; five standard errors of the mean."""
    _, found = studies(crossed(0.4, 0.25, 0.03), guess, 1.0, 2000)
    assert abs(found.value.mean() - 0.06) < 5 * found.value.std() / TRIALS**0.5
    assert 0.85 < found.value.std() / found.error.mean() <= 1.05


def test_what_is_true_is_shown_and_its_opposite_never() -> None:
    true, false = (studies(crossed(0.4, 0.25, sign * 0.05), 0.25, 1.0, 2000)[1] for sign in (1, -1))
    assert shown(true) > 0.4 and shown(false) < 0.001


def test_the_chance_is_that_of_a_normal_beyond() -> None:
    """The line through .2 and -.1, .6 apart, is read at .1: .15. Its slope says that b leans by .5."""
    pairs = ((0.2, 0.01), (-0.1, 0.02), (0.1, 0.04))
    one = score_test(*(ScoreEstimate(np.array([value]), np.array([variance])) for value, variance in pairs), 0.6)
    assert one.value == pytest.approx([0.15])
    error = ((5 / 6) ** 2 * 0.01 + (1 / 6) ** 2 * 0.02 + 0.25 * 0.04) ** 0.5
    assert one.error == pytest.approx([error])
    assert one.chance == pytest.approx([0.5 * math.erfc(0.15 / error / 2**0.5)])


STUDY = directed("score")


def published(text: str = STUDY) -> Manifest:
    return resolve(parse_proposal(text), NO_KEYS, 0, lambda below: 0)


def test_the_sum_of_directions_has_a_sign_in_every_cell() -> None:
    number = Feature("n", "numeric", "N.", "SELECT 1", "own", range=(0, 9), cuts=(1, 2), expects=(-1,))
    choice = Feature("c", "categorical", "C.", "SELECT 1", "a", categories=("a", "b"), expects=(1, 0))
    assert directions(number) == (1, 0, -1, 0) and directions(choice) == (1, 0)
    assert score_signs((number, choice)) == (1, 1, 1, -1, -1, -1, 1, -1)


def test_a_study_of_the_score_asks_three_questions_and_a_peer_answers_them() -> None:
    manifest = published()
    assert parse_manifest(manifest.to_bytes()) == manifest
    near, far, label = manifest.surveys
    assert near.features == far.features == ("sex", "age") and label.features == ("sex",)
    assert centre_of(near) < centre_of(far) == far_centre(centre_of(near)) and centre_of(label) == centre_of(near)
    answered = answer_map(manifest, near, {})
    for age, sex, income, sign in (
        (60, "Male", ">50K", 1),
        (40, "Male", "<=50K", 1),
        (60, "Female", ">50K", -1),
        (20, "Female", "<=50K", -1),
    ):
        answer = answered(Record({"age": age, "sex": sex}, income))
        assert answer.value == 2 * (sign > 0) + (income == ">50K")
    said = [kind.asks for kind in packet_kinds(manifest)]
    assert "point to a yes, as staff expect" in said[0]
    assert "“sex”, “age”: do they point to a yes; with “income”" in packet_kinds(manifest)[0].questions


def test_a_peer_refuses_signs_that_nobody_declared() -> None:
    """One bit costs the same epsilon whatever it asks; but then consent would say something else than is asked."""
    manifest = published()
    protocol_of(manifest).check(manifest)
    near = manifest.surveys[0]
    turned = (*near.parameters[:-1], 1 - near.parameters[-1])
    others = (evolve(near, parameters=turned), evolve(near, features=near.features[::-1], cards=near.cards[::-1]))
    for other in others:
        with pytest.raises(Malformed, match="not what staff expect"):
            protocol_of(manifest).check(evolve(manifest, surveys=(other, *manifest.surveys[1:])))
    for parameters in (near.parameters[:-1], (0, *near.parameters[1:]), (2**64, *near.parameters[1:]), ()):
        with pytest.raises(Malformed):
            check_study(evolve(manifest, surveys=(evolve(near, parameters=parameters), *manifest.surveys[1:])))


@pytest.mark.parametrize(("old", "new", "said"), [
    ("\nexpects = 1\n", "\n", "at least two features"),
    ("cuts = [30, 50]", "bins = 3", "declared cuts"),
    (
        'categories = ["Female", "Male"]',
        f"categories = {[*map(str, range(1500)), 'Male']}".replace("'", '"'),
        "categories",
    ),
    ("cuts = [30, 50]", f"cuts = {list(range(20, 60))}", ""),
])
def test_a_study_that_cannot_ask_it_is_refused(old: str, new: str, said: str) -> None:
    text = STUDY.replace(old, new)
    assert text != STUDY
    if not said:
        assert published(text).surveys
        return
    with pytest.raises(Malformed, match=said):
        parse_proposal(text)


@pytest.mark.parametrize(("going_with", "true"), [(0.9, True), (0.0, False)])
def test_a_simulated_study_says_if_what_staff_expect_is_true(going_with: float, true: bool) -> None:
    generator = np.random.default_rng(5)
    sexes, ages = generator.integers(2, size=4000), generator.integers(20, 80, size=4000)
    labels = np.where(generator.random(4000) < going_with, sexes, generator.integers(2, size=4000))
    people = People(
        {"sex": FeatureColumn(("Female", "Male"), sexes), "age": FeatureColumn(tuple(range(20, 80)), ages - 20)}, labels
    )
    learned = run_once(published(), people, generator)
    assert learned.declared is not None and learned.declared.shown is true
    assert learned.declared.reports == 4000 and not learned.learnable
    assert not any(value for table in learned.model.tables for value in table.log_odds), "it makes no model"
    said = from_json(learned.model.to_json()).score
    assert (
        said is not None
        and said.shown is true
        and said.chance == learned.declared.chance
        and said.error == learned.declared.error
    )
    assert run_once(published(study_text()), people, generator).declared is None


def test_nothing_is_shown_of_no_report() -> None:
    mechanism = bit(SCALE // 2, 1.0).build()

    def tallied(n: int, several: bool, signs: tuple[int, ...]) -> BitTally:
        return BitTally(0, "one", signs, 0.3, mechanism, np.array([0, n]), n, several)

    for empty in range(3):
        sizes = [0 if number == empty else 100 for number in range(3)]
        near, far = (tallied(size, True, (1, -1)) for size in sizes[:2])
        found = declared_score([near, far, tallied(sizes[2], False, (1, 1))])
        assert found is not None and found.chance == 1.0 and found.reports == 200
        assert found.published().error is None, "no JSON has an infinite number"
    assert declared_score([]) is None
