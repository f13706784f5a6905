"""Figures 2 and 3: the probabilities of least error, and the error of the mechanisms, by formula and by drawing."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from aggregator.lab.simulation.draws import perturbed_counts
from aggregator.protocols.additive.reconstruct import Counts
from anon.ldp import MECHANISMS, SCALE, Mechanism, build, label_contrast_error
from benchmarks.figures import Figure
from benchmarks.paper.fitting import whole_nano

PEERS = 10_000
EPSILONS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0)
CARDINALITIES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)


def probabilities(epsilon: float = 1.0, cardinalities: Sequence[int] = CARDINALITIES) -> list[Figure]:
    """Figure 2: p and q of eq. 5 against m, beside RAPPOR's."""
    rows: list[Figure] = []
    for m in cardinalities:
        best, rappor = build("pq", m, whole_nano(epsilon)), build("rappor", m, whole_nano(epsilon))
        row: Figure = {"m": m, "p": best.p / SCALE, "q": best.q / SCALE}
        rows.append(row | {"p_rappor": rappor.p / SCALE, "q_rappor": rappor.q / SCALE})
    return rows


def expected_errors(trials: int, seed: int) -> list[Figure]:
    """Figure 3: both panels, every mechanism, eq. 4 beside what `trials` drawn aggregates of 10,000 peers gave."""
    generator = np.random.default_rng(seed)
    points = [("epsilon", 16, epsilon) for epsilon in EPSILONS] + [("m", m, 1.0) for m in CARDINALITIES]
    return [
        {"panel": panel, "m": m, "epsilon": epsilon, "mechanism": name, **_error(name, m, epsilon, trials, generator)}
        for panel, m, epsilon in points
        for name in MECHANISMS
    ]


def crossovers(epsilons: Sequence[float]) -> list[Figure]:
    """Up to which m k-RR has less error (eq. 4) than (p, q) at its optimum, and which mechanism is best at m = 4, 16:
    for the histogram as a whole, and for the contrast of the label."""
    rows: list[Figure] = []
    for epsilon in epsilons:
        nano = whole_nano(epsilon)
        m = 2
        while m < 4096 and build("krr", m + 1, nano).squared_error() < build("pq", m + 1, nano).squared_error():
            m += 1
        row: Figure = {"epsilon": epsilon, "krr_up_to": m}
        for size in (4, 16):
            built = [build(name, size, nano) for name in MECHANISMS]
            row[f"histogram_{size}"] = min(built, key=lambda one: one.squared_error()).name
            row[f"label_{size}"] = min(built, key=_label_error).name
        rows.append(row)
    return rows


def _label_error(mechanism: Mechanism) -> Fraction:
    return label_contrast_error(mechanism, mechanism.m // 2, 1)


def _error(name: str, m: int, epsilon: float, trials: int, generator: np.random.Generator) -> Figure:
    mechanism = build(name, m, whole_nano(epsilon))
    truth = zipf_counts(m, PEERS)
    squares = np.array([_squared(mechanism, truth, generator) for _ in range(trials)])
    rmse = float(np.sqrt(squares.mean()))
    spread = float(squares.std(ddof=1) / np.sqrt(trials) / 2 / rmse) if trials > 1 else 0.0
    norms = np.sqrt(squares)
    return {"eq4": mechanism.rmse(PEERS), "rmse": rmse, "rmse_se": spread, "mean_norm": float(norms.mean())}


def zipf_counts(m: int, peers: int) -> Counts:
    """True counts that fall as 1/rank; the error hardly depends on them, which the measurement shows."""
    shares = 1 / np.arange(1, m + 1)
    counts: Counts = np.floor(shares / shares.sum() * peers).astype(np.int64)
    counts[0] += peers - counts.sum()
    return counts


def _squared(mechanism: Mechanism, truth: Counts, generator: np.random.Generator) -> float:
    counts = perturbed_counts(mechanism, truth, generator)
    found = np.array(mechanism.unbias([int(count) for count in counts], PEERS))
    return float(np.sum(((found - truth) / PEERS) ** 2))
