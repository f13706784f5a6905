"""The declared score: unbiased, with the stated error, few false alarms also for a wrong guess, and power where true."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from aggregator.protocols.histogram.declared_score import SHARES, Estimate, ScoreTest, mean_sign, score_test
from aggregator.protocols.histogram.noise_test import FALSE_ALARM
from anon.ldp import SCALE, build, nano
from anon.protocols.histogram.one_bit import plus_share, scale
from anon.study.manifest import Survey, Window

TRIALS = 3000
MOST = FALSE_ALARM + 3 * (FALSE_ALARM * (1 - FALSE_ALARM) / TRIALS) ** 0.5


def bit(centre: float, epsilon: float) -> Survey:
    built = build("krr", 2, nano(epsilon))
    return Survey(0, "bit", ("score",), (2,), 2, "krr", built.p, built.q, built.epsilon, Window(0, 1),
                  signs=(-1, 1), centre=round(centre * SCALE))  # fmt: skip


def studies(
    cells: dict[tuple[int, int], float], guess: float, epsilon: float, people: int, seed: int = 1
) -> tuple[Estimate, ScoreTest]:
    """`TRIALS` studies at once. `cells`: the share of the people with each (b, label). Each report of a random person is
    a plus with one chance, so that their number is binomial: exactly what single packets would give."""
    generator = np.random.default_rng(seed)
    asked = bit(guess, epsilon)
    mechanism = asked.build()

    def counted(size: int, plus: float) -> np.ndarray:
        told = plus * mechanism.p / SCALE + (1 - plus) * mechanism.q / SCALE
        return generator.binomial(size, told, TRIALS)

    sizes = [round(people * share) for share in SHARES]
    both = sum(share * plus_share(asked, b, y) / SCALE for (b, y), share in cells.items())
    label = sum(share * plus_share(asked, 1, y) / SCALE for (_, y), share in cells.items())
    score = sum(share for (b, _), share in cells.items() if b > 0)
    scored = mean_sign(mechanism, counted(sizes[0], both), sizes[0], scale(asked))
    return scored, score_test(
        scored,
        mean_sign(mechanism, counted(sizes[1], label), sizes[1], scale(asked)),
        mean_sign(mechanism, counted(sizes[2], score), sizes[2]),
    )


def crossed(plus: float, rate: float, covariance: float = 0.0) -> dict[tuple[int, int], float]:
    """The shares of (b, label) with P(b = 1) = plus, P(label) = rate and this covariance of [b = 1] and label."""
    return {
        (b, y): (plus if b > 0 else 1 - plus) * (rate if y else 1 - rate) + covariance * b * (2 * y - 1)
        for b, y in product((-1, 1), (0, 1))
    }


@pytest.mark.parametrize("off", [-0.1, 0.0, 0.1])
@pytest.mark.parametrize("plus", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("people", "epsilon", "rate"), [(300, 0.5, 0.5), (2000, 1.0, 0.25), (5000, 4.0, 0.8)])
def test_a_score_that_says_nothing_is_rarely_shown(off: float, plus: float, people: int, epsilon: float, rate: float) -> None:
    """3,000 studies each, the guess off by as much as .1, b lopsided: at most .02, and three standard errors."""
    _, found = studies(crossed(plus, rate), rate + off, epsilon, people)
    assert found.shown.mean() <= MOST


def test_a_guess_taken_for_the_rate_would_raise_false_alarms() -> None:
    """The same test without the part that is taken off, so that the test above can fail."""
    scored, _ = studies(crossed(0.1, 0.25), 0.35, 4.0, 5000)
    nothing = Estimate(np.zeros(TRIALS), np.zeros(TRIALS))
    assert score_test(scored, nothing, nothing).shown.mean() > 0.5


@pytest.mark.parametrize("guess", [0.15, 0.25, 0.35])
def test_the_estimate_is_unbiased_and_its_error_is_stated(guess: float) -> None:
    """The covariance of b = +-1 with the label is twice that of [b = 1]; five standard errors of the mean."""
    _, found = studies(crossed(0.4, 0.25, 0.03), guess, 1.0, 2000)
    assert abs(found.value.mean() - 0.06) < 5 * found.value.std() / TRIALS**0.5
    assert 0.85 < found.value.std() / found.error.mean() <= 1.05


def test_what_is_true_is_shown_and_its_opposite_never() -> None:
    true, _ = (studies(crossed(0.4, 0.25, sign * 0.05), 0.25, 1.0, 2000)[1] for sign in (1, -1))
    false = studies(crossed(0.4, 0.25, -0.05), 0.25, 1.0, 2000)[1]
    assert true.shown.mean() > 0.4 and false.shown.mean() < 0.001


def test_the_chance_is_that_of_a_normal_beyond() -> None:
    one = score_test(*(Estimate(np.array([value]), np.array([variance])) for value, variance in ((0.2, 0.01), (0.1, 0.04), (0.5, 0.02))))
    assert one.value == pytest.approx([0.15])
    assert one.error == pytest.approx([(0.01 + 0.25 * 0.04 + 0.01 * 0.02) ** 0.5])
    assert one.chance == pytest.approx([0.14550], abs=2e-4)


def test_nothing_is_shown_of_no_report() -> None:
    mechanism = bit(0.5, 1.0).build()
    told, none = mean_sign(mechanism, np.array([90]), 100), mean_sign(mechanism, np.array([0]), 0)
    for three in ((none, told, told), (told, none, told), (told, told, none)):
        assert score_test(*three).chance == 1.0
