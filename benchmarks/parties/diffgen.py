"""DiffGen (Mohammed, Chen, Fung and Yu 2011), with which figure 3 of PFDS compares: sizes, distances and time.

    python -m benchmarks.parties.diffgen --data FOLDER [--draws 10]

The same agent of 440 census records as in `benchmarks.parties.pfds`. All attributes begin as one value. A step makes
one value of one attribute special everywhere: a text's value becomes its children in `TAXONOMY`, an interval its two
halves. A step is chosen by the exponential mechanism, its score the records that their child's majority labels right;
so is where an interval is cut. Each such choice costs epsilon / 2 over (numbers + 2 steps), and counts the other half.
Each combination of values is a leaf with a noisy count of each label, which is cut at 0. It is printed arithmetic, for
a record left out, and stands here to be compared with. Writes its part of docs/rows-and-groups.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence

import numpy as np
from attrs import frozen

from anon.protocols.trees.attributes import NumberAttribute
from benchmarks.data import data_folder
from benchmarks.figures import Figure, publish
from benchmarks.parties.noise import Array, Generator, chance
from benchmarks.parties.pfds import distance
from benchmarks.parties.pfds_page import PAGE, page
from benchmarks.parties.pfds_sets import DataSet, census

TAXONOMY = {
    "workclass": "Private|Self-emp-inc,Self-emp-not-inc|Federal-gov,Local-gov,State-gov|Never-worked,Without-pay",
    "education": "Preschool,1st-4th,5th-6th,7th-8th|9th,10th,11th,12th,HS-grad|Some-college,Assoc-acdm,Assoc-voc|"
                 "Bachelors|Masters,Doctorate,Prof-school",
    "marital-status": "Married-AF-spouse,Married-civ-spouse,Married-spouse-absent|Never-married|"
                      "Divorced,Separated,Widowed",
    "occupation": "Exec-managerial,Prof-specialty,Tech-support,Sales,Adm-clerical|Craft-repair,Farming-fishing,"
                  "Handlers-cleaners,Machine-op-inspct,Transport-moving|Other-service,Priv-house-serv,Protective-serv|"
                  "Armed-Forces",
    "relationship": "Husband,Wife|Own-child,Other-relative|Not-in-family,Unmarried",
    "native-country": "United-States,Canada,Outlying-US(Guam-USVI-etc),Puerto-Rico|England,France,Germany,Greece,"
                      "Holand-Netherlands,Hungary,Ireland,Italy,Poland,Portugal,Scotland,Yugoslavia|Cambodia,China,"
                      "Hong,India,Iran,Japan,Laos,Philippines,Taiwan,Thailand,Vietnam",
}  # fmt: skip
"""The groups below each text as a whole. Values that are not named are a group more. `race` and `sex` have none."""


@frozen(eq=False)
class Value:
    """A value of an attribute: places that are one, and those of the children that it would become."""

    at: int
    places: tuple[int, ...]
    children: tuple[tuple[int, ...], ...] = ()


class Growth:
    """One agent's values, from `steps` steps. `cuts`: of each attribute the values that it has."""

    def __init__(self, data: DataSet, held: Array, epsilon: float, steps: int, spring: Generator) -> None:
        self.data, self.spring = data, spring
        self.places, self.classes = data.places[held], data.classes[held]
        numbers = sum(isinstance(attribute, NumberAttribute) for attribute in data.attributes)
        self.each = epsilon / 2 / (numbers + 2 * steps)
        sizes = [attribute.places for attribute in data.attributes]
        self.cuts = [[self.value(at, tuple(range(size)))] for at, size in enumerate(sizes)]
        for _ in range(steps):
            ways = [value for cut in self.cuts for value in cut if value.children]
            value = ways[self.chosen([self.right(value.at, value.children) for value in ways])]
            children = [self.value(value.at, places) for places in value.children]
            self.cuts[value.at] = [kept for kept in self.cuts[value.at] if kept is not value] + children

    def value(self, at: int, places: tuple[int, ...]) -> Value:
        """A value and what it would become."""
        attribute = self.data.attributes[at]
        if len(places) == 1:
            return Value(at, places)
        if isinstance(attribute, NumberAttribute):
            halves = [(places[:cut], places[cut:]) for cut in range(1, len(places))]
            return Value(at, places, halves[self.chosen([self.right(at, half) for half in halves])])
        if len(places) < attribute.places or attribute.name not in TAXONOMY:
            return Value(at, places, tuple((place,) for place in places))
        named = [group.split(",") for group in TAXONOMY[attribute.name].split("|")]
        groups = [tuple(attribute.texts.index(text) for text in group) for group in named]
        rest = tuple(place for place in places if all(place not in group for group in groups))
        return Value(at, places, (*groups, rest) if rest else tuple(groups))

    def right(self, at: int, parts: Sequence[tuple[int, ...]]) -> int:
        """The records that the commonest label of their part is right about."""
        counts = np.zeros((self.data.attributes[at].places, self.data.kinds), dtype=int)
        np.add.at(counts, (self.places[:, at], self.classes), 1)
        return sum(int(counts[list(part)].sum(axis=0).max()) for part in parts)

    def chosen(self, scores: Sequence[int]) -> int:
        """One of them by the exponential mechanism: no record moves a score by more than 1."""
        return int(np.argmax(self.each / 2 * np.array(scores) + self.spring.gumbel(size=len(scores))))

    def counted(self, epsilon: float) -> Array:
        """The noisy counts of each leaf's labels, cut at 0: the leaves are all combinations of values."""
        shape, cells = tuple(len(cut) for cut in self.cuts), []
        for at, cut in enumerate(self.cuts):
            number = {place: which for which, value in enumerate(cut) for place in value.places}
            cells.append([number[place] for place in self.places[:, at].tolist()])
        leaves = np.ravel_multi_index(np.array(cells), shape)
        exact = np.zeros((int(np.prod(shape)), self.data.kinds))
        np.add.at(exact, (leaves, self.classes), 1)
        noisy = exact + self.spring.laplace(0, 2 / epsilon, exact.shape)
        return np.maximum(np.rint(noisy), 0).astype(int)

    def rows(self, counts: Array) -> Array:
        """Places of the rows: of each value of a leaf any place."""
        leaves = np.repeat(np.arange(len(counts)), counts.sum(axis=1))
        at = np.array(np.unravel_index(leaves, tuple(len(cut) for cut in self.cuts)))
        found = np.empty((len(leaves), len(self.cuts)), dtype=int)
        for number, cut in enumerate(self.cuts):
            for which, value in enumerate(cut):
                there = at[number] == which
                found[there, number] = self.spring.choice(value.places, size=int(there.sum()))
        return found


def measured(data: DataSet, draws: int) -> Iterator[Figure]:
    """A row for each epsilon and depth, which counts the root as in the paper."""
    held = chance(3).permutation(len(data.labels))[:440]
    for epsilon in ("1", "0.1"):
        for depth in (2, 4, 6, 8):
            start, found = time.process_time(), list[tuple[float, float, float]]()
            for draw in range(draws):
                growth = Growth(data, held, float(epsilon), depth - 1, chance(10, draw))
                counts = growth.counted(float(epsilon))
                drawn = growth.rows(counts)
                found.append((len(counts), len(drawn), distance(data.attributes, data.places[held], drawn, draw)))
            spent = (time.process_time() - start) / draws * 1000
            leaves, size, far = np.mean(found, axis=0)
            yield {"epsilon": epsilon, "depth": depth, "leaves": round(leaves), "size": round(size),
                   "wasserstein": round(float(far), 4), "cpu_ms": round(spent)}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, keep, and write the page."""
    parser = argparse.ArgumentParser(description="DiffGen with declared taxonomies, on one agent's census records.")
    parser.add_argument("--data", type=data_folder, required=True)
    parser.add_argument("--draws", type=int, default=10)
    options = parser.parse_args(arguments)
    publish("pfds-diffgen", list(measured(census(options.data), options.draws)), {"draws": options.draws})
    PAGE.write_text(page(PAGE.read_text("utf-8"), "diffgen"), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
