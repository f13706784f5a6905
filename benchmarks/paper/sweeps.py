"""Figures 5, 6 and 7, and the choices of section VIII-D: ROC AUC over what the paper varies.

Every point is one setting at one epsilon of each histogram; where it lies on an axis depends on the accounting, so
one measurement serves both: per-attribute (eq. 6) and record-level.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from benchmarks.figures import Figure
from benchmarks.paper.datasets import DataSet
from benchmarks.paper.fitting import mean_and_error
from benchmarks.paper.pipeline import Setting, run

EPSILONS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
FIGURE_5 = {"5a": Setting(5, 3, 2), "5b": Setting(20, 1, 2)}
FIGURE_6_SIZES = (1, 2, 3, 4, 5)
FIGURE_6_EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, None)
FIGURE_7_PARTITIONS = (1, 2, 4, 8, 16, 32)
FIGURE_7_EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, None)
CHOICE_EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, None)


def point(data: DataSet, figure: str, setting: Setting, trials: int, seed: int) -> Figure:
    """One point of a figure, with its place under both accountings."""
    found = run(data.population, setting, trials, seed)
    auc, auc_se = mean_and_error(found.auc)
    f1, f1_se = mean_and_error(found.f1)
    binned = len(data.population.numbers)
    return {
        "figure": figure,
        "set": data.name,
        "partitions": setting.partitions,
        "subset_size": setting.subset_size,
        "subsets": setting.subsets,
        "classifier": setting.classifier,
        "score": setting.score,
        "scored_on": setting.scored_on,
        "epsilon": setting.epsilon,
        "epsilon_eq6": setting.epsilon_eq6(binned) if setting.epsilon else None,
        "epsilon_record": setting.epsilon_record(binned) if setting.epsilon else None,
        "auc": auc,
        "auc_se": auc_se,
        "auc_sd": float(found.auc.std()),
        "f1": f1,
        "f1_se": f1_se,
        "trials": trials,
    }


def settings_of(figure: str) -> Iterable[Setting]:
    """Every setting of figure 5, 6, 7, or of the choice of classifier and score ("8d")."""
    if figure == "5":
        for base in FIGURE_5.values():
            yield from (evolve(base, epsilon=epsilon) for epsilon in (*EPSILONS, None))
    elif figure == "6":
        for partitions in (5, 20):
            for size in FIGURE_6_SIZES:
                yield from (Setting(partitions, size, 2, epsilon) for epsilon in FIGURE_6_EPSILONS)
    elif figure == "7":
        for partitions in FIGURE_7_PARTITIONS:
            yield from (Setting(partitions, 3, 2, epsilon) for epsilon in FIGURE_7_EPSILONS)
    else:
        yield from _choices()


def _choices() -> Iterable[Setting]:
    for classifier in ("logistic", "tree"):
        for size in (1, 3, 5):
            yield from (Setting(5, size, 2, epsilon, classifier) for epsilon in CHOICE_EPSILONS)
    for score in ("f1", "auc", "accuracy", "none"):
        for scored_on in ("others", "same"):
            if score != "none" or scored_on == "same":
                for base in FIGURE_5.values():
                    yield from (
                        evolve(base, epsilon=epsilon, score=score, scored_on=scored_on) for epsilon in CHOICE_EPSILONS
                    )
