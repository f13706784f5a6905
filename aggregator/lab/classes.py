"""A label of several values: a study for each value against the rest, among which the people are divided.

A study's label is a yes or a no. So a class of each person takes a study for each of the values, and each member takes
part in one of them: the epsilon is the same, and each study has a share of the people. docs/decisions/0060-classes.md
has what that costs.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from attrs import frozen

from aggregator.compute import HERE, Compute
from aggregator.lab.simulation.csv_file import read_columns
from aggregator.lab.simulation.inference import column_of, infer_study, named, people_of
from aggregator.lab.simulation.simulate import HELD_OUT, SimulationResult, simulate
from aggregator.lab.simulation.target import MOST_CLASSES
from anon.errors import Malformed


@frozen
class ClassStudies:
    """The study of each value, tried; values in the order of how common they are."""

    results: dict[str, SimulationResult]

    @property
    def auc_macro(self) -> float:
        """The mean AUC of the values, each against the rest."""
        return float(np.mean([result.auc_mean for result in self.results.values()]))

    @property
    def auc_macro_se(self) -> float:
        """Its standard error."""
        return float(np.linalg.norm([result.auc_se for result in self.results.values()]) / len(self.results))

    def figures(self) -> dict[str, object]:
        """The output of `simulate --classes --json`."""
        each = {value: result.figures() for value, result in self.results.items()}
        return {"auc_macro": self.auc_macro, "auc_macro_se": self.auc_macro_se, "classes": each}


def simulate_classes(
    data: Path,
    label: str,
    epsilon: float,
    trials: int,
    seed: int,
    *,
    test: Path | None = None,
    peers: int | None = None,
    held_out: float = HELD_OUT,
    compute: Compute = HERE,
) -> ClassStudies:
    """Simulate the study of each value of the column `label`, with an equal share of the peers. `peers`: of all studies
    together. Raises `Malformed` for a column of one value, or of more than `MOST_CLASSES`."""
    values, results = values_of(data, label), dict[str, SimulationResult]()
    for value in values:
        inferred = infer_study(data, label, [value], epsilon, 0.0 if test else held_out, seed)
        scored = people_of(inferred.proposal, test, inferred.bound) if test else inferred.held_out
        share = (peers or len(inferred.people)) // len(values)
        results[value] = simulate(
            inferred.proposal, inferred.people, trials, seed, scored, peers=share, compute=compute
        )
    return ClassStudies(results)


def values_of(data: Path, label: str) -> tuple[str, ...]:
    """The values of a column, the commonest first. Raises `Malformed` as `simulate_classes` does."""
    columns = {named(name): cells for name, cells in read_columns(data).items()}
    counted = Counter(str(cell) for cell in columns[column_of(data, columns, label)] if cell is not None)
    if not 2 <= len(counted) <= MOST_CLASSES:
        raise Malformed(f"label {label}: --classes expects 2 to {MOST_CLASSES} values, got {len(counted)}")
    return tuple(value for value, _ in counted.most_common())
