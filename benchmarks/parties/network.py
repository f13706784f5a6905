"""KDD Cup 99 as Hamm, Cao and Belkin divide it: 22 connections a party, 43,000 public ones, the rest for the test.

A row: numbers as log(1 + x), standardised and clipped to 3 deviations by the public rows alone; one column for each
public value of a text; and a constant. It is then scaled to norm 1. This was settled on public rows.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from math import ceil, sqrt
from pathlib import Path

import numpy as np
from attrs import evolve, frozen

from benchmarks.figures import Figure
from benchmarks.parties.modes import Crowd, Scored, measured, row_of
from benchmarks.parties.noise import Array, chance
from benchmarks.parties.solving import BINARY, newton, own_models

FILE = "kddcup99_10pct.csv.gz"
RECORDS, PUBLIC = 22, 43_000
REHEARSED = PUBLIC // 2 // RECORDS * RECORDS
PARTIES = (1_000, 5_000, 10_000, 20_000)
TEXTS = ("protocol_type", "service", "flag")
OWN_STRENGTH, BATCH_STRENGTH, FURTHEST = 0.01, 0.0001, 3.0
ALONE = 200
"""So many parties' own models are scored."""
LOCAL = ("logistic", "nearest", "tree")
_ORDER, _BATCH = 10, 500


@frozen(eq=False)
class Connections:
    """Distinct rows with labels, and for each connection of the file, in a drawn order, the number of its row.

    `columns`: the same rows with each column within 1 and divided by the root of their number. `texts`: as they are.
    """

    rows: Array
    columns: Array
    attack: Array
    order: Array
    texts: Mapping[str, Sequence[str]]

    @staticmethod
    def of(path: Path) -> Connections:
        """Read the file and draw the order."""
        numbers: dict[str, int] = {}
        with gzip.open(path, "rt") as file:
            names = next(file).strip().split(",")
            places = np.array([numbers.setdefault(line, len(numbers)) for line in file])
        order = places[chance(_ORDER).permutation(len(places))]
        table = dict(zip(names, zip(*(line.strip().split(",") for line in numbers), strict=True), strict=True))
        attack = np.array(table["label"]) != "normal"
        public = np.bincount(order[:PUBLIC], minlength=len(attack)) / PUBLIC
        found = [_number(np.array(table[name], dtype=float), public) for name in names[:-1] if name not in TEXTS]
        numbers_of = len([one for one in found if np.ptp(one[public > 0])])
        found += [one for name in TEXTS for one in _text(np.array(table[name]), public)]
        rows = np.column_stack([*(one for one in found if np.ptp(one[public > 0])), np.ones(len(attack))])
        whole = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        limits = np.where(np.arange(rows.shape[1]) < numbers_of, FURTHEST, 1)
        thin = rows / limits / sqrt(rows.shape[1])
        return Connections(whole.astype(np.float32), thin.astype(np.float32), attack, order, table)

    def scored(self, order: Array) -> Scored:
        """These connections with their labels."""
        found, counts = np.unique(order, return_counts=True)
        return Scored(self.rows[found], self.attack[found], counts / len(order))

    def crowd(self, parties: int, private: Array, public: Array, test: Array, local: str) -> Crowd:
        """The votes of so many parties, which hold `private` one after the other, on the public rows."""
        given = self.scored(public)
        held = private[: parties * RECORDS].reshape(parties, RECORDS)
        groups = np.array_split(held, ceil(parties / _BATCH))
        share = np.sum([self._votes(some, given.rows, local) for some in groups], axis=0)[:, None] / parties
        return Crowd(BINARY, given.rows, given.weights, share - 0.5, parties, self.scored(test))

    def _votes(self, held: Array, rows: Array, local: str) -> Array:
        """How many of these parties vote for an attack on each row."""
        if local == "logistic":
            return np.asarray(np.sum(rows @ self.own(held).T > 0, axis=1))
        if local == "nearest":
            nearest = ((one, np.argmax(rows @ self.rows[one].T, axis=1)) for one in held)
            return np.asarray(np.sum([self.attack[one][at] for one, at in nearest], axis=0))
        from sklearn.tree import DecisionTreeClassifier  # takes a second to import

        trees = (DecisionTreeClassifier(random_state=0).fit(self.rows[one], self.attack[one]) for one in held)
        return np.asarray(np.sum([tree.predict(rows) for tree in trees], axis=0))

    def own(self, held: Array) -> Array:
        """The weights of logistic regression on each party's connections."""
        votes = np.where(self.attack[held], 0.5, -0.5)[..., None]
        return np.asarray(own_models(BINARY, self.rows[held], votes, OWN_STRENGTH)[..., 0])


def _text(values: Array, public: Array) -> list[Array]:
    return [np.where(values == one, 1.0, 0.0) for one in sorted({*values[public > 0]})]


def _number(values: Array, public: Array) -> Array:
    raised = np.log1p(values)
    centre = public @ raised
    spread = np.sqrt(public @ (raised - centre) ** 2)
    return np.asarray(np.clip((raised - centre) / (spread or 1), -FURTHEST, FURTHEST))


def rehearsal(data: Connections, local: str) -> Crowd:
    """Half of the public rows are the records of as many parties as they are enough for, who vote on the others."""
    private, public = data.order[:REHEARSED], data.order[REHEARSED:PUBLIC]
    return data.crowd(REHEARSED // RECORDS, private, public, public, local)


def thin(data: Connections, crowd: Crowd, public: Array, test: Array) -> Crowd:
    """The same votes on the same connections, whose rows are `columns`."""
    other = evolve(data, rows=data.columns)
    return evolve(crowd, rows=other.scored(public).rows, scored=other.scored(test))


def figures(data: Connections, draws: int, sizes: Sequence[int]) -> Iterator[Figure]:
    """All rows of KDD Cup 99, for these numbers of parties with logistic regression, the fewest also with other models.

    `local` of a baseline is empty. Rows of `columns` are scaled as `anon.protocols.vectors.transfer` scales them.
    """
    practice = {local: rehearsal(data, local) for local in LOCAL}
    left = data.order[REHEARSED:PUBLIC]
    practice["columns"] = thin(data, practice[LOCAL[0]], left, left)
    public = data.order[:PUBLIC]
    for parties in sizes:
        private, test = data.order[PUBLIC : PUBLIC + parties * RECORDS], data.order[PUBLIC + parties * RECORDS :]
        about: Figure = {"parties": parties, "tested": len(test)}
        for row in _baselines(data, private, test):
            yield {**about, "local": "", **row}
        for local in LOCAL if parties == min(PARTIES) else LOCAL[:1]:
            crowd = data.crowd(parties, private, public, test, local)
            for row in measured(crowd, practice[local], draws):
                yield {**about, "local": local, **row}
        crowd = thin(data, data.crowd(parties, private, public, test, LOCAL[0]), public, test)
        for row in measured(crowd, practice["columns"], draws, [("statistic", "gaussian")], 0.1):
            yield {**about, "local": "columns", **row}


def _baselines(data: Connections, private: Array, test: Array) -> Iterator[Figure]:
    scored, held = data.scored(test), data.scored(private)
    batch = newton(held.rows.astype(float), np.where(held.labels, 1.0, -1.0), BATCH_STRENGTH, held.weights)
    own = data.own(private[: ALONE * RECORDS].reshape(-1, RECORDS))
    attacks = float(scored.weights @ scored.labels)
    for mode, found in (
        ("batch", scored.accuracy(BINARY, batch[None, :, None])),
        ("indiv", scored.accuracy(BINARY, own[..., None])),
        ("majority", np.array([max(attacks, 1 - attacks)])),
    ):
        yield row_of(len(private) // RECORDS, mode, None, None, None, found)
