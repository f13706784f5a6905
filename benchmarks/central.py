"""The central epsilon of one anonymous packet: ours, mechanism by mechanism, and the closed form of 2021.

    python -m benchmarks.central

For n honest reports, local epsilon0 and delta = 1e-6. `closed_form` is theorem 3.1 of Feldman, McMillan, Talwar 2021
(arXiv 2012.12803), ln(1 + (e^e0 - 1)/(e^e0 + 1) (8 sqrt(e^e0 ln(4/delta)) / sqrt(n) + 8 e^e0 / n)), which holds for
e0 <= ln(n / (16 ln(2/delta))) only; beyond that it is left out. `clones` is what we state for a mechanism of which
nothing but epsilon0 is known. Prints a table and writes benchmarks/out/central.json.
"""

from __future__ import annotations

import time
from itertools import product
from math import exp, log, sqrt

from anon.accounting.central import DELTA, central, solve
from anon.accounting.shuffle import Crowd, CrowdCurve
from anon.ldp import NANO, build, nano
from benchmarks.figures import Figure, publish

COHORTS, LOCAL = (1_000, 10_000, 100_000), ("0.5", "1", "2", "4")
MECHANISMS = (("krr", 2), ("krr", 16), ("subset", 16), ("pq", 16), ("subset", 128), ("pq", 128))


def closed_form(n: int, local: float, delta: float) -> float | None:
    """Theorem 3.1 of 2021, or None where it does not hold."""
    if local > log(n / (16 * log(2 / delta))):
        return None
    growth = exp(local)
    return log(1 + (growth - 1) / (growth + 1) * (8 * sqrt(growth * log(4 / delta) / n) + 8 * growth / n))


def figures(n: int, written: str) -> Figure:
    """One row of the table."""
    local = float(written)
    clones = CrowdCurve(Crowd(exp(-local), 0.5), exp(local), n)
    stated = closed_form(n, local, DELTA)
    row: Figure = {"n": n, "local": written, "closed_form": None if stated is None else round(min(stated, local), 4)}
    row["clones"] = round(solve(clones.delta, DELTA, local), 4)
    for name, m in MECHANISMS:
        mechanism = build(name, m, nano(written))
        row[f"{name} {m}"] = round(central([[(mechanism, 1)]], [n], mechanism.epsilon).epsilon, 4)
    return row


def main() -> None:
    """Measure, print, write; exit with 1 if one of ours is above the closed form."""
    start = time.perf_counter()
    rows = [figures(n, written) for n, written in product(COHORTS, LOCAL)]
    about_us = {"n", "local", "closed_form"}.isdisjoint
    ours = [[float(value or 0) for key, value in row.items() if about_us({key})] for row in rows]
    stated = [row["closed_form"] for row in rows]
    below = all(one is None or max(found) <= float(one) for one, found in zip(stated, ours, strict=True))
    twelve = [[(build("krr", 8, nano(1)), 1)]] * 12
    begun = time.perf_counter()
    composed = central(twelve, [10_000] * 12, 12 * NANO).epsilon
    about: Figure = {"delta": DELTA, "met": below, "twelve_slots_of_krr_8_at_1_n_10000": round(composed, 4)}
    about |= {"seconds_composed": round(time.perf_counter() - begun, 2), "seconds": round(begun - start, 2)}
    publish("central", rows, about)
    raise SystemExit(0 if below else 1)


if __name__ == "__main__":
    main()
