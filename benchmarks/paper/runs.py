"""What is measured, in which order, and how often: every point is kept as soon as it is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import frozen

from benchmarks.figures import Figure
from benchmarks.paper import designs, errors, sweeps, unperturbed
from benchmarks.paper.datasets import DataSet
from benchmarks.paper.kept import Kept
from benchmarks.paper.pipeline import Setting

SEED = 2017
PAPER_SETS = ("adult", "xuetangx", "courses")


@frozen
class Counts:
    """Trials per point. The paper has 500 in figures 4 and 5 and 400 in figures 6 and 7."""

    figure_3: int = 500
    figure_5: int = 500
    figure_6: int = 400
    adult: int = 200
    other: int = 100

    def at(self, effort: float) -> Counts:
        """This part of the trials, at least four each."""
        numbers = (self.figure_3, self.figure_5, self.figure_6, self.adult, self.other)
        return Counts(*(max(4, round(effort * number)) for number in numbers))


Say = Callable[[str], None]


def mechanisms(kept: Kept, counts: Counts, say: Say) -> None:
    """Figures 2 and 3."""
    kept.of("figure2", {}, errors.probabilities)
    kept.of("figure3", {"trials": counts.figure_3}, lambda: errors.expected_errors(counts.figure_3, SEED))
    kept.of("crossovers", {}, lambda: errors.crossovers((0.25, 0.5, 1.0, 2.0, 3.0, 4.0)))
    say("figures 2 and 3 done")


def without_noise(kept: Kept, data: DataSet, counts: Counts, say: Say) -> None:
    """Figure 4 on one data set."""
    trials = counts.figure_5
    kept.of("figure4", {"set": data.name, "trials": trials}, lambda: unperturbed.compare(data, trials, SEED))
    say(f"figure 4 on {data.name} done")


def sweep(kept: Kept, data: DataSet, figure: str, trials: int, say: Say) -> None:
    """Figure 5, 6, 7 or the choices of VIII-D on one data set."""
    for number, setting in enumerate(sweeps.settings_of(figure)):
        key: Figure = {"set": data.name, "trials": trials, "setting": repr(setting)}
        [row] = kept.of(f"figure{figure}", key, _point(data, figure, setting, trials, SEED + number))
        asked = f"{setting.partitions}, {setting.subset_size} at {setting.epsilon}"
        say(f"figure {figure} {data.name} {asked}: {row['auc']:.4f}")


def _point(data: DataSet, figure: str, setting: Setting, trials: int, seed: int) -> Callable[[], list[Figure]]:
    return lambda: [sweeps.point(data, figure, setting, trials, seed)]


def ceilings(kept: Kept, data: DataSet, say: Say) -> None:
    """What no privacy gives: logistic regression on our bins and on raw values."""
    kept.of("ceilings", {"set": data.name}, lambda: [designs.ceiling(data)])
    say(f"ceilings of {data.name} done")


def table(
    kept: Kept,
    data: DataSet,
    epsilons: Iterable[float],
    cohorts: Iterable[int | None],
    trials: int,
    say: Say,
    only: Iterable[str] | None = None,
) -> None:
    """Every design at every epsilon and cohort on one data set; cohorts as large as the data or larger are left out."""
    for peers in cohorts:
        if peers is not None and peers >= len(data.papers_people[0]):
            continue
        for epsilon in epsilons:
            for design in designs.DESIGNS if only is None else only:
                if not designs.applies(data, design):
                    continue
                key: Figure = {"set": data.name, "design": design, "epsilon": epsilon, "peers": peers, "trials": trials}
                [row] = kept.of("utility", key, _cell(data, design, epsilon, peers, trials))
                say(f"{data.name}, {peers or 'all'} peers, epsilon {epsilon}: {design} {row['auc']:.4f}")


def _cell(data: DataSet, design: str, epsilon: float, peers: int | None, trials: int) -> Callable[[], list[Figure]]:
    return lambda: [designs.row(data, design, epsilon, peers, trials, SEED)]
