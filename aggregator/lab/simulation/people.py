"""The people of a simulation: every feature's and the label's value, found by the study's own queries.

A person's tables hold that person's rows only, as on a peer. Of people with one row each, a query runs once for all
whose row has the same cells in the columns that it can read. Data here is the staff's own (last year's, public or
synthetic); a peer's never comes near this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from math import isfinite
from pathlib import Path

import numpy as np
from attrs import Factory, define, field, frozen
from numpy.typing import NDArray

from aggregator.lab.simulation.csv_file import read_columns
from anon.errors import Malformed
from anon.protocols.categories import Value, label_category
from anon.queries.answers import LABEL, value_of
from anon.queries.lint import lint
from anon.queries.sandbox import Bench, Outcome
from anon.study.features import Label, Table
from anon.study.manifest import Manifest
from anon.study.proposal import Proposal
from anon.tables.streams import Cell
from anon.text.sentences import attributed

Rows = Sequence[Mapping[str, Cell]]


@frozen(eq=False)
class FeatureColumn:
    """One feature of all people: the different values, and for each person the index of theirs. Shape (people,).

    `numbers`: the values as numbers, not-a-number where one is none.
    """

    values: tuple[Value, ...]
    index: NDArray[np.int64]
    numbers: NDArray[np.float64] = field(default=Factory(lambda self: _numbers(self.values), True), repr=False)

    def take(self, chosen: NDArray[np.int64]) -> FeatureColumn:
        """The same feature of the chosen people."""
        return FeatureColumn(self.values, self.index[chosen], self.numbers)


def _numbers(values: Iterable[Value]) -> NDArray[np.float64]:
    numeric = (
        float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else np.nan for value in values
    )
    return np.array([number if isfinite(number) else np.nan for number in numeric], dtype=np.float64)


@frozen(eq=False)
class People:
    """Columns by feature name, and labels 0 or 1 of shape (people,)."""

    columns: Mapping[str, FeatureColumn]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def alike(self) -> str:
        """The one label that all of them have, positive or negative; nothing where they have both."""
        positive = int(self.labels.sum())
        return "positive" if positive == len(self) else "" if positive else "negative"

    def take(self, chosen: NDArray[np.int64]) -> People:
        """The chosen people, by position."""
        columns = {name: column.take(chosen) for name, column in self.columns.items()}
        return People(columns, self.labels[chosen])

    def shuffled(self, generator: np.random.Generator) -> People:
        """The same with labels that have nothing to do with them."""
        return People(self.columns, generator.permutation(self.labels))


def split(count: int, share: float, generator: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of `count` people at random: those who are kept, and the share held out, one at least if it is > 0."""
    if share <= 0:
        return np.arange(count), np.arange(0)
    order, held = generator.permutation(count), max(1, int(share * count))
    return order[held:], order[:held]


def people_from_values(label: Label, records: Iterable[tuple[Mapping[str, Value], Value]]) -> People:
    """People from records of (value by feature name, label value). Raises `Malformed` without any record."""
    rows = list(records)
    if not rows:
        raise Malformed("data: expected at least one person")
    columns = {name: _column([values[name] for values, _ in rows]) for name in rows[0][0]}
    return People(columns, np.array([label_category(label, value) for _, value in rows], dtype=np.int64))


def people_from_rows(
    study: Proposal | Manifest, rows: Iterable[Mapping[str, Cell]], person: str | None = None, as_of: int = 0
) -> People:
    """Run the study's queries for each person: each row is one, or each different value of column `person` is.

    The study must read exactly one table. Raises `Malformed` for missing columns, for queries that do not compile, and
    where members have many records.
    """
    if study.records not in (None, "one"):
        raise Malformed("data: expected members with one record each; `anonml simulate` takes those with many")
    return people_from_values(study.label, evaluate_people(study, grouped(rows, person), as_of))


def people_from_csv(
    study: Proposal | Manifest, path: Path, person: str | None = None, as_of: int = 0
) -> People:
    """`people_from_rows` of a CSV file (or .csv.gz) with a header; names and types are read as the importer does.

    Raises `Malformed` when the file cannot be read.
    """
    return people_from_rows(study, rows_of_csv(path), person, as_of)


def rows_of_csv(path: Path) -> Iterator[Mapping[str, Cell]]:
    """The rows of a CSV file by column. Raises `Malformed` when it cannot be read."""
    columns = read_columns(path)
    return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def grouped(rows: Iterable[Mapping[str, Cell]], person: str | None) -> Iterator[Rows]:
    """The rows of each different value of column `person`, or each row alone."""
    if person is None:
        yield from ([row] for row in rows)
        return
    groups: dict[Cell, list[Mapping[str, Cell]]] = {}
    for row in rows:
        if person not in row:
            raise Malformed(f"data: expected a column {person}, which tells people or parties apart")
        groups.setdefault(row[person], []).append(row)
    yield from groups.values()


def bench_of(study: Proposal | Manifest) -> Bench:
    """The sandbox of a study's one table. Raises `Malformed` for several, and for queries that do not compile."""
    if len(study.tables) != 1:
        raise Malformed(f"data: a CSV file is one table, but the study reads {len(study.tables)}")
    declared, many = {study.tables[0].name: study.tables[0].columns}, study.records not in (None, "one")
    for name, query in queries_of(study).items():
        lint(query, declared, attributed(name), many=many)
    return Bench(declared)


def queries_of(study: Proposal | Manifest) -> dict[str, str]:
    """The query of each feature by name, and of the label, which is the last."""
    return {**{feature.name: feature.query for feature in study.features}, study.label.name: study.label.query}


def evaluate_people(
    study: Proposal | Manifest, groups: Iterable[Rows], as_of: int
) -> Iterator[tuple[dict[str, Value], Value]]:
    """As on a peer: the same sandbox, bounds and rules for what a value may be (`anon.queries`)."""
    table = study.tables[0]
    with closing(bench_of(study)) as bench:
        kinds = [(asked.name, asked.kind, _Asked(bench, asked.query, table, as_of)) for asked in study.features]
        label = _Asked(bench, study.label.query, table, as_of)
        for rows in groups:
            person = _Person(bench, table.name, [cells_of(row, table.columns) for row in rows])
            values = {name: value_of(kind, asked.of(person)) for name, kind, asked in kinds}
            yield values, value_of(LABEL, label.of(person))


_READS_UNNAMED = re.compile(r"[*]|\bnatural\b|\bin\b(?!\s*[(])", re.IGNORECASE)
"""All forms in which SQL reads columns without their names: `*`, a natural join, and `x IN some_table`."""


def columns_read(query: str, columns: Sequence[str]) -> list[int]:
    """The positions of all columns that a query can read, and perhaps of some more: of those whose name it holds."""
    if _READS_UNNAMED.search(query):
        return [*range(len(columns))]
    words = {*re.findall(r"[a-z0-9_]+", query.lower())}
    return [place for place, column in enumerate(columns) if column in words]


@define(eq=False)
class _Person:
    """One person's rows, put on the bench when a query has to run."""

    bench: Bench
    table: str
    rows: list[list[Cell]]
    _there: bool = field(default=False, init=False)

    def be_there(self) -> None:
        if not self._there:
            self.bench.put(self.table, self.rows)
            self._there = True


class _Asked:
    """One query, and its outcome for every row that it met."""

    def __init__(self, bench: Bench, query: str, table: Table, as_of: int) -> None:
        self._bench, self._query, self._as_of = bench, query, as_of
        self._read = columns_read(query, table.columns)
        self._known: dict[str, Outcome] = {}

    def of(self, person: _Person) -> Outcome:
        """Cells are compared as they are written: 1 and 1.0 are two values, as they are to SQL."""
        if len(person.rows) != 1:  # several rows are hardly ever those of another person
            person.be_there()
            return self._bench.scalar(self._query, self._as_of)
        cells = person.rows[0]
        key = repr([cells[place] for place in self._read])
        if key not in self._known:
            person.be_there()
            self._known[key] = self._bench.scalar(self._query, self._as_of)
        return self._known[key]


def cells_of(row: Mapping[str, Cell], columns: Sequence[str]) -> list[Cell]:
    """The cells of a row in this order. Raises `Malformed` for a column that is not there."""
    absent = [column for column in columns if column not in row]
    if absent:
        raise Malformed(f"data: the study reads the columns {', '.join(absent)}, which the file does not have")
    return [row[column] for column in columns]


def _column(values: list[Value]) -> FeatureColumn:
    places: dict[Value, int] = {}
    index = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.int64)
    return FeatureColumn(tuple(places), index)
