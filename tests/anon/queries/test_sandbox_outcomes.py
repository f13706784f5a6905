"""The sandbox over real files: nothing raises, nothing is written, everything ends within its bounds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from anon.errors import AnonmlError
from anon.queries.lint import Bounds, lint
from anon.queries.sandbox import MissingValue, Reason, copied, opened, over, scalar
from peer.data.importing import import_rows
from tests.support.hostile_queries import MALFORMED, REFUSED
from tests.support.patience import cheap

FEW = Bounds(steps=200_000)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but SQLite's two side files, which only say who is reading."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith(("-shm", "-wal"))}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Path]:
    """A data file; whatever a test asks of it, it must be the same afterwards and have no new neighbours."""
    database = tmp_path / "data.db"
    import_rows(database, "person", ["age", "name", "secret"], [(39, "Ann", 1)])
    import_rows(database, "events", ["ts", "kind", "payload"], [(second, "play", '{"a": 1}') for second in range(50)])
    import_rows(database, "diary", ["entry"], [("dear diary",)])
    before = contents(tmp_path)
    yield database
    assert contents(tmp_path) == before


TABLES = {"person": ("age", "name"), "events": ("ts", "kind", "payload")}


# The lint alone is tried on queries that copy themselves without end: they would keep the SQL compiler busy.
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in (*REFUSED, *MALFORMED) if not name.startswith("copies")])
def test_static_faults_do_nothing_even_if_nobody_linted(database: Path, name: str) -> None:
    query = {**REFUSED, **MALFORMED}[name]
    harmless = ("long text", "open comment")
    outcome = scalar(database, query, 0, TABLES, FEW)
    assert isinstance(outcome, MissingValue) or name in harmless


MISSING = {
    "null": ("select null", Reason.NULL),
    "no row": ("select age from person where 0", Reason.SHAPE),
    "two rows": ("select ts from events", Reason.SHAPE),
    "blob": ("select x'00'", Reason.TYPE),
    "infinity": ("select 1e999", Reason.TYPE),
    "not a number": ("select 1e999 - 1e999", Reason.NULL),
    "sum overflows": ("select sum(a) from (select 9223372036854775807 a union all select 1)", Reason.FAILED),
    "abs overflows": ("select abs(-9223372036854775807 - 1)", Reason.FAILED),
    "bad json": ("select json_extract(name, '$.a') from person", Reason.FAILED),
    "recursion without end": (
        "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n", Reason.EXHAUSTED),
    "cross join": ("select count(*) from events a, events b, events c, events d, events e", Reason.EXHAUSTED),
    "doubling text": (
        "with recursive n(s) as (select 'ab' union all select s || s from n) select max(length(s)) from n",
        Reason.FAILED),
    "replace grows": (
        "with recursive n(s) as (select 'aa' union all select replace(s, 'a', 'aaaa') from n) select count(*) from n",
        Reason.FAILED),
    "long pattern": ("select name like replace('xxxxxxxxxxxxxxxx', 'x', '%a%a%a%a%a%a%a') from person", Reason.FAILED),
    "undeclared table": ("select entry from diary", Reason.FAILED),
    "undeclared table counted": ("select count(*) from diary", Reason.FAILED),
    "undeclared column": ("select secret from person", Reason.FAILED),
    "undeclared column behind the view": ("select secret from main.person", Reason.FAILED),
    "undeclared column under a borrowed name": (
        "with person as (select secret s from main.person) select s from person", Reason.FAILED),
}  # fmt: skip


@pytest.mark.parametrize("name", MISSING)
def test_ends_as_missing(database: Path, name: str) -> None:
    query, reason = MISSING[name]
    with cheap(5):
        assert scalar(database, query, 0, TABLES, FEW) == MissingValue(reason)


VALUES = {
    "select age from person": 39,
    "select name from person;": "Ann",
    "select :as_of - max(ts) from events": 951,
    "select avg(ts) from events": 24.5,
    "select count(*) from events where kind like 'PL%'": 50,
    "select max(d) from (select ts - lag(ts) over (order by ts) d from events)": 1,
    "select json_extract(payload, '$.a') + (payload ->> '$.a') from events limit 1": 2,
    "with e as (select 1 from events) select count(*) from e": 50,
}


@pytest.mark.parametrize("query", VALUES)
def test_values(database: Path, query: str) -> None:
    lint(query, TABLES)
    assert scalar(database, query, 1000, TABLES) == VALUES[query]
    assert scalar(database, query, 1000) == VALUES[query], "without declared tables"


@pytest.mark.slow
def test_like_bomb_ends_by_its_charge_and_not_by_the_clock(database: Path) -> None:
    text = "a" * 60_000
    import_rows(database.with_name("other.db"), "t", ["a"], [(text,)])
    other = database.with_name("other.db")
    query = (
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000) "
        "select count(*) from n, t where a || i like '%" + "_a" * 50 + "b'"
    )
    with cheap(20):
        assert scalar(other, query, 0) == MissingValue(Reason.FAILED)
    for file in database.parent.glob("other.db*"):
        file.unlink()


@pytest.mark.slow
def test_the_limit_is_a_count_and_falls_at_the_same_place(database: Path) -> None:
    """With a step fewer the query ends as missing, every time."""
    query = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) select sum(i) from n"
    enough = 400_000
    least = 0
    while enough - least > 1000:
        middle = (enough + least) // 2
        if isinstance(scalar(database, query, 0, TABLES, Bounds(steps=middle)), MissingValue):
            least = middle
        else:
            enough = middle
    for _ in range(5):
        assert scalar(database, query, 0, TABLES, Bounds(steps=enough)) == 200_010_000
        assert scalar(database, query, 0, TABLES, Bounds(steps=least)) == MissingValue(Reason.EXHAUSTED)


@pytest.mark.slow
def test_memory_is_bounded(database: Path) -> None:
    """Sorting 4,000 rows of some 60,000 characters takes 200 MB: too much for 64, little enough for 2,000."""
    big = (
        "with recursive s(t) as (select replace(replace('xxxxxxxxxxxxxxx', 'x', 'yyyyyyyyyyyyyyyyyyyy'), 'y', "
        "'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"
        "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz')), "
        "n(i) as (select 1 union all select i + 1 from n where i < 4000) "
        "select count(*) from (select t, row_number() over (order by t || i) r from s, n) where r > 0 and length(t) > 9"
    )
    small = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) select sum(i) from n"
    with opened(database, TABLES, Bounds(bytes_of_memory=64 * 2**20)) as sandbox:
        assert sandbox is not None
        for _ in range(2):
            assert sandbox.scalar(big, 0) == MissingValue(Reason.EXHAUSTED)
            assert sandbox.scalar(small, 0) == 200_010_000, "the next query is none the worse"
    assert scalar(database, big, 0, TABLES, Bounds(bytes_of_memory=2000 * 2**20)) == 4000


def test_no_file_no_database_and_a_broken_one(tmp_path: Path) -> None:
    assert scalar(tmp_path / "none.db", "select 1", 0) == MissingValue(Reason.NO_DATA)
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "text.db").write_bytes(b"not a database at all" * 100)
    assert scalar(tmp_path / "text.db", "select 1", 0) == MissingValue(Reason.NO_DATA)
    broken = tmp_path / "broken.db"
    import_rows(broken, "t", ["a"], [("x" * 500,)] * 500)
    data = bytearray(broken.read_bytes())
    data[8192:40960] = b"\xff" * (40960 - 8192)
    broken.write_bytes(data)
    assert scalar(broken, "select sum(length(a)) from t", 0) == MissingValue(Reason.FAILED)


def test_a_malicious_schema_runs_nothing(tmp_path: Path) -> None:
    """Views, computed columns and virtual tables of the data file are not data; a query cannot reach them."""
    database = tmp_path / "data.db"
    connection = sqlite3.connect(database)
    connection.executescript(
        """
        create table person (age, twice as (age * 2));
        insert into person values (21);
        create view spy as select random() as age from person;
        create view person_view as select load_extension('x') as age;
        create virtual table words using fts5(word);
        create trigger t instead of insert on spy begin delete from person; end;
        """
    )
    connection.close()
    for tables in (None, {"person": ("age",), "spy": ("age",), "person_view": ("age",), "words": ("word",)}):
        assert scalar(database, "select age from person", 0, tables) == 21
        for query in (
            "select age from spy", "select count(*) from spy", "select age from person_view",
            "select twice from person", "select count(*) from words", "select word from words",
            "insert into spy values (1)", "select count(*) from words_content", "select main.spy.age from main.spy",
        ):  # fmt: skip
            if tables is None and "words_content" in query:
                continue  # an ordinary table as far as SQLite's schema tells
            assert isinstance(scalar(database, query, 0, tables), MissingValue), query


def test_own_columns_beyond_the_declared_do_not_change_a_query(tmp_path: Path) -> None:
    database = tmp_path / "data.db"
    import_rows(database, "a", ["id", "x", "y"], [(1, 5, 7)])
    import_rows(database, "b", ["id", "y"], [(1, 9)])
    tables = {"a": ("id", "x"), "b": ("id", "y")}
    query = "select x + y from a join b on a.id = b.id"
    lint(query, tables)
    assert scalar(database, query, 0, tables) == 14


def test_a_missing_declared_column_makes_the_table_missing(tmp_path: Path) -> None:
    database = tmp_path / "data.db"
    import_rows(database, "a", ["id"], [(1,)])
    assert isinstance(scalar(database, "select count(*) from a", 0, {"a": ("id", "other")}), MissingValue)


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    database = tmp_path / "data.db"
    connection = sqlite3.connect(database)
    connection.execute("create table t (a)")
    connection.execute("insert into t values (cast(x'ff41' as text))")
    connection.commit()
    connection.close()
    assert isinstance(scalar(database, "select a from t", 0), MissingValue)
    assert isinstance(scalar(database, "select instr(a, 'A') from t", 0), MissingValue)
    assert scalar(database, "select count(*) from t", 0) == 1


def test_reason_is_not_printed() -> None:
    assert "NULL" not in repr(MissingValue(Reason.NULL))
    assert not issubclass(MissingValue, AnonmlError)


def test_reads_while_an_import_is_under_way(database: Path) -> None:
    writer = sqlite3.connect(database, isolation_level=None)
    writer.execute("begin immediate")
    writer.execute("update person set age = 1")
    assert scalar(database, "select age from person", 0, TABLES) == 39
    writer.execute("rollback")
    writer.close()


SETTINGS = {"trusted_schema": 0, "cell_size_check": 1, "temp_store": 2, "mmap_size": 0, "query_only": 1}


def test_below_the_guard_sqlite_is_set_to_trust_no_file_and_to_write_nothing(database: Path) -> None:
    """The guard alone would do. These settings hold if it ever lets something through."""
    copy = copied(database, TABLES)
    assert copy is not None
    with opened(database, TABLES) as in_file, closing(copy):
        in_memory = over(copy, TABLES, FEW)
        for sandbox in (in_file, in_memory):
            assert sandbox is not None
            with sandbox._guard.lifted():
                for name, wanted in SETTINGS.items():
                    assert sandbox._connection.execute(f"PRAGMA {name}").fetchone() in {(wanted,), None}, name
                with pytest.raises(sqlite3.OperationalError, match="readonly"):
                    sandbox._connection.execute("DELETE FROM main.person")
