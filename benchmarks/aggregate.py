"""Counting perturbed reports from memory on one core, beside pure-ldp and multi-freq-ldpy (OUE) in the same run.

    python -m benchmarks.aggregate

Goal for 1,000,000 reports: 128 bits in at most 10 ms and 40 times as fast as the fastest of the others; 1,024 bits in
at most 50 ms and 10 times as fast. And the mean squared error of the estimated shares (`smoothed`) is nowhere above
theirs (`benchmarks.oracle_errors`). Prints two tables and writes benchmarks/out/aggregate.json and
aggregate_error.json.

The others take one numpy array of m numbers for each report; they are given those ready made, as their own clients make
them (64-bit integers, doubles), fewer of them because 1,000,000 would not fit into memory, and are compared by the time
for each report. A module that cannot be imported is left out by name.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggregator.protocols.tally import tally_krr, tally_unary
from benchmarks.figures import Figure, publish
from benchmarks.oracle_errors import COHORT, errors
from benchmarks.others import multi_freq_estimator, pure_ldp_server

EPSILON = 1.0
REPORTS = 1_000_000
THEIRS = {128: 100_000, 1024: 12_500}
"""How many reports the others are given, by bits."""
GOAL_MILLISECONDS = {128: 10.0, 1024: 50.0}
GOAL_TIMES = {128: 40.0, 1024: 10.0}
REPETITIONS, THEIR_REPETITIONS = 21, 5


def oue_reports(count: int, m: int, generator: np.random.Generator) -> NDArray[np.uint8]:
    """Return packed reports as optimised unary encoding makes them: true bit 1/2, any other 1 / (e**epsilon + 1)."""
    packed = np.empty((count, m // 8), dtype=np.uint8)
    for start in range(0, count, 20_000):
        size = min(20_000, count - start)
        chances = np.full((size, m), 1 / (np.exp(EPSILON) + 1), dtype=np.float32)
        chances[np.arange(size), generator.integers(0, m, size)] = 0.5
        packed[start : start + size] = np.packbits(generator.random((size, m), dtype=np.float32) < chances, axis=1)
    return packed


def row(what: str, n: int, work: Callable[[], object], repetitions: int) -> Figure:
    """Return how long `work` on n reports takes."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1e3)
    median = statistics.median(times)
    return {
        "what": what,
        "reports": n,
        "median_ms": round(median, 3),
        "min_ms": round(min(times), 3),
        "max_ms": round(max(times), 3),
        "ns_per_report": round(median / n * 1e6, 2),
        "repetitions": repetitions,
    }


def added_up(server: Any, m: int, reports: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Return the sums of a fresh pure_ldp aggregator over the reports."""
    fresh = server(EPSILON, m, use_oue=True)
    for report in reports:
        fresh.aggregate(report)
    return np.asarray(fresh.aggregated_data, dtype=np.float64)


def speed(m: int, server: Any, estimator: Any) -> tuple[list[Figure], Figure]:
    """Return the times for m bits, ours first, and what they mean. Raises RuntimeError if sums differ."""
    packed = oue_reports(REPORTS, m, np.random.default_rng(m))
    rows = [row(f"unary, {m} bits", REPORTS, lambda: tally_unary(packed, m), REPETITIONS)]
    unpacked = np.unpackbits(packed[: THEIRS[m]], axis=1)[:, :m]
    integers = list(unpacked.astype(np.int64))
    if server is not None:
        if not np.array_equal(added_up(server, m, integers), tally_unary(packed[: THEIRS[m]], m)):
            raise RuntimeError("pure-ldp and this project count the same reports differently")
        work: Callable[[], object] = lambda: added_up(server, m, integers)  # noqa: E731
        rows.append(row(f"pure-ldp OUE, {m} bits", THEIRS[m], work, THEIR_REPETITIONS))
    if estimator is not None:
        doubles = list(unpacked.astype(np.float64))
        work = lambda: estimator(doubles, EPSILON)  # noqa: E731
        rows.append(row(f"multi-freq-ldpy OUE, {m} bits", THEIRS[m], work, THEIR_REPETITIONS))
    median = float(rows[0]["median_ms"] or 0)
    about: Figure = {f"median_ms_{m}": median, f"goal_ms_{m}": GOAL_MILLISECONDS[m]}
    if len(rows) > 1:
        fastest = min(float(one["ns_per_report"] or 0) for one in rows[1:])
        about[f"times_faster_{m}"] = round(fastest / float(rows[0]["ns_per_report"] or 1), 1)
        about[f"goal_times_{m}"] = GOAL_TIMES[m]
    return rows, about


def met(m: int, about: Figure) -> bool:
    """True if both goals for m bits were met; a comparison that could not be made is no failure."""
    times = float(about.get(f"times_faster_{m}") or GOAL_TIMES[m])
    return float(about[f"median_ms_{m}"] or 0) <= GOAL_MILLISECONDS[m] and times >= GOAL_TIMES[m]


def main() -> None:
    """Measure, print, write; exit with 1 if a goal was missed."""
    warnings.simplefilter("ignore")
    (server, pure), (estimator, multi) = pure_ldp_server(), multi_freq_estimator()
    about: Figure = {"pure_ldp": pure, "multi_freq_ldpy": multi}
    rows: list[Figure] = []
    for m in THEIRS:
        timed, said = speed(m, server, estimator)
        rows, about = rows + timed, about | said
    categories = np.random.default_rng(2).integers(0, 128, REPORTS).astype(">u2").view(np.uint8).reshape(-1, 2)
    rows.append(row("krr, m = 128", REPORTS, lambda: tally_krr(categories, 128), REPETITIONS))
    about["met"] = all(met(m, about) for m in THEIRS)
    publish("aggregate", rows, about)
    compared = errors(server, estimator)
    no_worse = not any(one["worse"] for one in compared)
    publish("aggregate_error", compared, {"cohort": COHORT, "met": no_worse})
    raise SystemExit(0 if about["met"] and no_worse else 1)


if __name__ == "__main__":
    main()
