"""The list of measurements, their order and number: every point is kept as soon as it is there.

Jobs share nothing but the data sets, which are read before the processes part, so that two cores do them in half the
time. Every job has a seed of its own: what it finds does not depend on who does it, nor on what was done before.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from attrs import evolve, frozen
from threadpoolctl import threadpool_limits

from benchmarks import utility
from benchmarks.figures import Figure
from benchmarks.paper import designs, errors, sweeps, unperturbed
from benchmarks.paper.datasets import DataSet
from benchmarks.paper.kept import Kept
from benchmarks.paper.pipeline import Setting

SEED = 2017
PAPER_SETS = ("adult", "xuetangx", "courses")
COHORTS = (None, 5000, 2000, 1000)
_NICE = 10


@frozen
class Counts:
    """Trials per point. The paper has 500 in figures 4 and 5 and 400 in figures 6 and 7. `papers`, `ours`, `pairs`: in
    the utility tables, of the paper's pipeline, our designs, and those of them that ask about pairs."""

    figure_3: int = 500
    figure_5: int = 500
    figure_6: int = 400
    adult: int = 200
    papers: int = 200
    ours: int = 200
    pairs: int = 100

    def at(self, effort: float) -> Counts:
        """This part of the trials, at least four each."""
        numbers = (self.figure_3, self.figure_5, self.figure_6, self.adult, self.papers, self.ours, self.pairs)
        return Counts(*(max(4, round(effort * number)) for number in numbers))

    def of(self, design: str) -> int:
        """Trials of one cell of a utility table."""
        return self.papers if design in designs.PAPERS else self.pairs if designs.PAIRS in design else self.ours


@frozen
class Job:
    """One measurement, under which figure and key it is kept, and what to call it meanwhile."""

    figure: str
    key: Figure
    name: str
    measure: Callable[[], list[Figure]]


Say = Callable[[str], None]


def do(kept: Kept, jobs: Iterable[Job], say: Say, processes: int = 1) -> None:
    """Measure what the present code has not measured yet, in this order, and keep each when it is there."""
    missing = [job for job in jobs if not kept.has(job.figure, job.key)]
    for job, rows in zip(missing, _measured(missing, processes), strict=True):
        kept.add(job.figure, job.key, rows)
        told = ", ".join(f"{row['auc']:.4f}" for row in rows[:1] if isinstance(row.get("auc"), float))
        say(f"{job.figure} {job.name}: {told or 'done'}")


def _measured(jobs: Sequence[Job], processes: int) -> Iterator[list[Figure]]:
    if processes == 1 or len(jobs) < 2:
        yield from (_timed(job) for job in jobs)
        return
    global _SHARED  # the processes find the jobs here, data sets and all; nothing but a number is sent to them
    _SHARED = jobs
    context = multiprocessing.get_context("fork")
    with context.Pool(processes, initializer=partial(os.nice, max(0, _NICE - os.nice(0)))) as pool:
        yield from pool.imap(_shared, range(len(jobs)))


_SHARED: Sequence[Job] = ()


def _shared(number: int) -> list[Figure]:
    return _timed(_SHARED[number])


def _timed(job: Job) -> list[Figure]:
    """The rows, the first with the processor's time in it."""
    begun = time.process_time()
    with threadpool_limits(1):
        rows = job.measure()
    return [{**row, "cpu_seconds": time.process_time() - begun if at == 0 else 0.0} for at, row in enumerate(rows)]


def mechanisms(counts: Counts) -> list[Job]:
    """Figures 2 and 3."""
    trials = counts.figure_3
    return [
        Job("figure2", {}, "p and q", errors.probabilities),
        Job("figure3", {"trials": trials}, "errors", lambda: errors.expected_errors(trials, SEED)),
        Job("crossovers", {}, "mechanisms", lambda: errors.crossovers((0.25, 0.5, 1.0, 2.0, 3.0, 4.0))),
    ]


def without_noise(data: DataSet, counts: Counts) -> list[Job]:
    """Figure 4 on one data set."""
    trials = counts.figure_5
    key: Figure = {"set": data.name, "trials": trials}
    return [Job("figure4", key, data.name, lambda: unperturbed.compare(data, trials, SEED))]


def sweep(data: DataSet, figure: str, trials: int) -> list[Job]:
    """Figure 5, 6, 7 or the choices of VIII-D on one data set."""
    return [
        _point(data, figure, setting, trials, SEED + number)
        for number, setting in enumerate(sweeps.settings_of(figure))
    ]


def _point(data: DataSet, figure: str, setting: Setting, trials: int, seed: int) -> Job:
    key: Figure = {"set": data.name, "trials": trials, "setting": repr(setting)}
    name = f"{data.name} {setting.partitions}, {setting.subset_size} at {setting.epsilon}"
    return Job(f"figure{figure}", key, name, lambda: [sweeps.point(data, figure, setting, trials, seed)])


def ceilings(data: DataSet) -> list[Job]:
    """The result without privacy: logistic regression on our bins and on raw values."""
    return [Job("ceilings", {"set": data.name}, data.name, lambda: [designs.ceiling(data)])]


def cells_of(data: DataSet, cohorts: Iterable[int | None]) -> Iterator[designs.Asked]:
    """Every cohort smaller than the data set (None: all) at every epsilon; trials are still to be set."""
    for peers in cohorts:
        if peers is None or peers < len(data.papers_people[0]):
            epsilons = designs.EPSILONS if data.name == "adult" and peers is None else designs.OTHER_EPSILONS
            yield from (designs.Asked(epsilon, peers, 0, SEED) for epsilon in epsilons)


def table(data: DataSet, asked: designs.Asked, names: Iterable[str], counts: Counts) -> list[Job]:
    """These designs in one cell."""
    return [_cell(data, name, evolve(asked, trials=counts.of(name))) for name in names]


def _cell(data: DataSet, design: str, asked: designs.Asked) -> Job:
    key: Figure = {"set": data.name, "design": design, "epsilon": asked.epsilon, "peers": asked.peers,
                   "trials": asked.trials}  # fmt: skip
    name = f"{data.name}, {asked.peers or 'all'} peers, epsilon {asked.epsilon}: {design}"
    return Job("utility", key, name, lambda: [designs.row(data, design, asked)])


def choices(data: DataSet, asked: designs.Asked) -> list[Job]:
    """The choice of `study plan` for one cell, and with declared cuts where there are any."""
    jobs = []
    for declared in (False, True) if data.declared_study is not None else (False,):
        key: Figure = {"set": data.name, "epsilon": asked.epsilon, "peers": asked.peers, "declared": declared}
        name = f"{data.name}, {asked.peers or 'all'} peers, epsilon {asked.epsilon}" + ", declared cuts" * declared
        jobs.append(Job("plan", key, name, partial(_chosen, data, asked, declared)))
    return jobs


def _chosen(data: DataSet, asked: designs.Asked, declared: bool) -> list[Figure]:
    return [designs.chosen(data, asked, declared)]


def as_planned(kept: Kept, data: DataSet, cells: Iterable[designs.Asked], counts: Counts) -> list[Job]:
    """The plan's choice, in tables that may not list it."""
    jobs: list[Job] = []
    for asked in cells:
        rows = [row for row in kept.rows("plan") if row["set"] == data.name and row["peers"] == asked.peers]
        names = dict.fromkeys(str(row["chosen"]) for row in rows if row["epsilon"] == asked.epsilon)
        jobs += table(data, asked, names, counts)
    return jobs


def adult(data: DataSet, counts: Counts) -> list[Job]:
    """The goals on Adult, by the study and the guesses of `benchmarks.utility`."""
    return [_goal(data, epsilon, counts.adult) for epsilon in utility.GOALS]


def _goal(data: DataSet, epsilon: float, trials: int) -> Job:
    def measure() -> list[Figure]:
        people, test = data.declared_people
        case = utility.planned(epsilon, len(people))
        return [{**utility.measure(case, people, test, trials), "epsilon": epsilon, "trials": trials}]

    return Job("adult", {"epsilon": epsilon, "trials": trials}, f"goal at {epsilon}", measure)
