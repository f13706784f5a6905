"""Declared directions: the prior and its test against a second computation, calibration, false alarms, wrong signs."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from aggregator.lab.simulation.draws import perturbed_counts
from aggregator.protocols.additive import noise_test
from aggregator.protocols.additive.learner import (
    SHIFTS,
    TAUS,
    Measurements,
    _posterior,
    declared_direction,
    fit,
    measurements,
)
from aggregator.protocols.additive.model import coordinates_of
from aggregator.protocols.additive.moments import Coordinates, NoisyMoments, gather
from aggregator.protocols.additive.noise_test import (
    DECLARED,
    FALSE_ALARM,
    LARGEST_LEAN,
    LEVEL,
    WhitenedMeasurements,
    p_value,
)
from aggregator.protocols.additive.reconstruct import SurveyTally
from anon.ldp import build, nano
from anon.study.features import Feature
from tests.support.tries import every

SIZES = TAUS[1:]


def a_case(seed: int, rows: int = 4, effects: int = 5) -> tuple[np.ndarray, ...]:
    """Measured values, design, prior covariance, noise and direction, all at random and of the sizes of a real
    study."""
    generator = np.random.default_rng(seed)
    design = generator.normal(size=(rows, effects)) * 0.3
    root = generator.normal(size=(effects, effects)) / 2
    noise_root = generator.normal(size=(rows, rows)) * 0.02
    noise = noise_root @ noise_root.T + np.eye(rows) * 1e-4
    direction = generator.choice([-1.0, 0.0, 1.0], effects)
    values = design @ (0.05 * direction) + generator.normal(size=rows) * 0.03
    return values, design, root @ root.T + np.eye(effects), noise, direction


def asked_of(case: tuple[np.ndarray, ...]) -> tuple[Measurements, WhitenedMeasurements]:
    values, design, kernel, noise, direction = case
    moments = gather(Coordinates(("unused",), (2,), (False,), (False,)), [], [], {}, 0.5)
    return (
        Measurements(moments, design, values, np.eye(len(kernel)), {}, kernel, direction),
        WhitenedMeasurements.of(values, design, kernel, noise, direction),
    )


def reversed_chance(case: tuple[np.ndarray, ...]) -> float:
    """The prior chance of all signs reversed, in the measurements' own coordinates: .02 for each standard error."""
    _, design, kernel, noise, direction = case
    seen = design @ direction
    others = 0.16**2 * design @ kernel @ design.T + noise
    return float(1 / (1 + np.exp(min(0.02 * np.sqrt(seen @ np.linalg.inv(others) @ seen), LARGEST_LEAN))))


def priors(case: tuple[np.ndarray, ...]) -> list[tuple[float, float, float]]:
    """(weight, mu, tau) as the method states them: 1/2, and 1/8 and 3/8, of which a part is for all signs reversed."""
    along, back = 0.375 / len(SIZES) / len(SHIFTS), reversed_chance(case)
    return [
        (0.5, 0.0, 0.0),
        *((0.125 / len(SIZES), 0.0, tau) for tau in SIZES),
        *((along * (1 - back), mu, tau) for mu in SHIFTS for tau in SIZES),
        *((along * back, -mu, tau) for mu in SHIFTS for tau in SIZES),
    ]


def by_densities(case: tuple[np.ndarray, ...], values: np.ndarray) -> list[float]:
    """Log weight times density of the values under each prior, in their own coordinates."""
    _, design, kernel, noise, direction = case
    return [
        float(
            np.log(weight)
            + multivariate_normal(mu * design @ direction, tau**2 * design @ kernel @ design.T + noise).logpdf(values)
        )
        for weight, mu, tau in priors(case)
    ]


def tied(weights: np.ndarray, taus: np.ndarray) -> np.ndarray:
    """All weight of a tau above 0 as effects around 0 share it out, which come first after no effect."""
    found, any_effect = weights.copy(), 1 - weights[0]
    around_zero = weights[1 : 1 + len(SIZES)] / weights[1 : 1 + len(SIZES)].sum()
    for tau, share in zip(SIZES, around_zero, strict=True):
        found[taus == tau] *= any_effect * share / weights[taus == tau].sum()
    return found


@pytest.mark.parametrize("seed", range(6))
def test_the_posterior_mean_is_that_of_the_mixture(seed: int) -> None:
    case = a_case(seed)
    values, design, kernel, noise, direction = case
    logs = by_densities(case, values)
    weights = np.exp(np.array(logs) - logsumexp(logs))
    weights = tied(weights, np.array([tau for _, _, tau in priors(case)]))
    means, spreads = [], []
    for _, mu, tau in priors(case):
        across = tau**2 * kernel @ design.T @ np.linalg.inv(tau**2 * design @ kernel @ design.T + noise)
        means.append(mu * direction + across @ (values - mu * design @ direction))
        spreads.append(tau**2 * (kernel - across @ design @ kernel))
    mean = weights @ np.array(means)
    spread = sum(
        weight * (within + np.outer(one - mean, one - mean))
        for weight, within, one in zip(weights, spreads, means, strict=True)
    )
    found, effects, covariance = _posterior(*asked_of(case))
    assert found == pytest.approx(weights, abs=1e-9)
    assert effects == pytest.approx(mean, abs=1e-9)
    assert covariance == pytest.approx(spread, abs=1e-9)


@pytest.mark.parametrize("seed", every(4, range(4)))
def test_the_chance_is_that_of_values_drawn_as_noise(seed: int) -> None:
    """20,000 draws of the values themselves, and densities in place of whitened coordinates; 5 standard errors."""
    case = a_case(seed)
    _, _, _, noise, direction = case
    generator = np.random.default_rng(seed + 100)
    values = np.linalg.cholesky(noise) @ generator.normal(size=len(noise)) * 1.3
    drawn = generator.multivariate_normal(np.zeros(len(noise)), noise, 20_000)
    _, design, kernel, _, _ = case

    def statistic(at: np.ndarray) -> np.ndarray:
        logs = [
            np.log(weight)
            + multivariate_normal(mu * design @ direction, tau**2 * design @ kernel @ design.T + noise).logpdf(at)
            for weight, mu, tau in priors(case)[1:]
        ]
        found: np.ndarray = logsumexp(logs, axis=0) - multivariate_normal(np.zeros(len(noise)), noise).logpdf(at)
        return found

    expected = float(np.mean(statistic(drawn) >= statistic(values[None, :])))
    found = p_value(WhitenedMeasurements.of(values, design, kernel, noise, direction), SIZES, SHIFTS)
    assert abs(found - expected) < 5 * np.sqrt(max(expected * (1 - expected), 1e-3) * (1 / 20_000 + 1 / 8_000))


@pytest.mark.parametrize("seed", range(3))
def test_the_statistic_is_the_average_bayes_factor(seed: int) -> None:
    """Of any effect against none, whose prior weight is one half, each prior with its own weight."""
    case = a_case(seed)
    logs = np.array(by_densities(case, case[0]))
    found = noise_test._average(asked_of(case)[1].z[None, :], asked_of(case)[1], SIZES, SHIFTS)
    assert found == pytest.approx([logsumexp(logs[1:]) - logs[0]])


def test_sizes_far_beyond_a_float_are_averaged_soundly() -> None:
    values, design, kernel, noise, direction = a_case(1)
    case = (values * 1e4, design, kernel, noise, direction)
    weights, effects, _ = _posterior(*asked_of(case), certain=True)
    assert np.isfinite(effects).all() and weights.sum() == pytest.approx(1)
    assert p_value(asked_of(case)[1], SIZES, SHIFTS) >= 0


def test_without_a_direction_nothing_changes() -> None:
    values, design, kernel, noise, _ = a_case(2)
    plain = WhitenedMeasurements.of(values, design, kernel, noise)
    zeros = WhitenedMeasurements.of(values, design, kernel, noise, np.zeros(len(kernel)))
    assert p_value(plain, SIZES) == p_value(zeros, SIZES, SHIFTS)
    assert not zeros.directed


def numeric(name: str, missing: str | float = 0.0, expects: tuple[int, ...] = ()) -> Feature:
    return Feature(name, "numeric", name, "SELECT 1", missing, range=(0, 3), cuts=(0, 1), expects=expects)


def choice(name: str, expects: tuple[int, ...] = ()) -> Feature:
    return Feature(name, "categorical", name, "SELECT 1", "a", categories=("a", "b"), expects=expects)


def test_a_direction_is_a_line_over_bins_or_the_signs_of_categories() -> None:
    features = (
        numeric("up", expects=(1,)), numeric("down", "own", (-1,)), choice("pick", (1, -1)), choice("none"),
    )  # fmt: skip
    guessed = {"up": (0.5, 0.25, 0.25), "down": (0.25, 0.25, 0.25, 0.25), "pick": (0.75, 0.25)}
    moments = gather(coordinates_of(features), [], [], guessed, 0.5)
    found = declared_direction(moments)
    places = moments.coordinates.places
    assert found[places["up"]] == pytest.approx([-0.75, 0.25, 1.25])
    assert found[places["down"]] == pytest.approx([1, 0, -1, 0])
    assert found[places["pick"]] == pytest.approx([0.5, -1.5])
    assert not found[places["none"]].any()


FEATURES = tuple(choice(name) for name in ("one", "two", "three", "four", "five", "six"))
EFFECT = 0.06


def a_study(seed: int, effect: float, epsilon: float = 1.0, people: int = 1500) -> NoisyMoments:
    """Six features of two categories, each of which moves the label by `effect` up or down, asked in tables."""
    generator = np.random.default_rng(seed)
    place = generator.integers(0, 2, (len(FEATURES), people))
    left = generator.random(people) < 0.5 + effect * (2 * place - 1).sum(axis=0)
    asked = generator.integers(0, len(FEATURES), people)
    built = build("auto", 4, nano(epsilon))
    tables = []
    for number, feature in enumerate(FEATURES):
        mine = asked == number
        truth = np.bincount(place[number][mine] * 2 + left[mine], minlength=4).astype(np.int64)
        counts = perturbed_counts(built, truth, generator)
        tables.append(SurveyTally(number, (feature.name,), (2,), built, counts, int(mine.sum())))
    return gather(coordinates_of(FEATURES), tables, [], {}, 0.5)


def with_signs(moments: NoisyMoments, signs: tuple[int, ...]) -> NoisyMoments:
    expects = tuple((-sign, sign) for sign in signs)
    return evolve(moments, coordinates=evolve(moments.coordinates, expects=expects))


def mean_error(studies: list[NoisyMoments], signs: tuple[int, ...]) -> float:
    truth = np.tile([-EFFECT, EFFECT], len(FEATURES))
    return float(np.mean([np.sum((fit(with_signs(one, signs)).effects - truth) ** 2) for one in studies]))


@pytest.mark.slow
def test_right_signs_help_and_wrong_ones_cost_nothing_where_answers_speak() -> None:
    """Features that go together one way or the other are found together; all wrong is one of the ways. In 300 studies
    errors are .77 and .82 of those without signs, with deviations of .05 in 120 of them."""
    studies = [a_study(seed, EFFECT) for seed in range(120)]
    none, right = mean_error(studies, (0,) * 6), mean_error(studies, (1,) * 6)
    wrong = mean_error(studies, (-1,) * 6)
    assert right < wrong < none and right < 0.95 * none


def test_turning_all_signs_turns_the_prior_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neither way is likelier beforehand, all signs turned around are the same model."""
    one = a_study(1, EFFECT)
    right, wrong = fit(with_signs(one, (1,) * 6)), fit(with_signs(one, (-1,) * 6))
    assert right.effects != pytest.approx(wrong.effects)
    monkeypatch.setattr(noise_test, "LEAN", 0.0)
    noise_test._drawn.cache_clear()
    right, wrong = fit(with_signs(one, (1,) * 6)), fit(with_signs(one, (-1,) * 6))
    noise_test._drawn.cache_clear()
    assert right.effects == pytest.approx(wrong.effects) and right.chance == pytest.approx(wrong.chance, abs=1e-12)


def test_a_study_that_cannot_tell_which_way_hardly_leans() -> None:
    """Answers of no weight leave both ways alike; many answers leave the declared way a prior chance of .6."""
    silent, clear = a_study(1, EFFECT, 0.01, 60), a_study(3, EFFECT, 8.0, 60_000)
    found = [measurements(with_signs(one, (1,) * 6)).seen().reversed for one in (silent, a_study(1, EFFECT), clear)]
    assert 0.499 < found[0] < 0.5 and found[0] > found[1] > found[2]
    assert found[2] == pytest.approx(1 / (1 + np.exp(LARGEST_LEAN)))


def test_the_lean_says_nothing_of_the_answers() -> None:
    """The prior chance is the same for any values, so that the statistic was fixed before they came."""
    asked, seen = asked_of(a_case(5))
    assert seen.of_others(asked.values * -3 + 1).reversed == seen.reversed < 0.5


def test_sizes_are_those_that_are_found_without_directions() -> None:
    """A direction moves weight between mu and never between tau, however well it explains the measurements."""
    case = a_case(3)
    plain = asked_of((*case[:4], np.zeros(5)))
    weights, told = _posterior(*plain, certain=True)[0], _posterior(*asked_of(case), certain=True)[0]
    by_size = told[1:].reshape(-1, len(SIZES)).sum(axis=0)
    assert by_size == pytest.approx(weights[1:]) and told[1 : 1 + len(SIZES)] != pytest.approx(
        (1 - DECLARED) * weights[1:]
    )


def test_many_answers_overrule_wrong_signs() -> None:
    """With 60,000 people at epsilon 8 each effect has its own sign and nearly its own size, whatever was declared."""
    one = a_study(3, EFFECT, 8.0, 60_000)
    assert fit(with_signs(one, (-1,) * 6)).effects[1::2] == pytest.approx(EFFECT, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("signs", [(1,) * 6, (1, -1, 1, -1, 1, -1)])
def test_a_study_without_a_signal_is_rarely_shown(signs: tuple[int, ...]) -> None:
    """Of 200 studies; at the level of the test 10 or more have a chance below 1e-3, at a level of 8% one of .96."""
    shown = sum(fit(with_signs(a_study(seed, 0.0), signs)).chance <= LEVEL for seed in range(200))
    assert LEVEL < FALSE_ALARM
    assert shown <= 9


@pytest.mark.slow
def test_more_studies_are_shown_with_right_signs() -> None:
    studies = [a_study(seed, EFFECT) for seed in range(40)]
    plain, told = (
        sum(fit(with_signs(one, signs)).chance <= LEVEL for one in studies) for signs in ((0,) * 6, (1,) * 6)
    )
    assert told > plain


@pytest.mark.slow
def test_effects_are_as_uncertain_as_stated() -> None:
    """With effects of the sizes that the prior knows, their mean squared error is the stated variance within a half."""
    squares, stated = [], []
    for seed in range(60):
        effect = float(np.random.default_rng(seed).choice([0.02, 0.04, 0.08]))
        asked = measurements(with_signs(a_study(seed + 500, effect), (1,) * 6))
        _, effects, spread = _posterior(asked, asked.seen())
        contrast = np.kron(np.eye(len(FEATURES)), [-0.5, 0.5])
        squares.append(float(np.mean((contrast @ effects - effect) ** 2)))
        stated.append(float(np.mean(np.diag(contrast @ spread @ contrast.T))))
    assert 0.5 < np.mean(squares) / np.mean(stated) < 1.5


def test_the_draws_are_the_same_for_every_direction() -> None:
    """Equal tallies give an equal answer; the direction changes the statistic and not the draws."""
    case = a_case(4)
    assert p_value(asked_of(case)[1], SIZES, SHIFTS) == p_value(asked_of(case)[1], SIZES, SHIFTS)
    assert noise_test._standard_normal(4) is noise_test._standard_normal(4)
