"""Figures of other libraries for noisy_sum_reference.json. Run in an environment of its own: both are large.

    pip install opendp==0.16.0 dp-accounting==0.6.0
    python tests/anon/accounting/noisy_sum_oracles.py > tests/anon/accounting/noisy_sum_reference.json
"""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import opendp.prelude as dp
from dp_accounting.pld import privacy_loss_mechanism as pld

EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTAS = (1e-3, 1e-6, 1e-10)


def of_zcdp(scale: float, sensitivity: int) -> dict[str, Any]:
    """OpenDP's rho of a vector of discrete Gaussians, and (epsilon, delta) by its conversion from rho."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    noise = dp.m.make_gaussian(*space, scale=scale)
    profile = dp.c.make_zCDP_to_approxDP(noise).map(float(sensitivity))
    return {
        "sigma": scale,
        "sensitivity": sensitivity,
        "rho": noise.map(float(sensitivity)),
        "deltas": [[epsilon, profile.delta(epsilon)] for epsilon in EPSILONS],
        "epsilons": [[delta, profile.epsilon(delta)] for delta in DELTAS],
    }


def of_one_entry(scale: float, sensitivity: int) -> dict[str, Any]:
    """dp-accounting's delta of one discrete Gaussian."""
    loss = pld.DiscreteGaussianPrivacyLoss(scale, sensitivity=sensitivity)
    deltas = [[epsilon, loss.get_delta_for_epsilon(epsilon)] for epsilon in EPSILONS]
    return {"sigma": scale, "sensitivity": sensitivity, "deltas": deltas}


def of_continuous(scale: float, sensitivity: int) -> dict[str, Any]:
    """dp-accounting's delta of the continuous Gaussian, to which many wide discrete ones come close."""
    loss = pld.GaussianPrivacyLoss(scale, sensitivity=sensitivity)
    deltas = [[epsilon, loss.get_delta_for_epsilon(epsilon)] for epsilon in EPSILONS]
    return {"sigma": scale, "sensitivity": sensitivity, "deltas": deltas}


if __name__ == "__main__":
    dp.enable_features("contrib", "honest-but-curious")
    found = {
        "source": "opendp 0.16.0 and dp-accounting 0.6.0, by tests/anon/accounting/noisy_sum_oracles.py",
        "zcdp": [of_zcdp(*case) for case in product((2.0, 4.5, 64.0), (1, 3))],
        "one_entry": [
            of_one_entry(*case) for case in product((0.75, 2.0, 4.5, 64.0), (1, 3, 40)) if case[0] * 10 > case[1]
        ],
        "continuous": [of_continuous(*case) for case in ((500.0, 100), (2000.0, 500))],
    }
    print(json.dumps(found, indent=1))
