"""Imports: what is read, and what hostile files come to. Nothing may crash, quote data or leave half an import."""

from __future__ import annotations

import gzip
import json
import sqlite3
import stat
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anon.errors import AnonmlError, Malformed, Refused
from anon.queries.lint import NAME
from anon.tables.streams import ImportLimits
from peer.data.importing import ImportSummary, import_file, import_rows, sanitised
from tests.support.tries import examples

SMALL = ImportLimits(line_bytes=2000, row_bytes=1000, cell_bytes=300, columns=20, file_bytes=1_000_000, lines_named=3)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "peer" / "data.db"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> None:
    (tmp_path / "peer").mkdir()


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    def written(name: str, content: str | bytes) -> Path:
        data = content.encode() if isinstance(content, str) else content
        file = tmp_path / name
        file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return file

    return written


Write = Callable[[str, str | bytes], Path]


def rows(database: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(database)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("name", ["My People (2).csv", "My People (2).csv.gz"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_csv(database: Path, write: Write, delimiter: str, name: str, newline: str) -> None:
    lines = [["Age", "Full Name", "Größe", "id"], ["39", '"Ann, B; C\tD"', "1.5", "007"], ["40", '"x\ny"', "", "12"]]
    file = write(name, "\ufeff" + newline.join(delimiter.join(line) for line in lines) + newline)
    summary = import_file(database, file)
    words = {",": "commas", ";": "semicolons", "\t": "tabs"}[delimiter] + ", packed" * name.endswith("gz")
    kind = "tsv" if delimiter == "\t" else "csv"
    assert summary == ImportSummary(
        "my_people_2",
        2,
        ("age", "full_name", "groe", "id"),
        0,
        (),
        0,
        kind,
        f"a {kind.upper()} file separated by {words}",
    )
    assert rows(database, "select *, typeof(age), typeof(id) from my_people_2") == [
        (39, "Ann, B; C\tD", 1.5, "007", "integer", "text"),
        (40, "x\ny", None, "12", "integer", "text"),
    ]


def test_an_imported_table_is_the_owners_alone(database: Path, write: Write) -> None:
    import_file(database, write("people.csv", "age\n31\n"))
    assert stat.S_IMODE(database.stat().st_mode) == 0o600


def test_types(database: Path, write: Write) -> None:
    file = write("t.csv", "i,r,mixed,big,e,never,nan,plus\n1,1,1,9999999999999999999,1e3,,1,+1\n-2,2.5,x,1,2,,nan,1\n")
    import_file(database, file)
    assert rows(database, "select * from t") == [
        (1, 1.0, "1", "9999999999999999999", 1000.0, None, "1", 1.0),
        (-2, 2.5, "x", "1", 2.0, None, "nan", 1.0),
    ]


def test_json_lines(database: Path, write: Write) -> None:
    lines = [
        {"time": "2024-01-01", "event": {"a": [1, 2]}, "ok": True, "n": 1, "list": []},
        {"time": "2024-01-02", "n": 1.5, "extra": "é", "none": None, "huge": 2**70},
    ]
    file = write("track.log.gz", "\n".join(map(json.dumps, lines)) + '\n\n{"n": NaN}\n')
    summary = import_file(database, file, "events")
    assert (summary.rows, summary.skipped) == (3, 0)
    assert rows(database, "select json_extract(event, '$.a[1]'), ok, n, list, extra, huge from events") == [
        (2, 1, 1.0, "[]", None, None),
        (None, None, 1.5, None, "é", float(2**70)),
        (None, None, None, None, None, None),
    ]


def test_bad_lines_are_counted_and_named(database: Path, write: Write) -> None:
    good = ['{"a": 1}'] * 8
    bad = ["{", "[1]", '"a"', '{"a": "\\ud800"}', "[" * 100_000, '{"a":' + "9" * 5000 + "}"]
    content = "\n".join([*good, *bad]).encode() + b'\n{"a": "\xff"}\n'
    summary = import_file(database, write("t.jsonl", content), limits=SMALL)
    assert (summary.rows, summary.skipped, summary.skipped_lines) == (8, 7, (9, 10, 11))


def test_bad_csv_lines(database: Path, write: Write) -> None:
    content = b"a,b\n1,2\nonly one\n1,2,3\n3,4\n\xff,5\n5,6\n" + b"7," + b"x" * 3000 + b"\n9,\0\n9,10\n\n11,12\n"
    summary = import_file(database, write("t.csv", content), limits=SMALL)
    assert summary.rows == 5
    assert summary.skipped == 5
    assert summary.skipped_lines == (3, 4, 6)


def test_an_open_quote_does_not_swallow_the_file(database: Path, write: Write) -> None:
    content = "a,b\n" + "1,2\n" * 500 + '3,"open\n' + "1,2\n" * 500
    summary = import_file(database, write("t.csv", content), limits=SMALL)
    assert summary.rows >= 700
    assert summary.skipped >= 1


def test_long_cells_become_null_and_long_rows_are_passed_over(database: Path, write: Write) -> None:
    file = write("t.csv", "a,b,c,d,e\n" + "1" * 400 + ",2,,,\n" + ",".join(["x" * 290] * 5) + "\n1,2,3,4,5\n")
    summary = import_file(database, file, limits=SMALL)
    assert (summary.rows, summary.skipped, summary.emptied) == (2, 1, 1)


def test_replace_again_changes_nothing_and_append_adds(database: Path, write: Write) -> None:
    first, second = write("a.jsonl", '{"a": 1}\n'), write("b.jsonl", '{"a": 2, "b": "x"}\n')
    for _ in range(2):
        import_file(database, first, "t")
        assert rows(database, "select * from t") == [(1,)]
    import_file(database, second, "t", "append")
    assert rows(database, "select a, b from t") == [(1, None), (2, "x")]
    import_file(database, first, "t")
    assert rows(database, "select * from t") == [(1,)]


def test_a_header_alone_is_an_empty_table(database: Path, write: Write) -> None:
    """Somebody who did nothing has zero events, which is not the same as having imported nothing."""
    assert import_file(database, write("t.csv", "a,b\n")).rows == 0
    assert rows(database, "select count(a), count(b) from t") == [(0, 0)]


def test_progress(database: Path, write: Write) -> None:
    told: list[int] = []
    import_file(database, write("t.csv", "a\n" + "1\n" * 2500), progress=told.append)
    assert told == [1000, 2000, 2500]


BAD_FILES: dict[str, tuple[str, str | bytes, type[AnonmlError]]] = {
    "empty": ("t.csv", "", Malformed),
    "nothing but a byte order mark": ("t.csv", "\ufeff", Malformed),
    "blank header": ("t.csv", "\n1,2\n", Malformed),
    "header in no encoding": ("t.csv", b"gr\x81\x8de\n1\n", Malformed),
    "mostly not UTF-8": ("t.csv", "ü\n".encode() + "größe\ngröße\nx\n".encode("latin-1"), Malformed),
    "UTF-16 cut in the middle": ("t.csv", "a,b\n".encode("utf-16") + b"\x00\xd8" * 9, Malformed),
    "header only in json": ("t.jsonl", "a,b\n1,2\n", Malformed),
    "json list of texts": ("t.json", '["secret", "secret"]', Malformed),
    "page": ("t.html", "<html>secret</html>", Malformed),
    "random bytes": ("t.csv", bytes(range(256)) * 10, Malformed),
    "not gzip inside": ("t.csv", b"\x1f\x8b" + b"secret" * 100, Malformed),
    "gzip cut off": ("t.csv", gzip.compress(b"a,b\n" + bytes(range(256)).hex().encode() * 200)[:200], Malformed),
    "colliding columns": ("t.csv", "secret,Secret!\n1,2\n", Refused),
    "equal columns": ("t.csv", "secret,secret\n1,2\n", Refused),
    "colliding keys": ("t.jsonl", '{"secret": 1}\n{"SECRET": 2}\n', Refused),
    "too many columns": ("t.csv", ",".join(f"secret{i}" for i in range(21)) + "\n", Refused),
    "too many keys": ("t.jsonl", "\n".join(json.dumps({f"secret{i}": i}) for i in range(30)), Refused),
    "SQLite in name only": ("t.db", b"SQLite format 3\0" + b"secret" * 500, Malformed),
    "packed SQLite": ("t.db.gz", b"SQLite format 3\0", Refused),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_change_nothing_and_are_not_quoted(database: Path, write: Write, name: str) -> None:
    import_rows(database, "t", ["a"], [(1,)])
    filename, content, error = BAD_FILES[name]
    with pytest.raises(error) as caught:
        import_file(database, write(filename, content), limits=SMALL)
    assert "secret" not in str(caught.value).lower()
    assert "größe" not in str(caught.value)
    assert rows(database, "select * from t") == [(1,)]
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("table", ["", "A", "sqlite_x", "a b", 'a"; drop table t; --', "x" * 64, "1a"])
def test_bad_table_names(database: Path, write: Write, table: str) -> None:
    with pytest.raises(Refused):
        import_file(database, write("t.csv", "a\n1\n"), table)
    with pytest.raises(Refused):
        import_rows(database, table, ["a"], [(1,)])


def test_no_file_and_the_data_file_itself(database: Path, tmp_path: Path) -> None:
    with pytest.raises(Malformed):
        import_file(database, tmp_path / "none.csv")
    import_rows(database, "t", ["a"], [(1,)])
    with pytest.raises(Refused):
        import_file(database, database)


@pytest.mark.slow
def test_a_gzip_bomb_is_stopped_in_bounded_memory(database: Path, tmp_path: Path) -> None:
    """100 MB without a line break, and 100 MB of lines, from a small file each; the limit is 1 MB."""
    for name, unit in (("one.csv.gz", b"a" * 1_000_000), ("many.csv.gz", (b"1" * 99 + b"\n") * 10_000)):
        with gzip.open(tmp_path / name, "wb", compresslevel=1) as stream:
            stream.write(b"a\n")
            for _ in range(100):
                stream.write(unit)
        tracemalloc.start()
        with pytest.raises(Refused, match="when unpacked"):
            import_file(database, tmp_path / name, limits=SMALL)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
        tracemalloc.stop()


def test_a_huge_line_is_passed_over_in_bounded_memory(database: Path, tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    with file.open("wb") as stream:
        stream.write(b'{"a": 1}\n{"a": "')
        for _ in range(50):
            stream.write(b"x" * 1_000_000)
        stream.write(b'"}\n{"a": 2}\n')
    tracemalloc.start()
    summary = import_file(database, file)
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()
    assert (summary.rows, summary.skipped_lines) == (2, (2,))


def test_a_failure_half_way_leaves_everything_as_it_was(database: Path, write: Write) -> None:
    file = write("t.csv", "a\n" + "1\n" * 3000)
    import_rows(database, "t", ["a"], [(7,)])

    def fail(_written: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_file(database, file, progress=fail)
    assert rows(database, "select * from t") == [(7,)]
    with pytest.raises(Refused):
        import_rows(database, "t", ["a"], [(1,), (1, 2)])
    assert rows(database, "select * from t") == [(7,)]


# --- SQLite files ---


def test_sqlite_takes_plain_rows_and_nothing_else(database: Path, tmp_path: Path) -> None:
    source = tmp_path / "other.db"
    connection = sqlite3.connect(source)
    connection.executescript(
        """
        create table "Odd ""name"" é" ("A B" integer primary key, "select", c, twice as (c * 2));
        insert into "Odd ""name"" é" values (1, 'x', 2.5), (2, x'00ff', null), (3, cast(x'ff' as text), 9e999);
        create table log (a);
        create table keyed (k text primary key, v) without rowid;
        insert into keyed values ('a', 1);
        create view v as select * from keyed;
        create virtual table words using fts5(word);
        insert into words values ('secret');
        create trigger spy after insert on keyed begin insert into log values (new.v); end;
        create index strange on keyed (v) where v > 0;
        """
    )
    connection.close()
    before = source.read_bytes()
    summary = import_file(database, source)
    assert summary.table == "odd_name_e, log, keyed"
    assert summary.columns == ("odd_name_e.a_b", "odd_name_e.select", "odd_name_e.c", "log.a", "keyed.k", "keyed.v")
    assert rows(database, 'select a_b, "select", c from odd_name_e') == [
        (1, "x", 2.5),
        (2, None, None),
        (3, None, None),
    ]
    assert rows(database, "select * from keyed") == [("a", 1)]
    assert rows(database, "select type, name from sqlite_master where type <> 'table'") == []
    assert {name for (name,) in rows(database, "select name from sqlite_master")} == {"odd_name_e", "log", "keyed"}
    assert source.read_bytes() == before
    assert import_file(database, source, "keyed").table == "keyed"
    with pytest.raises(Refused):
        import_file(database, source, "absent")


def test_sqlite_of_one_table_takes_the_name_given(database: Path, tmp_path: Path) -> None:
    import_rows(tmp_path / "one.db", "t", ["a", "b"], [(1, "x"), (None, 2.5)])
    summary = import_file(database, tmp_path / "one.db", "mine")
    assert (summary.table, summary.rows) == ("mine", 2)
    assert rows(database, "select * from mine") == [(1, "x"), (None, "2.5")]


@pytest.mark.parametrize("script", ["create view v as select 1", 'create table "a b" (x); create table a_b (x);'])
def test_sqlite_views_only_and_colliding_names(database: Path, tmp_path: Path, script: str) -> None:
    source = tmp_path / "other.db"
    with closing(sqlite3.connect(source)) as made:
        made.executescript(script)
    with pytest.raises(Refused):
        import_file(database, source)
    assert rows(database, "select count(*) from sqlite_master") == [(0,)]


def test_sqlite_damaged_in_the_middle_imports_nothing(database: Path, tmp_path: Path) -> None:
    source = tmp_path / "other.db"
    import_rows(source, "t", ["a"], [("secret" * 50,)] * 2000)
    data = bytearray(source.read_bytes())
    data[200_000:260_000] = b"\xff" * 60_000
    source.write_bytes(data)
    with pytest.raises(Malformed) as caught:
        import_file(database, source)
    assert "secret" not in str(caught.value)
    assert rows(database, "select count(*) from sqlite_master") == [(0,)]


# --- anything at all ---


@given(name=st.text(max_size=300))
def test_any_name_becomes_a_table_name(name: str) -> None:
    assert NAME.fullmatch(sanitised(name))
    assert sanitised(sanitised(name)) == sanitised(name)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(150))
@given(
    content=st.one_of(
        st.binary(max_size=300),
        st.text(alphabet='ab1,;\t"\n\r\0 é.-', max_size=200).map(str.encode),
        st.text(alphabet='{}[]:,"ab1e.- \n\\u', max_size=200).map(str.encode),
        st.lists(st.dictionaries(st.text(max_size=3), st.none() | st.integers() | st.floats() | st.text(max_size=5)))
        .map(lambda objects: "\n".join(map(json.dumps, objects)).encode()),
    ),
    suffix=st.sampled_from([".csv", ".jsonl", ".log", ".db"]),
)
@pytest.mark.slow
def test_any_file_is_imported_or_refused(tmp_path: Path, content: bytes, suffix: str) -> None:
    file, database = tmp_path / f"any{suffix}", tmp_path / "any-data.db"
    file.write_bytes(content)
    try:
        summary = import_file(database, file, "t", limits=SMALL)
    except AnonmlError:
        return
    assert rows(database, "select count(*) from t") == [(summary.rows,)]
