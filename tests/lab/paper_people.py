"""A small made-up data set for the harness: four features, the label follows two of them."""

from __future__ import annotations

import numpy as np

from aggregator.lab.simulation.people import People, people_from_rows
from anon.study.proposal import Proposal
from benchmarks.paper.datasets import DataSet, split
from benchmarks.paper.studies import Dictionary, Number, Text

DICTIONARY = Dictionary(
    "Made up",
    "label",
    (1,),
    (0,),
    0.4,
    (
        Number("signal", 0, 10),
        Number("noise", -1, 1),
        Text("circle", ("a",)),
        Text("flag", ("yes",)),
    ),
)


def rows(count: int, seed: int = 5) -> list[dict[str, float | str | None]]:
    generator = np.random.default_rng(seed)
    found: list[dict[str, float | str | None]] = []
    for _ in range(count):
        signal, group = float(generator.gamma(2, 1.5)), str(generator.choice(["a", "b", "c"]))
        chance = 1 / (1 + np.exp(-(0.9 * (signal - 3) + (1.2 if group == "a" else -0.6))))
        found.append(
            {
                "signal": round(signal, 1),
                "noise": round(float(generator.uniform(-1, 1)), 2),
                "circle": group,
                "flag": str(generator.choice(["yes", "no"])),
                "label": int(generator.random() < chance),
            }
        )
    return found


def made_up(count: int = 3000) -> DataSet:
    def read(study: Proposal) -> tuple[People, People]:
        return split(people_from_rows(study, rows(count)))

    return DataSet("made-up", DICTIONARY.title, DICTIONARY.guess, DICTIONARY.papers(), DICTIONARY.ours(4), read)
