"""The four data sets of PFDS (Fioretto and Van Hentenryck 2019) as places of declared attributes, and their agents.

Census, diabetic retinopathy, bike sharing and news popularity. Credit is not here. Edges are round numbers: they were
written down with the ranges in sight, as a form's author knows them. Models see places alone: a number as the middle of
its place, from 0 to 1, and each text as a column.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from attrs import frozen

from anon.protocols.trees.attributes import Attribute, NumberAttribute, TextAttribute
from benchmarks.parties.noise import Array, chance

BUCKETS = 10
LABEL = "label"
Table = Mapping[str, Array]


@frozen(eq=False)
class DataSet:
    """Places (rows, attributes) and labels: of two classes, or a number from -1 to 1. `near`: the attribute by which
    rows go to agents, as numbers."""

    name: str
    attributes: tuple[Attribute, ...]
    places: Array
    labels: Array
    near: Array
    agents: int
    regression: bool

    @property
    def classes(self) -> Array:
        """The label as one of two classes, or of ten buckets of equal width."""
        if not self.regression:
            return self.labels
        found: Array = np.clip(np.floor((self.labels + 1) / 2 * BUCKETS), 0, BUCKETS - 1).astype(int)
        return found

    @property
    def kinds(self) -> int:
        """The number of classes or buckets."""
        return BUCKETS if self.regression else 2


def columns_of(attributes: Sequence[Attribute], places: Array) -> Array:
    """Numbers as the middle of their place, from 0 to 1, a column for each text, and a constant."""
    found = [np.ones((len(places), 1))]
    for at, attribute in enumerate(attributes):
        if isinstance(attribute, NumberAttribute):
            found.append((places[:, at, None] + 0.5) / attribute.places)
        else:
            found.append((places[:, at, None] == np.arange(attribute.places)).astype(float))
    return np.hstack(found)


def agents_of(data: DataSet, rows: Array, use: int) -> list[Array]:
    """The rows of each agent: near its drawn value with a chance of one over the distance, as the paper has it."""
    spring, values = chance(2019, use), data.near[rows]
    centres = spring.uniform(data.near.min(), data.near.max(), data.agents)
    step = np.diff(np.unique(data.near)).min()
    shares = np.cumsum(1 / np.maximum(np.abs(values[:, None] - centres), step / 2), axis=1)
    given = (spring.uniform(size=(len(rows), 1)) * shares[:, -1:] > shares).sum(axis=1)
    return [rows[given == agent] for agent in range(data.agents)]


def folds_of(data: DataSet, folds: int) -> Iterator[tuple[Array, Array]]:
    """So many of ten folds, stratified by class: training rows and test rows."""
    order = chance(2019).permutation(len(data.labels))
    order = order[np.argsort(data.classes[order], kind="stable")]
    for fold in range(folds):
        test = np.zeros(len(order), dtype=bool)
        test[order[fold::10]] = True
        yield np.flatnonzero(~test), np.flatnonzero(test)


def _linear(name: str, low: float, high: float, places: int = 40) -> NumberAttribute:
    return NumberAttribute(name, tuple(float(edge) for edge in np.linspace(low, high, places + 1)))


def _powers(name: str, high: float, places: int = 40) -> NumberAttribute:
    """Edges that grow like powers of 1 + x."""
    return NumberAttribute(name, tuple(float(edge) for edge in np.expm1(np.linspace(0, np.log1p(high), places + 1))))


def _read(path: Path) -> Table:
    with gzip.open(path, "rt") as file:
        rows = list(csv.reader(file))
    return {name: np.array(values) for name, values in zip(rows[0], zip(*rows[1:], strict=True), strict=True)}


def _places(attributes: Sequence[Attribute], table: Table) -> Array:
    columns = []
    for attribute in attributes:
        values: list[object] = (
            table[attribute.name].astype(float).tolist()
            if isinstance(attribute, NumberAttribute)
            else table[attribute.name].tolist()
        )
        columns.append([attribute.place(value) for value in values])
    return np.array(columns).T


def _texts(table: Table, *names: str) -> Iterator[TextAttribute]:
    """The values that stand in the file: all of them are in its description."""
    return (TextAttribute(name, tuple(sorted({*table[name].tolist()}))) for name in names)


def census(folder: Path) -> DataSet:
    """Both parts of Adult, 48,842 rows, with 6 numbers and 8 texts."""
    parts = [_read(folder / f"adult_{part}.csv.gz") for part in ("train", "test")]
    table = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    gains = (0, 1, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 10000, 15000, 20000, 100000)
    attributes: tuple[Attribute, ...] = (
        _linear("age", 15, 95), _linear("fnlwgt", 0, 1_500_000, 60), _linear("education-num", 0.5, 16.5, 16),
        NumberAttribute("capital-gain", tuple(map(float, gains))),
        NumberAttribute("capital-loss", (0.0, 1.0, 500.0, 1000.0, 1500.0, 1750.0, 2000.0, 2250.0, 2500.0, 5000.0)),
        _linear("hours-per-week", 0, 100),
        *_texts(table, "workclass", "education", "marital-status", "occupation", "relationship", "race", "sex",
                "native-country"),
    )  # fmt: skip
    labels = (table["income"] == ">50K").astype(int)
    return DataSet("Census", attributes, _places(attributes, table), labels, table["age"].astype(float), 100, False)


def diabetes(folder: Path) -> DataSet:
    """1,151 rows, 19 numbers."""
    table = _read(folder / "diabetic_retinopathy.csv.gz")
    attributes: list[Attribute] = [
        _linear(name, 0, 1, 2) for name in ("quality", "pre_screening", "am_fm_classification")
    ]
    attributes += [_linear(f"ma_{at}", 0, 160) for at in range(1, 7)]
    attributes += [_powers(f"exudate_{at}", 1000) for at in range(1, 9)]
    attributes += [_linear("macula_opticdisc_distance", 0.3, 0.7), _linear("opticdisc_diameter", 0, 0.3)]
    near, labels = table["macula_opticdisc_distance"].astype(float), table["class"].astype(int)
    return DataSet("Diabetes", tuple(attributes), _places(attributes, table), labels, near, 10, False)


def bikes(folder: Path) -> DataSet:
    """17,379 hours. Of the 16 attributes two add up to the label, one is the row's number and one the date: left out.

    The label is the number of bikes, from 0 to 1,000.
    """
    table = _read(folder / "bike_sharing_hour.csv.gz")
    attributes: tuple[Attribute, ...] = (
        *(_linear(name, 0, 1) for name in ("temp", "atemp", "hum", "windspeed")),
        *_texts(table, "season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit"),
    )
    labels = table["cnt"].astype(float) / 500 - 1
    return DataSet("Bikes", attributes, _places(attributes, table), labels, table["temp"].astype(float), 100, True)


def news(folder: Path) -> DataSet:
    """39,000 articles. The label is log10 of the shares, from 0 to 6."""
    table = _read(folder / "online_news_popularity.csv.gz")
    attributes: list[Attribute] = []
    for name in table:
        if name == "shares":
            continue
        values = table[name].astype(float)
        if set(np.unique(values)) <= {0.0, 1.0}:
            attributes.append(_linear(name, 0, 1, 2))
        elif values.max() <= 1:
            attributes.append(_linear(name, -1 if name.endswith("polarity") else 0, 1))
        else:
            attributes.append(_powers(name, 10 ** np.ceil(np.log10(values.max()))))
    labels = np.log10(table["shares"].astype(float)) / 3 - 1
    near = table["n_tokens_title"].astype(float)
    return DataSet("News", tuple(attributes), _places(attributes, table), labels, near, 100, True)


SETS: Mapping[str, Callable[[Path], DataSet]] = {
    "Census": census, "Diabetes": diabetes, "Bikes": bikes, "News": news,
}  # fmt: skip
