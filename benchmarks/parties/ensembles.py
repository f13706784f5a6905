"""Ensembles of groups' models with right noise: group sizes, records, epsilon in parts, uneven data, and a liar.

    python -m benchmarks.parties.ensembles --data FOLDER [--runs 3] [--page]

FOLDER holds the a9a and Spambase files (.gz). As the right columns of `benchmarks.parties.groups`: records divided by
their own norm, the mean loss plus (lambda / 2) |w|^2, Gaussian noise at delta 1e-6, and the lambda that does best on
held-out records, which is not charged. Each model has one noise. A receiver of the protocol adds all of it, so that a
study with two receivers has noise that is longer by the root of 2. `--page` writes docs/ensembles.md from the rows that
are kept. Fails where a claim of that page does not hold.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import sqrt

import numpy as np
from attrs import evolve, frozen

from anon.protocols.models.beside import weights_of
from anon.protocols.sum.groups.drawing import cut
from anon.protocols.vectors.logistic import longest_weights
from benchmarks.data import data_folder
from benchmarks.figures import OUT, Figure, publish
from benchmarks.parties.ensembles_page import write_page
from benchmarks.parties.groups import TASKS, Task
from benchmarks.parties.noise import Array, Generator, chance, deviation
from benchmarks.parties.solving import logistic, newton

STRENGTHS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 1.0)
CHOOSING, TESTED = 2000, 4000
"""Held-out records that choose lambda, and those that give errors, at most."""
ALPHA, LEAST, PEERS, RECORDS, GROUP, TURNS = 0.3, 40, 10, 300, 5, 2
"""Of uneven data: Dirichlet's parameter, the fewest records, and ten peers in groups of five, two aggregations."""
NONE = "none"


@frozen
class Setting:
    """Peers with records, who publish by groups, at an epsilon for all parts. `parts`: aggregations."""

    peers: int
    records: int
    group: int
    epsilon: str
    parts: int = 1


def sizes_of(task: str) -> list[Setting]:
    """Groups of 1 to 30 among 30 peers."""
    cost = "1"
    return [Setting(30, 300 if task == "Adult" else 120, group, cost) for group in (1, 5, 10, 15, 30)]


SETTINGS: Mapping[str, Sequence[Setting]] = {
    "sizes": (),
    "records": tuple(
        Setting(10, records, 10, epsilon) for records in (100, 300, 1000, 3000) for epsilon in ("0.1", "0.5", "1", "4")
    ),
    "parts": tuple(Setting(30, 300, 10, epsilon, parts) for epsilon in ("1", "0.1") for parts in (1, 2, 4, 8, 16, 32)),
    "epsilon": tuple(Setting(10, 300, 10, epsilon) for epsilon in ("0.03125", "0.125", "0.5", "2", "8", "32", NONE)),
    "peers": tuple(Setting(peers, 300, 5, "1") for peers in (5, 10, 20, 50)),
}
"""The thesis' tables 6.12, 6.13, 9.7, 9.8; figures 6.5 to 6.7; 6.9; 6.1; 6.8."""


def unit_rows(task: Task) -> Task:
    """The same with each record of norm 1."""
    train, test = (some / np.linalg.norm(some, axis=1, keepdims=True) for some in (task.train, task.test))
    return Task(task.name, train, task.train_labels, test[:TESTED], task.test_labels[:TESTED], 1.0)


def width_of(length: int, epsilon: str, parts: int) -> float:
    """The noise's deviation for a move of 1, where so many sums are told of each record."""
    return 0.0 if epsilon == NONE else deviation(length, epsilon, parts)


class Fits:
    """Local models of each run, fitted once for peers and records."""

    def __init__(self, task: Task) -> None:
        self.task, self._kept = task, dict[tuple[int, int, int], tuple[Mapping[float, Array], Array]]()

    def of(self, run: int, peers: int, records: int) -> tuple[Mapping[float, Array], Array]:
        """Models (peers, columns) by lambda, and the places of records that no peer holds."""
        if (run, peers, records) not in self._kept:
            task, order = self.task, chance(31, run).permutation(len(self.task.train))
            held = order[: peers * records].reshape(peers, records)
            self._kept[run, peers, records] = {
                strength: np.array([newton(task.train[some], task.train_labels[some], strength) for some in held])
                for strength in STRENGTHS
            }, order[peers * records :][:CHOOSING]
        return self._kept[run, peers, records]


def published(models: Array, setting: Setting, records: int, strength: float, spring: Generator) -> list[Array]:
    """The noisy mean of each group, with its members' places before it: (members, model) one after the other."""
    found: list[Array] = []
    width = width_of(models.shape[1], setting.epsilon, setting.parts)
    for _part in range(setting.parts):
        order = spring.permutation(len(models))
        for members in map(np.array, cut(order.tolist(), setting.group)):
            moved = 2 / (len(members) * records * strength)
            found += [members, models[members].mean(axis=0) + moved * width * spring.standard_normal(models.shape[1])]
    return found


def ways_of(rows: Array, labels: Array, models: Array, told: Sequence[Array]) -> Mapping[str, Array]:
    """The errors of peers: alone, of the published ensemble alone, and of it beside their own, by both ways."""
    yes, own = (labels > 0)[:, None], logistic(rows @ models.T)
    members, shared = told[::2], logistic(rows @ np.array(told[1::2]).T)
    to_all = (own + shared.sum(axis=1, keepdims=True)) / (1 + shared.shape[1])
    in_group, many = own.copy(), np.ones(len(models))
    for number, group in enumerate(members):
        in_group[:, group] += shared[:, [number]]
        many[group] += 1
    together = {"local": own, "published alone": shared.mean(axis=1, keepdims=True), "to the group": in_group / many,
                "to all": to_all}  # fmt: skip
    return {way: np.mean((share > 0.5) != yes, axis=0) for way, share in together.items()}


def measured(kind: str, fits: Fits, setting: Setting, runs: int) -> Iterator[Figure]:
    """A row for each way: mean error, deviation over runs, and over peers, at the way's best lambda."""
    task, tries = fits.task, dict[str, dict[float, list[tuple[float, float, float]]]]()
    for run in range(runs):
        fitted, left = fits.of(run, setting.peers, setting.records)
        for strength, models in fitted.items():
            told = published(models, setting, setting.records, strength, chance(32, run))
            tried = ways_of(task.train[left], task.train_labels[left], models, told)
            tested = ways_of(task.test, task.test_labels, models, told)
            for way, errors in tested.items():
                spread = float(errors.std(ddof=1)) if len(errors) > 1 else 0.0
                line = (float(tried[way].mean()), float(errors.mean()), spread)
                tries.setdefault(way, {}).setdefault(strength, []).append(line)
    for way, by_strength in tries.items():
        best = min(STRENGTHS, key=lambda strength: np.mean([line[0] for line in by_strength[strength]]))
        lines = np.array(by_strength[best])
        yield {"kind": kind, "set": task.name, "peers": setting.peers, "records": setting.records,
               "group": setting.group, "epsilon": setting.epsilon, "parts": setting.parts, "way": way,
               "lambda": round(best, 5), "error": round(float(lines[:, 1].mean()), 4),
               "over_runs": round(float(lines[:, 1].std(ddof=1)), 4),
               "over_peers": round(float(lines[:, 2].mean()), 4),
               "quiet": _quiet(fits, setting, best, runs) if (kind, way) == ("sizes", "to all") else None}  # fmt: skip


def _quiet(fits: Fits, setting: Setting, strength: float, runs: int) -> float:
    """The spread over peers to all without noise, at the same lambda: own models make it, as groups' are alike."""
    task, spreads = fits.task, list[float]()
    for run in range(runs):
        models = fits.of(run, setting.peers, setting.records)[0][strength]
        told = published(models, evolve(setting, epsilon=NONE), setting.records, strength, chance(32, run))
        errors = ways_of(task.test, task.test_labels, models, told)["to all"]
        spreads.append(float(errors.std(ddof=1)))
    return round(float(np.mean(spreads)), 4)


def by_lambda(fits: Fits, runs: int) -> Iterator[Figure]:
    """Figures 6.2 to 6.4: the published mean of ten peers at each lambda."""
    for epsilon in (NONE, "1", "0.1"):
        setting = Setting(PEERS, RECORDS, PEERS, epsilon)
        for strength in STRENGTHS:
            found = []
            for run in range(runs):
                models = fits.of(run, PEERS, RECORDS)[0][strength]
                told = published(models, setting, RECORDS, strength, chance(32, run))
                found.append(ways_of(fits.task.test, fits.task.test_labels, models, told)["published alone"][0])
            yield {"kind": "lambda", "set": fits.task.name, "epsilon": epsilon, "lambda": round(strength, 5),
                   "error": round(float(np.mean(found)), 4),
                   "over_runs": round(float(np.std(found, ddof=1)), 4)}  # fmt: skip


# Uneven data, and a liar


def uneven(kind: str, task: Task, spring: Generator) -> list[Array]:
    """The places of each peer's records: as many with each its share of labels, or of different numbers."""
    if kind == "size":
        sizes = np.maximum(spring.dirichlet([ALPHA] * PEERS) * PEERS * RECORDS, LEAST).astype(int)
        return np.split(spring.permutation(len(task.train))[: sizes.sum()], sizes.cumsum()[:-1])
    of = [spring.permutation(np.flatnonzero(task.train_labels == label)) for label in (-1, 1)]
    shares = spring.dirichlet([ALPHA, ALPHA], size=PEERS)[:, 1] if kind == "label" else np.full(PEERS, 0.24)
    held = []
    for share in shares:
        yes = min(round(share * RECORDS), len(of[1]))
        held.append(spring.permutation(np.concatenate([of[1][:yes], of[0][: RECORDS - yes]])))
        of = [of[0][RECORDS - yes :], of[1][yes:]]
    return held


def weighed(task: Task, kind: str, liar: str, epsilon: str, strength: float, spring: Generator) -> Figure:
    """Errors of one run, on records like the peer's own and on everybody's; of all peers but the liar, who is first."""
    held, groups = uneven(kind, task, spring), Setting(PEERS, RECORDS, GROUP, epsilon, TURNS)
    parts = [(some[np.arange(len(some)) % 4 > 0], some[::4]) for some in held]
    models = np.array([_fitted(task, some, strength) for some in held])
    sent = models.copy()
    sent[0] *= {"": 1, "turned": -1, "times 100": 100}[liar]
    fewest = LEAST if kind == "size" else RECORDS
    told = published(sent, groups, fewest, strength, spring)
    width, length = width_of(models.shape[1], epsilon, TURNS), models.shape[1]
    farthest = [
        float(longest_weights(Fraction(strength).limit_denominator(1000)))
        + 2 / (len(members) * fewest * strength) * width * sqrt(length + 2 * sqrt(14 * length) + 28)
        for members in told[::2]
    ]
    stay = [np.linalg.norm(model) <= most for model, most in zip(told[1::2], farthest, strict=True)]
    shared = np.array(told[1::2])[stay]
    found: dict[str, list[float]] = {}
    yes = task.test_labels > 0
    for number, (fit, back) in list(enumerate(parts))[bool(liar) :]:
        own = _fitted(task, fit, strength)
        every = np.vstack([own[None], shared])
        wrong = ((task.train[back] @ every.T > 0) != (task.train_labels[back] > 0)[:, None]).sum(axis=0)
        positive = float(np.mean(task.train_labels[held[number]] > 0))
        guess = min(int((task.train_labels[back] > 0).sum()), int((task.train_labels[back] < 0).sum()))
        shares = logistic(task.test @ every.T)
        for way, says in {
            "own": np.eye(len(every))[0], "all alike": np.full(len(every), 1 / len(every)),
            "unweighted": weights_of(wrong.tolist(), guess, len(back), False),
            "weighted": weights_of(wrong.tolist(), guess, len(back), True),
        }.items():  # fmt: skip
            miss = (shares @ np.array(says) > 0.5) != yes
            like = positive * miss[yes].mean() + (1 - positive) * miss[~yes].mean()
            found.setdefault(f"{way}, like its own", []).append(float(like))
            found.setdefault(f"{way}, everybody's", []).append(float(miss.mean()))
    return {**{key: float(np.mean(values)) for key, values in found.items()}, "refused": sum(not one for one in stay)}


def _fitted(task: Task, some: Array, strength: float) -> Array:
    return newton(task.train[some], task.train_labels[some], strength * max(1.0, LEAST / len(some)))


def weighing(task: Task, runs: int) -> Iterator[Figure]:
    """A row for each kind of data, liar and epsilon: means and deviations over runs."""
    cases = [(kind, "") for kind in ("even", "label", "size")]
    for kind, liar in [*cases, ("even", "turned"), ("even", "times 100")]:
        for epsilon in (NONE, "1"):
            lines = [weighed(task, kind, liar, epsilon, 0.003, chance(33, run)) for run in range(runs)]
            row: Figure = {"kind": "weighing", "set": task.name, "data": kind, "liar": liar, "epsilon": epsilon}
            for key in lines[0]:
                values = [float(str(line[key])) for line in lines]
                row[key] = round(float(np.mean(values)), 4)
                row[f"{key}, over runs"] = round(float(np.std(values, ddof=1)), 4)
            yield row


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and keep; or write the page. 1 where a claim does not hold."""
    parser = argparse.ArgumentParser(description="Ensembles of groups' models.")
    parser.add_argument("--data", type=data_folder)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", choices=[*SETTINGS, "lambda", "weighing"])
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args(arguments)
    if options.data is not None:
        for kind in [options.only] if options.only else [*SETTINGS, "lambda", "weighing"]:
            rows = list[Figure]()
            for name in ("Adult", "Spambase"):
                fits = Fits(unit_rows(TASKS[name](options.data)))
                if kind == "weighing":
                    rows += weighing(fits.task, options.runs * 2) if name == "Adult" else ()
                elif kind == "lambda":
                    rows += by_lambda(fits, options.runs) if name == "Spambase" else ()
                elif name == "Adult" or kind in ("sizes", "epsilon"):
                    for setting in SETTINGS[kind] or sizes_of(name):
                        rows += measured(kind, fits, setting, options.runs)
            publish(f"ensembles-{kind}", rows, {"runs": options.runs})
    rows = [row for file in sorted(OUT.glob("ensembles-*.json")) for row in json.loads(file.read_text("utf-8"))["rows"]]
    missed = write_page(rows, options.runs) if options.page else []
    print(*(f"missed: {words}" for words in missed), sep="\n")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
