"""Counting perturbed reports from memory on one core, beside the aggregator of pure-ldp (OUE) in the same run.

    python -m benchmarks.aggregate

Goal: 1,000,000 reports of 128 bits in at most 40 ms. Prints a table and writes benchmarks/out/aggregate.json.
pure-ldp takes one numpy array of m numbers for each report; it is given those ready made, fewer of them, and is
compared by the time for each report. Where it cannot be imported the rest is measured all the same.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggregator.protocols.histogram.tally import tally_krr, tally_unary
from benchmarks.figures import Figure, publish

M, EPSILON = 128, 1.0
REPORTS = (1_000_000, 2_000_000, 4_000_000)
GROWTH_FROM = REPORTS[0]
PURE_LDP_REPORTS = (25_000, 50_000, 100_000)
REPETITIONS, PURE_LDP_REPETITIONS = 21, 5
GOAL_MILLISECONDS = 40.0


def oue_reports(count: int, generator: np.random.Generator) -> NDArray[np.uint8]:
    """Return packed reports as optimised unary encoding makes them: true bit 1/2, any other 1 / (e**epsilon + 1)."""
    packed = np.empty((count, M // 8), dtype=np.uint8)
    for start in range(0, count, 100_000):
        size = min(100_000, count - start)
        chances = np.full((size, M), 1 / (np.exp(EPSILON) + 1), dtype=np.float32)
        chances[np.arange(size), generator.integers(0, M, size)] = 0.5
        bits = generator.random((size, M), dtype=np.float32) < chances
        packed[start : start + size] = np.packbits(bits, axis=1)
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


def ours(packed: NDArray[np.uint8]) -> list[Figure]:
    """Return the times of unary and k-ary counts at each number of reports."""
    categories = np.random.default_rng(2).integers(0, M, len(packed)).astype(">u2").view(np.uint8).reshape(-1, 2)
    return [row("unary, 128 bits", n, lambda n=n: tally_unary(packed[:n], M), REPETITIONS) for n in REPORTS] + [  # type: ignore[misc]
        row("krr, m = 128", n, lambda n=n: tally_krr(categories[:n], M), REPETITIONS)  # type: ignore[misc]
        for n in REPORTS
    ]


def added_up(server: Any, reports: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Return the sums of a fresh pure_ldp aggregator over the reports."""
    fresh = server(EPSILON, M, use_oue=True)
    for report in reports:
        fresh.aggregate(report)
    return np.asarray(fresh.aggregated_data, dtype=np.float64)


def beside_pure_ldp(packed: NDArray[np.uint8], server: Any) -> list[Figure]:
    """Return the times of pure_ldp's UEServer(use_oue=True).aggregate on reports as its client makes them.

    Raises RuntimeError if its sums differ from ours.
    """
    rows = []
    for n in PURE_LDP_REPORTS:
        unpacked = list(np.unpackbits(packed[:n], axis=1).astype(np.int64))
        rows.append(
            row("pure-ldp OUE, 128 bits", n, lambda reports=unpacked: added_up(server, reports), PURE_LDP_REPETITIONS)  # type: ignore[misc]
        )
        if not np.array_equal(added_up(server, unpacked), tally_unary(packed[:n], M)):
            raise RuntimeError("pure-ldp and this project count the same reports differently")
    return rows


def growth(rows: list[Figure], what: str) -> float:
    """Return the time of the largest count over that of the smallest: 4 would be exactly linear."""
    times = [float(one["median_ms"] or 0) for one in rows if one["what"] == what]
    return round(times[-1] / times[0], 2)


def pure_ldp_server() -> tuple[Any, str]:
    """Return pure_ldp's UEServer and its version, or None and what is missing.

    The package that holds it imports every other oracle too, and with them scikit-learn and statsmodels, which it does
    not declare. So that package is entered without running its `__init__`.
    """
    try:
        outer = import_module("pure_ldp")
        oracles = ModuleType("pure_ldp.frequency_oracles")
        oracles.__path__ = [f"{path}/frequency_oracles" for path in outer.__path__]
        sys.modules.setdefault(oracles.__name__, oracles)
        return import_module("pure_ldp.frequency_oracles.unary_encoding").UEServer, version("pure-ldp")
    except ModuleNotFoundError as missing:
        return None, "not installed" if missing.name == "pure_ldp" else f"installed, but not its need {missing.name}"


def main() -> None:
    """Measure, print, write; exit with 1 if the goal was missed."""
    warnings.simplefilter("ignore")
    packed = oue_reports(max(REPORTS), np.random.default_rng(1))
    server, state = pure_ldp_server()
    rows = ours(packed) + (beside_pure_ldp(packed, server) if server else [])
    median = float(rows[0]["median_ms"] or 0)
    about: Figure = {
        "goal_ms": GOAL_MILLISECONDS,
        "median_ms": median,
        "met": median <= GOAL_MILLISECONDS,
        "growth_1x_to_4x": growth(rows, "unary, 128 bits"),
        "pure_ldp": state,
    }
    if server:
        about["times_faster_than_pure_ldp"] = round(
            float(rows[-1]["ns_per_report"] or 0) / float(rows[0]["ns_per_report"] or 1), 1
        )
    publish("aggregate", rows, about)
    raise SystemExit(0 if about["met"] else 1)


if __name__ == "__main__":
    main()
