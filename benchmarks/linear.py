"""Linear models on skewed numbers, each column on its linear scale and on the declared one; and how many are shown.

    python -m benchmarks.linear --data FOLDER [--trials 50] [--sets NAME ...] [--peers N ...]

The numbers of `benchmarks.declared` with their ranges and scales, written down before anything was scored. Epsilon 1 at
delta 1e-6, the noise of two tellers. Each trial draws people and noise anew. `moments` and `gradient`: ROC AUC on
people who took no part, whatever the study says of itself, and the share of studies whose own test shows their model to
be more than noise. Of a gradient some members check the model and train nothing.

Prints a table, and writes benchmarks/out/linear.json.
"""

from __future__ import annotations

import argparse
import sys
from decimal import Decimal
from fractions import Fraction
from math import sqrt

import numpy as np
from attrs import evolve

from aggregator.lab.simulation.evaluation import roc_auc
from aggregator.lab.simulation.linear_sums import (
    reals_of_people,
    summed_checks,
    summed_gradients,
    summed_products,
)
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.sum_noise import simulated_noise
from aggregator.protocols.additive.noise_test import LEVEL
from aggregator.protocols.additive.reconstruct import Floats
from aggregator.protocols.sum.gradient_noise_test import chance_of_agreement
from aggregator.protocols.sum.moments import ridge
from aggregator.protocols.sum.moments_noise_test import chance_of_products
from aggregator.protocols.sum.published import NoisySum
from anon.accounting.noisy_sums import sigma_squared_for
from anon.ldp import nano
from anon.protocols.sum.arranged import one_in_for
from anon.protocols.sum.design import column_of
from anon.protocols.sum.sections import Gradient
from anon.protocols.sum.standing import RoundSum
from anon.protocols.vectors.checks import CheckSums, middle
from anon.protocols.vectors.columns import CONSTANT, Column
from anon.protocols.vectors.gradient import Descent, GradientSums
from anon.protocols.vectors.moments import MomentSums
from benchmarks.data import data_folder
from benchmarks.declared import SETS, DataSet
from benchmarks.directions import SEED, people_of, study_of
from benchmarks.figures import Figure, publish

PEERS = (300, 1000, 2000, 5000)
DELTA, PARTIES, REACH, LABEL = Decimal("1e-6"), 2, 16, "label"
WAY = Gradient("gradient", 1.0)


def columns_of(of: DataSet, scale: str) -> tuple[Column, ...]:
    """A constant, and the set's numbers; on the declared scales, or all on a linear one."""
    numbers = [feature for feature in study_of(of, True).features if feature.kind == "numeric"]
    kept = [feature if scale == "declared" else evolve(feature, scale="linear") for feature in numbers]
    return (Column(CONSTANT, 0.0, 1.0, REACH), *(column_of(feature, REACH) for feature in kept))


def of_moments(
    columns: tuple[Column, ...], people: People, scored: Floats, draw: np.random.Generator
) -> tuple[Floats, bool]:
    """The scores of a regression on noisy products, and True where it is shown."""
    target = Column(LABEL, 0.0, 1.0, REACH)
    design = MomentSums((*columns, target), sum(column.reach**2 for column in (*columns, target)))
    noise = sigma_squared_for(design.sensitivity_squared("replace-one"), design.length, nano("1"), DELTA)
    exact = summed_products(design, LABEL, people)
    noisy = exact + simulated_noise(noise, PARTIES, design.length, draw)
    seen = NoisySum(tuple(noisy.tolist()), len(people), noise, PARTIES)
    scores: Floats = scored @ np.array(ridge(design, LABEL, seen).weights)
    return scores, chance_of_products(design, seen) <= LEVEL


def of_gradient(
    columns: tuple[Column, ...], people: People, scored: Floats, draw: np.random.Generator
) -> tuple[Floats, bool]:
    """The scores of the descent with the usual settings, and True where those who check show it."""
    design = GradientSums(columns, 1024, Fraction(str(WAY.clip)))
    noise, share = _noise(design, WAY.rounds), one_in_for(len(people), Fraction(1))
    checks = draw.integers(0, share, len(people)) == 0
    reals, units = reals_of_people(columns, LABEL, people), round(Fraction(len(people) * (share - 1), share))
    way = Descent(
        WAY.rounds, Fraction(str(WAY.step)), Fraction(str(WAY.momentum)), units, PARTIES * noise, WAY.rounds // 3
    )
    standing, between = way.start(design.length), 0
    for number in range(WAY.rounds):
        exact = summed_gradients(design, reals[~checks], people.labels[~checks], standing.weights)
        noisy = (exact + simulated_noise(noise, PARTIES, design.length, draw)).tolist()
        between = between if number else middle(noisy[0], design.scale, units, way.noise)
        standing = way.after(standing, noisy, design.scale)
    weights = (standing.totals[0] - way.last * between, *standing.totals[1:])
    check = CheckSums(design)
    exact, noise = summed_checks(check, reals[checks], people.labels[checks], weights), _noise(check, 1)
    noisy = (exact + simulated_noise(noise, PARTIES, check.length, draw)).tolist()
    chance = chance_of_agreement(check, RoundSum(tuple(noisy), len(people), PARTIES * noise), share)
    return scored @ np.array(way.final(standing)), chance <= LEVEL


def _noise(design: GradientSums | CheckSums, rounds: int) -> Fraction:
    limit, changed = design.sensitivity_squared("replace-one"), design.changed("replace-one")
    return sigma_squared_for(limit, changed, nano("1"), DELTA, rounds)


def measure(of: DataSet, data: tuple[People, People], peers: int, trials: int) -> Figure:
    """One cell: means over the trials, with their standard errors."""
    people, test = data
    found: dict[str, list[float]] = {}
    for trial in range(trials):
        for scale in ("linear", "declared"):
            draw = np.random.default_rng([SEED, 67, *of.name.encode(), peers, trial])
            taken, columns = people.take(draw.integers(0, len(people), peers)), columns_of(of, scale)
            scored = reals_of_people(columns, LABEL, test)
            for name, learn in (("gradient", of_gradient), ("moments", of_moments)):
                scores, shown = learn(columns, taken, scored, draw)
                found.setdefault(f"{name}_{scale}", []).append(roc_auc(scores, test.labels == 1))
                found.setdefault(f"{name}_shown_{scale}", []).append(float(shown))
    row: Figure = {"set": of.name, "columns": len(columns_of(of, "linear")) - 1, "peers": peers, "trials": trials}
    for name, values in found.items():
        row[name] = round(float(np.mean(values)), 4)
        row[f"{name}_error"] = round(float(np.std(values, ddof=1)) / sqrt(trials), 4)
    return row


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linear")
    parser.add_argument("--data", type=data_folder, required=True)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--sets", nargs="*", default=[of.name for of in SETS])
    parser.add_argument("--peers", nargs="*", type=int, default=[*PEERS])
    asked = parser.parse_args()
    rows = []
    for of in SETS:
        if of.name in asked.sets:
            data = people_of(of, asked.data)
            for peers in asked.peers:
                rows.append(measure(of, data, peers, asked.trials))
                print(rows[-1], file=sys.stderr, flush=True)
    publish("linear", rows, {"trials": asked.trials, "seed": SEED})
    return 0


if __name__ == "__main__":
    sys.exit(main())
