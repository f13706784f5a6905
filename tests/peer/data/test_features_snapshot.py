"""A snapshot has a value for every feature whatever the data and the queries are, twice the same, and writes
nothing."""

from __future__ import annotations

import itertools
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.errors import Malformed, Refused
from anon.queries.lint import Bounds
from peer.data.evaluate_here import evaluate_here
from peer.data.importing import import_rows
from peer.data.readiness import readiness
from peer.data.snapshot import Snapshot
from peer.rules.checks import check_queries
from tests.support.hostile_queries import ACCEPTED, MALFORMED, REFUSED
from tests.support.tries import examples


@frozen
class Asked:
    name: str
    kind: str
    query: str


TABLES = {"person": ("age", "name"), "events": ("ts", "kind", "payload")}
LABEL = Asked("label", "categorical", "select kind from events limit 1")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    database = tmp_path / "data.db"
    import_rows(database, "person", ["age", "name"], [(39, "Ann")])
    import_rows(database, "events", ["ts", "kind", "payload"], [(1.5, "play", "{}")])
    return database


def test_types_by_kind(database: Path) -> None:
    asked = [
        Asked("integer", "numeric", "select age from person"),
        Asked("real", "numeric", "select ts from events"),
        Asked("text", "numeric", "select name from person"),
        Asked("digits", "numeric", "select cast(age as text) from person"),
        Asked("name", "categorical", "select name from person"),
        Asked("code", "categorical", "select age from person"),
        Asked("fraction", "categorical", "select ts from events"),
        Asked("instant", "numeric", "select :as_of"),
        Asked("nothing", "numeric", "select null"),
    ]
    taken = evaluate_here(database, asked, LABEL, 77, tables=TABLES)
    assert dict(taken.values) == {
        "integer": 39.0, "real": 1.5, "text": None, "digits": None, "name": "Ann", "code": "39", "fraction": None,
        "instant": 77.0, "nothing": None,
    }  # fmt: skip
    assert all(not isinstance(value, int) for value in taken.values.values())
    assert (taken.as_of, taken.label) == (77, "play")


def test_a_number_as_label_is_a_number(database: Path) -> None:
    assert evaluate_here(database, [], Asked("l", "", "select age > 30 from person"), 0).label == 1.0


def test_values_are_never_printed_and_never_change(database: Path) -> None:
    taken = evaluate_here(database, [Asked("a", "categorical", "select name from person")], LABEL, 5)
    assert "Ann" not in f"{taken!r} {taken}"
    assert "play" not in f"{taken!r} {taken}"
    with pytest.raises(TypeError):
        taken.values["a"] = "Bob"  # type: ignore[index]


@pytest.mark.parametrize("value", [b"x", float("inf"), float("nan"), 1, True, []], ids=repr)
def test_a_value_of_another_kind_is_refused(value: object) -> None:
    for values, label in (({"a": value}, None), ({}, value)):
        with pytest.raises(Malformed):
            Snapshot(0, values, label)  # type: ignore[arg-type]
    with pytest.raises(Malformed):
        Snapshot(0, {1: "a"}, None)  # type: ignore[dict-item]


def test_no_data_at_all(tmp_path: Path) -> None:
    asked = [Asked("a", "numeric", "select age from person"), Asked("b", "numeric", "select 1")]
    taken = evaluate_here(tmp_path / "none.db", asked, LABEL, 5, tables=TABLES)
    assert (dict(taken.values), taken.label) == ({"a": None, "b": None}, None)
    assert list(tmp_path.iterdir()) == []


def test_one_feature_that_fails_does_not_touch_the_others(database: Path) -> None:
    asked = [
        Asked("a", "numeric", "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n"),
        Asked("b", "numeric", "select broken from"),
        Asked("c", "numeric", "select age from person"),
    ]
    taken = evaluate_here(database, asked, LABEL, 5, tables=TABLES, bounds=Bounds(steps=100_000))
    assert dict(taken.values) == {"a": None, "b": None, "c": 39.0}


def test_check_queries_names_the_feature() -> None:
    good = Asked("age", "numeric", "select age from person")
    check_queries([good], LABEL, TABLES)
    with pytest.raises(Refused, match=r"^feature “spy”: "):
        check_queries([good, Asked("spy", "numeric", "select random()")], LABEL, TABLES)
    with pytest.raises(Malformed, match="label"):
        check_queries([good], Asked("y", "", "select nothing from person"), TABLES)


def test_readiness(database: Path, tmp_path: Path) -> None:
    assert readiness(database, TABLES).complete
    lacking = readiness(database, {"person": ("age", "wage"), "grades": ("mark",)})
    assert (lacking.missing_tables, lacking.missing_columns) == (("grades",), ("person.wage",))
    assert readiness(tmp_path / "none.db", TABLES).missing_tables == ("person", "events")


# --- anything at all ---

cells = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=10),
    st.sampled_from(
        ["2024-02-30", "2024-01-01T00:00:00Z", '{"a": 1}', '{"a":', "%a%", "9" * 400, "-0.0", "nan", "x" * 5000]
    ),
)
tables_of_data = st.lists(st.tuples(cells, cells, cells), max_size=6)

expressions = st.recursive(
    st.sampled_from(
        [
            "ts", "kind", "payload", "null", "1", "-1", "0.5", "'a'", "1e308", "9223372036854775807", ":as_of", "'$.a'",
            "x'00'",
        ]
    ),
    lambda inner: st.one_of(
        st.builds(
            "({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/", "%", "||", "<", "=", "like", "->>"]), inner
        ),
        st.builds(
            "{}({})".format,
            st.sampled_from(
                [
                    "abs", "max", "min", "sum", "total", "avg", "count", "epoch", "julian", "sqrt", "ln", "exp",
                    "variance", "median", "stddev", "length", "upper", "trim", "round", "sign", "typeof", "random",
                    "json_type", "floor",
                ]
            ),
            inner,
        ),
        st.builds(
            "{}({}, {})".format,
            st.sampled_from(
                ["pow", "coalesce", "nullif", "instr", "substr", "json_extract", "round", "trim", "printf"]
            ),
            inner,
            inner,
        ),
        st.builds("replace({}, {}, {})".format, inner, inner, inner),
        st.builds("cast({} as {})".format, inner, st.sampled_from(["integer", "real", "text", "blob", "numeric"])),
        st.builds("(lag({}) over (order by {}))".format, inner, inner),
    ),
    max_leaves=8,
)
generated = st.one_of(
    st.builds("select {} from events".format, expressions),
    st.builds("select {} from events limit 1".format, expressions),
    st.builds("select max({}) from events".format, expressions),
    st.builds("select sum(v) from (select {} v from events)".format, expressions),
    st.builds(
        (
            "with recursive r(v) as (select {} from events union all select {} from r, events) "
            "select count(*) from r"
        ).format,
        expressions,
        expressions,
    ),
    st.sampled_from(
        [
            query
            for cases in (ACCEPTED, REFUSED, MALFORMED)
            for name, query in cases.items()
            if not name.startswith("copies")
        ]
    ),
    st.text(max_size=30),
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(data=tables_of_data, queries=st.lists(generated, min_size=1, max_size=5), missing_table=st.booleans())
def test_total_over_hostile_data_and_queries(
    data: list[tuple[object, ...]], queries: list[str], missing_table: bool
) -> None:
    with TemporaryDirectory() as folder:
        database = Path(folder) / "data.db"
        connection = sqlite3.connect(database)
        connection.execute("create table person (age, name)")
        if not missing_table:
            connection.execute("create table events (ts, kind, payload)")
            connection.executemany("insert into events values (?, ?, ?)", data)
        connection.commit()
        connection.close()
        before = database.read_bytes()
        asked = [Asked(f"f{i}", ("numeric", "categorical")[i % 2], query) for i, query in enumerate(queries)]
        label = Asked("label", "", queries[0])
        bounds = Bounds(steps=20_000)
        first = evaluate_here(database, asked, label, 1_700_000_000, tables=TABLES, bounds=bounds)
        assert set(first.values) == {feature.name for feature in asked}
        for feature in asked:
            wanted = float if feature.kind == "numeric" else str
            assert first.values[feature.name] is None or isinstance(first.values[feature.name], wanted)
        second = evaluate_here(database, asked, label, 1_700_000_000, tables=TABLES, bounds=bounds)
        assert first == second
        assert database.read_bytes() == before
        assert [file.name for file in Path(folder).iterdir()] == ["data.db"]


def test_a_text_longer_than_any_category_is_not_kept(database: Path) -> None:
    long = (
        "with recursive b(t, n) as (select 'x', 0 union all select t || t, n + 1 from b where n < {}) select max(t) "
        "from b"
    )
    asked = [Asked("short", "categorical", long.format(9)), Asked("long", "categorical", long.format(17))]
    taken = evaluate_here(database, asked, Asked("label", "categorical", long.format(17)), 0, tables=TABLES)
    assert len(str(taken.values["short"])) == 512
    assert (taken.values["long"], taken.label) == (None, None)


def test_all_queries_together_end_in_time_however_many_stretch_it(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that goes on by a second whenever somebody looks at it."""
    slow = (
        "with recursive b(t, n) as (select 'abcdefgh', 0 union all select t || t, n + 1 from b where n < 14), "
        "r(n) as (select 1 union all select n + 1 from r where n < 1000000) "
        "select sum(length(lower(t || r.n))) from b, r where b.n = 14"
    )
    asked = [Asked("first", "numeric", "select age from person")]
    asked += [Asked(f"slow{number}", "numeric", slow) for number in range(200)]
    looks = itertools.count()
    monkeypatch.setattr("anon.queries.sandbox.time", SimpleNamespace(monotonic=lambda: float(next(looks))))
    taken = evaluate_here(database, asked, LABEL, 0, tables=TABLES, seconds=100.0)
    assert next(looks) < 100 + 2 * len(asked), "once the time is over, no query is begun"
    assert taken.values["first"] == 39.0
    assert {value for name, value in taken.values.items() if name != "first"} == {None}
