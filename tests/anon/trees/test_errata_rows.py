"""A test for each erratum of Asplund and Froystad (2015) and Fioretto and Van Hentenryck (2019): numbers are those of
docs/errata.md."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable
from fractions import Fraction
from math import exp, expm1, log, sqrt
from pathlib import Path

import numpy as np
import pytest

from anon.ldp.epsilon import nano
from anon.noise import Coins
from anon.protocols.trees.attributes import LabelledRow, NumberAttribute, TextAttribute, whole
from anon.protocols.trees.drawing import leaves
from anon.protocols.trees.growing import TreePlan, grown, scores
from anon.protocols.vectors.logistic import fit
from benchmarks.parties.groups import PEERS, RECORDS, summed
from benchmarks.parties.noise import chance
from benchmarks.parties.pfds_models import STRENGTH, fitted, perturbed
from benchmarks.parties.printed import COUNTED, leaves_expected, printed

ROOT = Path(__file__).resolve().parents[3]


def stream(seed: object) -> Callable[[int], bytes]:
    numbers = iter(range(100_000))
    return lambda size: hashlib.shake_128(f"{seed} {next(numbers)}".encode()).digest(size)


def test_every_erratum_of_the_two_tables_has_a_test() -> None:
    text = (ROOT / "docs/errata.md").read_text("utf-8")
    titles = {"Asplund and Frøystad (2015)": "groups", "Fioretto and Van Hentenryck (2019)": "pfds"}
    for title, name in titles.items():
        part = text.partition(f"\n## Errata of {title}\n")[2].partition("\n## ")[0]
        listed = [int(number) for number in re.findall(r"^\| (\d+) \|", part, re.MULTILINE)]
        tested = {int(found[1]) for test in globals() if (found := re.match(rf"test_{name}_(\d+)_", test))}
        assert listed == sorted(tested) == list(range(1, len(listed) + 1)) != []


# Asplund and Froystad


def _apart(length: float, strength: float) -> float:
    """By how much one record's label moves a peer's minimum of the sum of losses, where all others say nothing."""
    rows = np.zeros((RECORDS, 1))
    rows[0] = length
    ends = [summed(rows, np.array([label, *[1.0] * (RECORDS - 1)]), strength)[0] for label in (-1.0, 1.0)]
    return float(ends[1] - ends[0])


@pytest.mark.parametrize("strength", [0.5, 4.0])
def test_groups_1_a_sum_of_losses_moves_far_more_than_the_noise_is_for(strength: float) -> None:
    """One coordinate alone, a record of norm 1, and the mean of ten peers: five times epsilon and more."""
    scale = 2 / (RECORDS * strength)
    assert _apart(1.0, strength) / PEERS / scale > 5
    # In the mean form the same record moves by no more than what is printed.
    rows = [[1.0], *[[0.0]] * (RECORDS - 1)]
    ends = [fit(rows, [label, *[1] * (RECORDS - 1)], Fraction(strength)) for label in (0, 1)]
    assert ends[1][0] - ends[0][0] <= scale


def test_groups_2_coordinates_of_laplace_noise_need_the_l1_norm() -> None:
    """A move of L2 norm 1 along the diagonal of 124 columns has L1 norm sqrt(124), and so much is told."""
    step, scale = 1 / sqrt(124), 1.0
    density = [exp(-abs(1.0 - at) / scale) for at in (0.0, step)]
    assert 124 * log(density[1] / density[0]) == pytest.approx(sqrt(124))


def test_groups_3_longer_records_move_the_minimum_further() -> None:
    """The bound 2 / (n lambda) is for records of norm 1. In the mean form, one of norm 3.9 moves it by more."""
    strength, length = Fraction(4), 3.9
    rows = [[length], *[[0.0]] * (RECORDS - 1)]
    ends = [fit(rows, [label, *[1] * (RECORDS - 1)], strength) for label in (0, 1)]
    assert ends[1][0] - ends[0][0] > 2 / (RECORDS * strength)


def test_groups_4_where_the_descent_ends_is_not_the_minimum() -> None:
    """The first full step changes the objective by less than .01, so descent ends: further off than what is printed."""
    strength, step = 4.0, 0.01
    labels = np.array([1.0] * 151 + [-1.0] * 149)
    rows = np.full((RECORDS, 1), 0.9)

    def objective(weight: float) -> float:
        return float(np.logaddexp(0, -labels * 0.9 * weight).sum() + strength * weight**2)

    slope = 0.9 * float(labels.sum()) / 2
    first = step * slope
    assert 0 < objective(0) - objective(first) < 0.01
    assert abs(summed(rows, labels, strength)[0] - first) > 2 / (RECORDS * strength)


def test_groups_5_ranges_of_the_data_move_every_peers_rows() -> None:
    """Formula 5.1 with everybody's ends: another peer's largest value halves a row that stayed as it was."""
    own, others = 40.0, [0.0, 50.0, 80.0]
    ends = [(own - min(all_)) / (max(all_) - min(all_)) for all_ in ([own, *others], [own, *others, 160.0])]
    assert ends == [0.5, 0.25]


# Fioretto and Van Hentenryck


@pytest.mark.slow
def test_pfds_1_a_tree_of_the_census_as_printed_has_more_than_100_000_leaves() -> None:
    """6 numbers and 8 texts of Adult, in the mean; with epsilon 1 the cut sizes sum to 2.3 million rows."""
    expected = leaves_expected(6, (9, 16, 7, 15, 6, 5, 2, 42))
    assert round(expected) == 193_152
    # The law of an empty leaf's size: two Laplace counts of scale 16.
    shares = np.exp(-np.abs(np.arange(-600, 601)) / 16)
    law = np.convolve(shares / shares.sum(), shares / shares.sum())
    beyond = float(law @ np.maximum(np.arange(-1200, 1201), 0))
    assert beyond == pytest.approx(12, abs=0.05)
    assert beyond * expected > 2_300_000 and 128 * beyond < 1600
    # The code itself: with four texts of the census a tree has many times 128 leaves.
    plan = TreePlan(tuple(TextAttribute(name, tuple(map(str, range(size)))) for name, size in
                          (("a", 16), ("b", 9), ("c", 7), ("d", 2))), 2, nano(1))  # fmt: skip
    assert len([*leaves(printed([], plan, Coins(stream(1))), whole(plan.attributes))]) == 16 * 9 * 7 * 2


def test_pfds_2_a_record_replaced_costs_twice_what_is_printed() -> None:
    """It leaves one leaf and joins another: the likelihoods of the two counts move by epsilon each."""
    share, scale = Fraction(1, 4), 4.0
    leaves_there, joins = exp(-abs(1 - 1) / scale) / exp(-abs(1 - 0) / scale), exp(0) / exp(-1 / scale)
    assert log(leaves_there * joins) == pytest.approx(2 * share)
    plan = TreePlan((NumberAttribute("x", (0, 1, 2)),), 2, nano("0.8"))
    assert plan.left_at(0) == Fraction(4, 10)


def test_pfds_3_the_root_is_counted_twice() -> None:
    """Its sum is that of each level below. Without it the other counted levels have half as much budget again."""
    assert COUNTED == 3
    plan = TreePlan((NumberAttribute("x", (0, 1, 2)),), 2, nano(1), "add-remove")
    people = [LabelledRow((0,), 0)] * 300
    assert grown(people, plan, Coins(stream(2))).root.counts == ()
    assert Fraction(1, COUNTED - 1) / Fraction(1, COUNTED) == Fraction(3, 2)


def test_pfds_4_candidates_from_the_data_tell_them() -> None:
    """Cuts at values that occur name them. Ours are drawn from the declared edges before a record is looked at."""
    attribute = NumberAttribute("x", tuple(range(33)))
    assert [*inspect.signature(attribute.split).parameters] == ["active", "coins"]
    assert attribute.split((1 << 32) - 1, Coins(stream(3))) == attribute.split((1 << 32) - 1, Coins(stream(3)))


def test_pfds_5_the_final_model_has_the_agents_own_records_bare() -> None:
    """Two agents with one record apart have different final models from the same shared rows: no noise is between."""
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    models = [fitted("linear", rows, np.array([1.0, -1.0, label])) for label in (1.0, -1.0)]
    assert np.abs(models[0] - models[1]).max() > 0.1


def test_pfds_6_the_choice_of_a_split_may_have_twice_the_rate() -> None:
    """No record lowers the Max operator. So exp(epsilon u) costs epsilon when a record is put in: searched exactly."""
    epsilon, candidates = 0.7, [0b0001, 0b0011, 0b0111]
    worst = 0.0
    for place in range(4):
        for label in (0, 1):
            before = [LabelledRow((spot,), kind) for spot, kind in ((0, 0), (1, 1), (3, 0), (3, 1))]
            chances = []
            for some in (before, [*before, LabelledRow((place,), label)]):
                weights = [exp(epsilon * score) for score in scores(some, 2, 0, candidates)]
                chances.append([weight / sum(weights) for weight in weights])
            worst = max(worst, *(abs(log(a / b)) for a, b in zip(*chances, strict=True)))
    assert epsilon / 2 < worst <= epsilon


def test_pfds_7_the_printed_noise_of_objective_perturbation_grows_with_epsilon() -> None:
    """A Gamma norm of rate 2 / (n lambda epsilon) has the mean d n lambda epsilon / 2. Ours falls with epsilon."""
    size, count = 5, 300
    printed_means = [size / (2 / (count * STRENGTH * epsilon)) for epsilon in (0.1, 1.0)]
    assert printed_means[0] < printed_means[1]
    spring = chance(1)
    rows = spring.uniform(0, 1 / sqrt(size), (count, size))
    labels = np.where(spring.uniform(size=count) > 0.4, 1.0, -1.0)
    plain = fitted("logistic", rows, labels, STRENGTH)
    far = []
    for epsilon in (0.5, 1.0, 50.0):
        models = np.array([perturbed("logistic", rows, labels, epsilon, spring) for _ in range(20)])
        far.append(float(np.linalg.norm(models - plain, axis=1).mean()))
    assert far[0] > far[1] > 10 * far[2]
    over = 0.25 / (count * STRENGTH)
    # Where epsilon pays for the change of the second derivative alone, more lambda is added.
    assert log(1 + 2 * over + over**2) > 0.1 and 0.25 / (count * expm1(0.1 / 4)) > STRENGTH
