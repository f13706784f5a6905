"""A simulation evaluates as a peer does: the second evaluator, which knew no bounds and no authorizer, is gone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from aggregator.lab.simulation.people import people_from_rows
from anon.errors import Malformed
from anon.queries.sandbox import Bench, MissingValue
from benchmarks import rooms
from tests.support.fake_aggregator import DECLARED
from tests.support.protocols import parse_proposal

ROOT = Path(__file__).resolve().parents[2]
TOO_LONG = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8000000) SELECT 'many' FROM n WHERE i = "
    "8000000"
)
"""Ends after some seconds where nothing bounds it, with an answer that is one of the study's."""
ROWS = [{"age": age, "cups": "many", "tired": age > 50} for age in (20, 60)]


@pytest.mark.slow
def test_a_query_beyond_the_bounds_counts_as_missing_and_the_simulation_goes_on() -> None:
    text = DECLARED.format()
    proposal = parse_proposal(text.replace("SELECT cups FROM person", TOO_LONG))
    assert proposal != parse_proposal(text)
    people = people_from_rows(proposal, [{**row, "tired": int(row["tired"])} for row in ROWS])
    assert people.columns["cups"].values == (None,) and people.columns["age"].values == (20.0, 60.0)
    assert people.labels.tolist() == [0, 1]


def test_tables_may_be_as_wide_as_they_may_be_declared() -> None:
    """A query has few parameters; a row that the program puts in has as many as there are columns."""
    names = tuple(f"c{number}" for number in range(200))
    bench = Bench({"wide": names})
    bench.put("wide", [range(200)])
    assert bench.scalar("SELECT c199 FROM wide", 0) == 199
    bench.put("wide", [])
    assert bench.scalar("SELECT count(*) FROM wide", 0) == 0
    for query in ("DELETE FROM wide", "INSERT INTO wide (c1) VALUES (1)", "SELECT ?1 + ?2"):
        assert isinstance(bench.scalar(query, 0), MissingValue)
    with pytest.raises(Malformed, match="shorten it"):
        bench.put("wide", [["x" * 300_000, *range(199)]])
    bench.close()


def test_only_the_shared_sandbox_runs_a_studys_query() -> None:
    """Connections that are made elsewhere than in the sandbox know nothing of `as_of`, a query's only parameter."""
    users = {
        path.relative_to(ROOT).as_posix()
        for side in ("anon", "peer", "aggregator")
        for path in sorted((ROOT / side).rglob("*.py"))
        if "as_of" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "execute"
        and any(isinstance(part, ast.Constant) and part.value == "as_of" for one in node.args for part in ast.walk(one))
    }
    assert users == {"anon/queries/lint.py", "anon/queries/sandbox.py"}


@pytest.mark.slow
def test_strangers_queries_run_here_only_over_a_file_of_people() -> None:
    """The page, a backup and the consent screen live in the process that holds the keys: they ask the child as well."""
    users = {
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "peer").rglob("*.py"))
        if re.search(r"\b(evaluate_here|scalar|opened)\b", text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("evaluate_here", "scalar", "opened")
        and not (ast.unparse(node.func) == "opened" and "peer.data.foreign.opened" in rooms.imports(path))  # in a child
    }
    users -= {"peer/run/leaving.py"}  # a function of that name that opens secrets
    assert users == {"peer/data/evaluate_here.py", "peer/data/readiness.py", "peer/predict.py"}
    predicting = (ROOT / "peer/predict.py").read_text("utf-8")
    assert predicting.count("evaluate_here(") == 1 and "yield _predict(model, who, alone, as_of, own)" in predicting
