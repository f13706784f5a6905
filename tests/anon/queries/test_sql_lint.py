"""Static faults: one case for each thing a query may not be. No data is involved."""

from __future__ import annotations

import math
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon.errors import Malformed, Refused
from anon.queries.functions import like, register
from anon.queries.lint import PERMITTED, describe, lint
from anon.text.foreign import Quoted
from anon.text.sentences import say
from tests.support.hostile_queries import ACCEPTED, MALFORMED, REFUSED
from tests.support.patience import cheap

TABLES = {"person": ("age", "name"), "events": ("ts", "kind", "payload")}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepts(name: str) -> None:
    lint(ACCEPTED[name], TABLES)


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    with cheap(), pytest.raises(Refused, match=r"^feature “f”: "):
        lint(REFUSED[name], TABLES, say("feature {name}", name=Quoted("f")))


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name: str) -> None:
    with pytest.raises(Malformed, match=r"^the label: "):
        lint(MALFORMED[name], TABLES, say("the label"))


@pytest.mark.parametrize(
    "tables",
    [
        {"sqlite_x": ["a"]},
        {"a b": ["a"]},
        {"t": ['a"b']},
        {"t": []},
        {"t": ["a", "a"]},
        {"T": ["a"]},
        {"t; drop": ["a"]},
    ],
)
def test_bad_declarations(tables: dict[str, list[str]]) -> None:
    with pytest.raises(Malformed):
        lint("select 1", tables)


def test_copies_are_counted_under_any_spelling_of_the_name() -> None:
    for spelling in ('"{}"', "[{}]", "`{}`", "'{}'", "main_{}"):
        names = [spelling.format(f"c{level}") for level in range(30)]
        steps = "".join(f", {names[i]} as not materialized (select x.a from {names[i - 1]} x, {names[i - 1]} y)"
                        for i in range(1, 30))
        with pytest.raises(Refused, match="common table"):
            lint(f"with {names[0]}(a) as (select 1){steps} select count(*) from {names[29]}", TABLES)


def test_every_permitted_function_is_described_and_exists() -> None:
    text = describe()
    assert all(f"`{name}`" in text for name in PERMITTED)
    for name in PERMITTED - {"->", "->>"}:
        assert not {"now", "random"} & {name}
        for arguments in ("1", "1, 2", "1, 2, 3", ""):
            for window in ("", " over ()"):
                try:
                    lint(f"select {name}({arguments}){window}", {})
                except (Malformed, Refused):
                    continue
                break
            else:
                continue
            break
        else:
            pytest.fail(f"{name} cannot be called at all")


# --- our own functions ---


def own(expression: str, *arguments: object, spent: list[int] | None = None) -> object:
    connection = sqlite3.connect(":memory:")
    register(connection, (spent if spent is not None else []).append, 1000)
    return connection.execute(f"select {expression}", arguments).fetchone()[0]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("epoch('1970-01-02')", 86400.0),
        ("epoch('1970-01-01T01:00:00+01:00')", 0.0),
        ("epoch('1970-01-01 00:00:01.5Z')", 1.5),
        ("epoch(12)", 12.0),
        ("epoch('now')", None),
        ("epoch('yesterday')", None),
        ("epoch(null)", None),
        ("epoch(x'00')", None),
        ("julian('2000-01-01T12:00:00')", 2451545.0),
        ("sqrt(-1)", None),
        ("sqrt('4')", None),
        ("ln(0)", None),
        ("log(100)", 2.0),
        ("exp(1e6)", None),
        ("pow(2, 10)", 1024.0),
        ("pow(-8, 0.5)", None),
        ("pow(10, 400)", None),
        ("sign(-3)", -1),
        ("floor(-1.5)", -2.0),
        ("instr('hello', 'l')", 3),
        ("instr('hello', 'z')", 0),
        ("replace('aba', 'a', 'cc')", "ccbcc"),
        ("replace('aba', '', 'c')", "aba"),
        ("trim('  a ')", "a"),
        ("trim('xaxx', 'x')", "a"),
        ("variance(1)", None),
        ("(select variance(column1) from (values (1), (2), (3), (null), ('x')))", 1.0),
        ("(select stddev(column1) from (values (2), (4)))", math.sqrt(2)),
        ("(select median(column1) from (values (9), (1), (2), (3)))", 2.5),
        ("(select variance(column1) from (values (1e308), (-1e308)))", None),
        ("(select median(column1) from (select 1 column1 where 0))", None),
    ],
)
def test_own_functions(expression: str, expected: object) -> None:
    assert own(expression) == expected


def test_text_functions_charge_and_are_bounded() -> None:
    spent: list[int] = []
    own("replace(?, 'a', 'b')", "a" * 900, spent=spent)
    assert sum(spent) > 0
    for expression in ("replace(?, 'a', 'bb')", "? like '" + "_" * 200 + "'", "trim(?, '" + "x" * 200 + "')"):
        with pytest.raises(sqlite3.OperationalError):
            own(expression, "a" * 900)


letters = st.text(alphabet="aAbBé%_!\n", max_size=12)


@given(pattern=letters, text=letters)
def test_like_agrees_with_sqlite(pattern: str, text: str) -> None:
    expected = sqlite3.connect(":memory:").execute("select ? like ?", (text, pattern)).fetchone()[0]
    assert like(pattern, text) == bool(expected)


@given(pattern=letters.filter(lambda pattern: not pattern.endswith("!")), text=letters)
def test_like_with_escape_agrees_with_sqlite(pattern: str, text: str) -> None:
    expected = sqlite3.connect(":memory:").execute("select ? like ? escape '!'", (text, pattern)).fetchone()[0]
    assert like(pattern, text, "!") == bool(expected)
