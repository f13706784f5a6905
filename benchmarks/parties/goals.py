"""The goals of the figures, and whether they are met."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from attrs import frozen

from benchmarks.figures import Figure
from benchmarks.paper.findings import Findings, number
from benchmarks.parties import averaging, modes


@frozen
class Goal:
    """A goal in words, the figure that was found, and whether it meets the goal."""

    words: str
    found: str
    met: bool


def brief(value: float, digits: int = 4) -> str:
    """0.1602 as .1602."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("0.", ".", 1)


def chosen(found: Findings, noise: str, epsilon: str | None, shares: str) -> Figure:
    """The row of the lambda that did best on the held-out rows."""
    rows = found.rows("averaging", noise=noise, epsilon=epsilon, shares=shares)
    return min(rows, key=lambda row: number(row, "held"))


def of_averaging(found: Findings) -> Iterator[Goal]:
    """At epsilon 1, lambda chosen on held-out rows."""
    even = averaging.EVEN
    for shares, most in zip(averaging.SPLITS, (0.175, 0.18, 0.185), strict=True):
        error = number(chosen(found, "tight", "1", shares), "error")
        yield Goal(f"`tight`, {shares}: at most {brief(most, 3)}", brief(error), error <= most)
    for noise, most in (("two gaussians", 0.165), ("gaussian", 0.16)):
        error = number(chosen(found, noise, "1", even), "error")
        words = f"`gaussian`, {NOISE_NAMES[noise]}, {even}: at most {brief(most, 3)}"
        yield Goal(words, brief(error), round(error, 3) <= most)
    error = number(found.one("averaging", noise="noise-free", shares=even, **{"lambda": 0.001}), "error")
    yield Goal("without noise at lambda .001: .158", brief(error), round(error, 3) == 0.158)


NOISE_NAMES = {"gaussian": "one teller's noise", "two gaussians": "two tellers'", "pure": "pure"}


def accuracies(found: Findings, figure: str, **having: str | int | None) -> list[float]:
    """The accuracies of a mode, at each epsilon."""
    return [number(found.one(figure, epsilon=epsilon, **having), "accuracy") for epsilon in modes.EPSILONS]


def of_transfer(found: Findings) -> Iterator[Goal]:
    """On KDD Cup 99."""
    at: dict[str, Any] = {"parties": 5_000, "local": "logistic"}
    free = number(found.one("transfer", mode="noise-free", **at), "accuracy")
    gaps = [free - one for one in accuracies(found, "transfer", mode="statistic", noise="gaussian", **at)]
    met = all(gap <= most for gap, most in zip(gaps, (0.03, 0.02, 0.01), strict=True))
    yield Goal("Gaussian `statistic`, M = 5,000: at most .03, .02, .01 below noise-free", _listed(gaps), met)
    for local in ("nearest", "tree"):
        right = accuracies(found, "transfer", mode="statistic", noise="gaussian", parties=1_000, local=local)
        met = all(one >= least for one, least in zip(right, (0.885, 0.92, 0.95), strict=True))
        yield Goal(f"Gaussian `statistic`, M = 1,000, {local}: at least .885, .92, .95", _listed(right), met)
    leads = list(_leads(found))
    few = min(lead for parties, lead in leads if parties == min(parties for parties, _lead in leads))
    words = "`statistic` above `soft` and `vote` at M = 1,000, at every epsilon and noise"
    yield Goal(words, f"smallest lead {brief(few)}", few > 0)
    least = min(lead for _parties, lead in leads)
    yield Goal("`statistic` nowhere more than .01 below them", f"smallest lead {brief(least)}", least >= -0.01)


def _leads(found: Findings) -> Iterator[tuple[int, float]]:
    """By how much `statistic` leads over each other mode, in each cell: the number of parties, and the lead."""
    for row in found.rows("transfer", mode="statistic"):
        for other in ("soft", "vote"):
            same = {name: row[name] for name in ("parties", "local", "noise", "epsilon")}
            for beside in found.rows("transfer", mode=other, **same):
                yield int(number(row, "parties")), number(row, "accuracy") - number(beside, "accuracy")


def of_activity(found: Findings) -> Iterator[Goal]:
    """The order of the three modes on activities, for each kind of noise."""
    for noise in modes.NOISES:
        first, second, third = (
            accuracies(found, "activity", task="activity", mode=mode, noise=noise) for mode in modes.MODES
        )
        steps = [a - b for a, b in (*zip(first, second, strict=True), *zip(second, third, strict=True))]
        words = f"`statistic` >= `soft` >= `vote` at every epsilon, {NOISE_NAMES[noise]}"
        rows = found.rows("activity", task="activity", noise=noise)
        error = brief(max(number(row, "se") for row in rows))
        yield Goal(words, f"smallest step {brief(min(steps))}, standard errors up to {error}", min(steps) >= 0)


def _listed(values: Sequence[float]) -> str:
    return ", ".join(brief(value) for value in values)
