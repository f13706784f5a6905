"""Of people with one row each, a query runs once for all whose row has the same cells in the columns it can read."""

from __future__ import annotations

import pytest
from attrs import evolve

from aggregator.lab.simulation.people import columns_read, people_from_rows
from anon.queries.sandbox import Bench, Outcome
from anon.study.features import Table
from tests.lab.test_simulate import proposal, rows

COLUMNS = ("age", "aged", "sex")


@pytest.mark.parametrize(("query", "read"), [
    ("SELECT age FROM person", ["age"]),
    ("SELECT AGE + 1 FROM person -- sex", ["age", "sex"]),
    ('SELECT "aged" FROM person', ["aged"]),
    ("SELECT 1", []),
    ("SELECT sex IN ('a', 'b') FROM person", ["sex"]),
    ("SELECT (1, 2, 3) IN person", [*COLUMNS]),
    ("SELECT (1, 2, 3) IN/* */person", [*COLUMNS]),
    ("SELECT count(*) FROM person", [*COLUMNS]),
    ("SELECT 1 FROM person a NATURAL JOIN person b", [*COLUMNS]),
    ("SELECT max(age) FROM (TABLES)", ["age"]),
])
def test_the_columns_that_a_query_can_read(query: str, read: list[str]) -> None:
    assert [COLUMNS[place] for place in columns_read(query, COLUMNS)] == read


def test_a_query_runs_once_for_the_same_cells_and_again_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    once = Bench.scalar

    def scalar(self: Bench, query: str, as_of: int) -> Outcome:
        asked.append(query)
        return once(self, query, as_of)

    monkeypatch.setattr(Bench, "scalar", scalar)
    study = proposal()
    everybody = list(rows(600, 1))
    found = people_from_rows(study, everybody)
    queries = {one.query for one in (*study.features, study.label)}
    columns = {query: columns_read(query, study.tables[0].columns) for query in queries}
    names = study.tables[0].columns
    different = sum(len({tuple(row[names[at]] for at in read) for row in everybody}) for read in columns.values())
    assert len(asked) == different < 600 * len(queries)
    apart = [people_from_rows(study, [row]) for row in everybody[:40]]
    for name, column in found.columns.items():
        assert [column.values[at] for at in column.index[:40]] == [one.columns[name].values[0] for one in apart]
    assert found.labels[:40].tolist() == [int(one.labels[0]) for one in apart]


def test_numbers_that_sql_tells_apart_are_not_taken_for_one_another() -> None:
    """1 / 2 is 0 and 1.0 / 2 is 0.5; a text is no number."""
    study = proposal()
    query = "SELECT CASE typeof(x) WHEN 'text' THEN 9 ELSE x / 2 END FROM person"
    asked = evolve(study.features[0], query=query, range=(0.0, 10.0), missing=0.0)
    label = evolve(study.label, query="SELECT y FROM person")
    told = evolve(study, features=(asked,), tables=(Table("person", ("x", "y")),), label=label)
    people = people_from_rows(told, [{"x": x, "y": 1} for x in (1, 1.0, "1", None, 1, 1.0)])
    column = people.columns[asked.name]
    assert [column.values[at] for at in column.index] == [0, 0.5, 9, None, 0, 0.5]
