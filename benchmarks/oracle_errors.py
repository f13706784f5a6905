"""The mean squared error of our estimated shares beside other packages': over kinds of shares, m and epsilon.

In each trial one histogram of people is drawn, which all packages estimate from reports of the same number of them, and
what is judged is the mean of the differences with its standard error. Trials of a cell go on until its sign is plain or
there are `MOST_TRIALS` of them.

Theirs is optimised unary encoding, drawn as the sums of its reports (binomials): as each package returns them, and with
the nearest histogram (`nearest_shares`) on top, which neither package has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from aggregator.lab.simulation.draws import perturbed_counts
from aggregator.protocols.additive.empirical_bayes import smoothed
from anon.ldp import Mechanism, choose, nano
from anon.ldp.simplex import nearest_shares
from benchmarks.figures import Figure

Floats = NDArray[np.float64]

SIZES, EPSILONS = (4, 16, 128, 1024), ("0.5", "1", "4")
COHORT = 10_000
BATCH = {4: 200, 16: 100, 128: 20, 1024: 5}
"""Trials between two looks, by m: with many shares to add up, each trial tells more."""

MOST_TRIALS = {4: 4000, 16: 4000, 128: 600, 1024: 100}
PLAIN = 4.0
"""Standard errors from which on a difference is plain: with up to 40 looks at 216 differences, a false alarm in 2."""

SPREADS: dict[str, Callable[[int], Floats]] = {
    "even": lambda m: np.ones(m),
    "by rank": lambda m: 1 / np.arange(1, m + 1),
    "geometric": lambda m: np.power(0.7, np.arange(m, dtype=np.float64)),
    "half empty": lambda m: np.r_[np.ones(m // 2), np.zeros(m // 2)],
    "spike": lambda m: np.where(np.arange(m) == m // 3, 19.0 * (m - 1), 1.0),
    "one": lambda m: (np.arange(m) == m // 3).astype(float),
}


@frozen
class Cell:
    """One kind of shares, m and epsilon."""

    spread: str
    m: int
    epsilon: str
    mechanism: Mechanism = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "mechanism", choose(self.m, nano(self.epsilon)))

    def trials(self, server: Any, estimator: Any) -> Iterator[dict[str, float]]:
        """The squared errors of one trial after another, by whose they are."""
        generator = np.random.default_rng([self.m, int(4 * float(self.epsilon)), list(SPREADS).index(self.spread)])
        shares = SPREADS[self.spread](self.m)
        while True:
            true = generator.multinomial(COHORT, shares / shares.sum())
            estimates = self._ours(true, generator) | self._theirs(true, server, estimator, generator)
            yield {name: float(((one - true / COHORT) ** 2).sum()) for name, one in estimates.items()}

    def _ours(self, true: NDArray[np.int64], generator: np.random.Generator) -> dict[str, Floats]:
        counts = perturbed_counts(self.mechanism, true, generator)
        unbiased = np.array(self.mechanism.unbias(counts.tolist(), COHORT)) / COHORT
        noise = self.mechanism.variance(COHORT / self.m, COHORT) / COHORT**2
        return {"smoothed": smoothed(unbiased, noise), "projected": np.array(nearest_shares(unbiased.tolist()))}

    def _theirs(
        self, true: NDArray[np.int64], server: Any, estimator: Any, generator: np.random.Generator
    ) -> dict[str, Floats]:
        q = 1 / (np.exp(float(self.epsilon)) + 1)
        counts = generator.binomial(true, 0.5) + generator.binomial(COHORT - true, q)
        found = {"oue_projected": np.array(nearest_shares(((counts / COHORT - q) / (0.5 - q)).tolist()))}
        if server is not None:
            theirs = server(float(self.epsilon), self.m, use_oue=True)
            theirs.aggregated_data, theirs.n = counts.astype(float), COHORT
            found["pure_ldp"] = np.asarray(theirs._update_estimates()) / COHORT
        if estimator is not None:
            # Its function adds up a list of reports before anything else: one row of sums, and n by its length.
            found["multi_freq_ldpy"] = np.asarray(estimator(_Summed(counts), float(self.epsilon)))
        return found


class _Summed:
    """Reports of which only the sums are kept: as long as the cohort, and iterated as one row."""

    def __init__(self, counts: NDArray[np.int64]) -> None:
        self._counts = counts.astype(float)

    def __len__(self) -> int:
        return COHORT

    def __iter__(self) -> Any:
        return iter([self._counts])


def compared(cell: Cell, server: Any, estimator: Any) -> Figure:
    """A row: mean errors, ours over the least of theirs with its standard error, and whether it is plainly above 1."""
    source, kept = cell.trials(server, estimator), list[dict[str, float]]()
    while True:
        kept += [next(source) for _ in range(BATCH[cell.m])]
        means = {name: float(np.mean([one[name] for one in kept])) for name in kept[0]}
        rival = min((name for name in means if name not in ("smoothed", "projected")), key=means.__getitem__)
        gaps = np.array([one["smoothed"] - one[rival] for one in kept])
        error = float(gaps.std(ddof=1) / len(gaps) ** 0.5)
        if abs(gaps.mean()) > PLAIN * error or len(kept) >= MOST_TRIALS[cell.m]:
            break
    row: Figure = {"shares": cell.spread, "m": cell.m, "epsilon": cell.epsilon, "mechanism": cell.mechanism.name}
    row |= {name: float(f"{mean:.4g}") for name, mean in means.items()}
    row |= {"ratio": round(means["smoothed"] / means[rival], 3), "standard_error": round(error / means[rival], 3)}
    return row | {"trials": len(kept), "worse": bool(gaps.mean() > PLAIN * error)}


def errors(server: Any, estimator: Any) -> list[Figure]:
    """A row for every cell."""
    cells = (Cell(spread, m, epsilon) for m, spread, epsilon in product(SIZES, SPREADS, EPSILONS))
    return [compared(cell, server, estimator) for cell in cells]
