"""Time of `perturb` alone, with the operating system's randomness and without numpy.

    python -m benchmarks.perturb

Goal: at most 20 microseconds at m = 128. Prints a table and writes benchmarks/out/perturb.json.
"""

from __future__ import annotations

import os
import statistics
import sys
import time

from anon.ldp import MECHANISMS, Mechanism, RawCategory, build, nano
from benchmarks.figures import Figure, publish

CATEGORIES = (16, 128, 1024)
REPETITIONS = 41
GOAL_MICROSECONDS, GOAL_CATEGORIES = 20.0, 128


def microseconds(mechanism: Mechanism, calls: int) -> list[float]:
    """Return, for each repetition, the mean time of one call; the categories take turns."""
    categories = [RawCategory(index % mechanism.m, mechanism.m) for index in range(calls)]
    times = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        for category in categories:
            mechanism.perturb(category, os.urandom)
        times.append((time.perf_counter() - start) / calls * 1e6)
    return times


def measure() -> list[Figure]:
    """Return one figure for each mechanism and number of categories, at epsilon 1."""
    return [row(build(name, m, nano(1))) for name in MECHANISMS for m in CATEGORIES]


def row(mechanism: Mechanism) -> Figure:
    """Return median, least and greatest time of one call over the repetitions."""
    times = microseconds(mechanism, calls=20_000 // mechanism.m + 50)
    return {
        "mechanism": mechanism.name,
        "m": mechanism.m,
        "random_bytes": mechanism.random_size,
        "median_us": round(statistics.median(times), 3),
        "min_us": round(min(times), 3),
        "max_us": round(max(times), 3),
        "repetitions": len(times),
    }


def main() -> None:
    """Measure, print, write; exit with 1 if the goal was missed."""
    figures = measure()
    if "numpy" in sys.modules:
        raise RuntimeError("perturb must be measured without numpy, but something imported it")
    slowest = max(float(figure["median_us"] or 0) for figure in figures if figure["m"] == GOAL_CATEGORIES)
    met = slowest <= GOAL_MICROSECONDS
    publish("perturb", figures, {"goal_us_at_m_128": GOAL_MICROSECONDS, "slowest_us_at_m_128": slowest, "met": met})
    raise SystemExit(0 if met else 1)


if __name__ == "__main__":
    main()
