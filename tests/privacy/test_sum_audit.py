"""A black-box audit of noisy sums: neighbours that attain the sensitivity, noise by the stated cost, and a fifth less.

Contributions are made by the peers' code, noise is that of one party, sigma by `sigma_squared_for`. The other party's
noise and everybody else's contribution are known to the attacker, so they are left out. An attacker who knows the two
neighbouring sums does best by the noise along their difference. So each sum becomes one number. Bounds on
delta(epsilon) hold together with probability 1 - `FALSE_ALARM` for each audit. Fixed seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta

from aggregator.lab.simulation.sum_noise import simulated_noise
from anon.accounting.noisy_sums import GaussianSum, delta_of, sigma_squared_for
from anon.ldp.epsilon import NANO, nano
from anon.protocols.vectors.columns import Column
from anon.protocols.vectors.gradient import GradientSums
from anon.protocols.vectors.moments import MomentSums
from anon.protocols.vectors.sensitivity import SummedVector
from anon.protocols.vectors.tables import tables_of

FALSE_ALARM = 1e-3
TRIALS = 200_000
EPSILONS = (0.0, 0.25, 0.5, 1.0)
EDGES = (-0.5, 0.0, 0.5, 1.0, 1.5)

TABLES = tables_of({f"x{place}": 2 for place in range(11)})
COLUMNS = tuple(Column(f"x{place}", 0.0, 1.0, 4) for place in range(6))
MOMENTS = MomentSums(COLUMNS, 48)
GRADIENT = GradientSums(COLUMNS, 64, Fraction(1))
FULL, EMPTY = {f"x{place}": 1.0 for place in range(3)}, {f"x{place}": 1.0 for place in range(3, 6)}

CASES: list[tuple[SummedVector, list[int], list[int]]] = [
    (
        TABLES,
        TABLES.vector({f"x{place}": 0 for place in range(11)}, 0),
        TABLES.vector({f"x{place}": 1 for place in range(11)}, 1),
    ),
    (MOMENTS, MOMENTS.vector([FULL]), MOMENTS.vector([EMPTY])),
    (GRADIENT, GRADIENT.vector([({**FULL, **EMPTY}, 0)], [0] * 6), GRADIENT.vector([({**FULL, **EMPTY}, 1)], [0] * 6)),
]


def apart(one: Sequence[int], other: Sequence[int]) -> list[int]:
    return [a - b for a, b in zip(one, other, strict=True)]


def loss_found(design: SummedVector, change: list[int], claimed: Fraction, really: Fraction) -> bool:
    """True if sums with noise of `really` are told apart by more than noise of `claimed` allows."""
    step = np.array(change, dtype=np.int64)
    stated = GaussianSum(design.sensitivity_squared("replace-one"), design.changed("replace-one"), claimed)
    without, with_change = (
        simulated_noise(really, 1, (TRIALS, len(change)), np.random.default_rng(seed)) @ step + shift
        for seed, shift in ((1, 0), (2, int(step @ step)))
    )
    spread, middle = math.sqrt(float(claimed) * int(step @ step)), int(step @ step) / 2
    level = FALSE_ALARM / (2 * len(EPSILONS) * len(EDGES))
    for epsilon in EPSILONS:
        allowed = float(delta_of([stated], round(epsilon * NANO)))
        for edge in EDGES:
            inside = [int(np.sum(one > middle + edge * spread)) for one in (with_change, without)]
            least = beta.ppf(level, inside[0], TRIALS - inside[0] + 1)
            most = beta.isf(level, inside[1] + 1, TRIALS - inside[1])
            if least - math.exp(epsilon) * most > allowed:
                return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=["tables", "moments", "gradient"])
def test_an_audit_finds_a_fifth_less_noise_and_passes_the_stated_one(
    case: tuple[SummedVector, list[int], list[int]],
) -> None:
    design, one, other = case
    change = apart(one, other)
    assert sum(entry * entry for entry in change) >= 0.9 * design.sensitivity_squared("replace-one"), (
        "the pair attains the bound"
    )
    sigma_squared = sigma_squared_for(
        design.sensitivity_squared("replace-one"), design.changed("replace-one"), nano("1"), Decimal("1e-6")
    )
    held = [(place, entry) for place, entry in enumerate(change) if entry]
    changed = [entry for _, entry in held]
    assert loss_found(design, changed, sigma_squared, sigma_squared * Fraction(16, 25))
    assert not loss_found(design, changed, sigma_squared, sigma_squared)
