"""CSV in its encodings and delimiters, JSON lists, Parquet, and what a preview says of them."""

from __future__ import annotations

import io
import json
import math
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.errors import Malformed, Refused
from anon.tables.streams import ImportLimits, Origin
from peer.data.formats import json_text
from peer.data.importing import import_file, import_rows
from peer.data.preview import SAMPLE, preview
from tests.support.tries import examples


def rows(database: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.parametrize(("encoding", "says"), [
    ("utf-8", ""), ("utf-8-sig", ""), ("utf-16", ", UTF-16"), ("utf-16-be-sig", ", UTF-16"),
    ("cp1252", ", Windows-1252"),
])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_encodings_and_delimiters(tmp_path: Path, encoding: str, says: str, delimiter: str) -> None:
    text = (
        delimiter.join(["größe", "name"])
        + "\r\n"
        + delimiter.join(["1,5" if delimiter != "," else "1.5", "Zoë – x"])
        + "\r\n"
    )
    data = b"\xfe\xff" + text.encode("utf-16-be") if encoding == "utf-16-be-sig" else text.encode(encoding)
    (tmp_path / "own.csv").write_bytes(data)
    seen = preview(tmp_path / "own.csv")
    assert seen.format == ("tsv" if delimiter == "\t" else "csv")
    assert seen.says.endswith(says or {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}[delimiter])
    import_file(tmp_path / "d.sqlite", tmp_path / "own.csv")
    assert rows(tmp_path / "d.sqlite", "select name from own") == [("Zoë – x",)]


def test_excels_line_that_names_the_delimiter(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("sep=;\na,b;c\n1,2;3\n")
    assert import_file(tmp_path / "d.sqlite", tmp_path / "own.csv").columns == ("a_b", "c")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_carriage_returns_alone_end_lines_too(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "own.csv").write_bytes("größe;name\r1;Zoë\r2;Ann\r".encode(encoding))
    import_file(tmp_path / "d.sqlite", tmp_path / "own.csv")
    assert rows(tmp_path / "d.sqlite", "select * from own") == [(1, "Zoë"), (2, "Ann")]


def test_a_broken_byte_in_a_windows_file_spoils_its_line_alone(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_bytes(b"a\n" + (b"gr\xf6\xdfe" * 500 + b"\n") * 600 + b"\x81\n" + b"gr\xf6\xdfe\n")
    summary = import_file(tmp_path / "d.sqlite", tmp_path / "own.csv")
    assert (summary.rows, summary.skipped_lines) == (601, (602,))


# --- JSON lists ---


def test_a_json_list_is_a_table(tmp_path: Path) -> None:
    entries = [{"a": 1, "b": {"c": [1, "],}"]}}, {"a": 2.5, "d": 'quo"te\\'}, {}]
    (tmp_path / "own.json").write_text(json.dumps(entries, indent=1))
    summary = import_file(tmp_path / "d.sqlite", tmp_path / "own.json")
    assert (summary.format, summary.rows, summary.unit) == ("json", 3, "entry")
    assert rows(tmp_path / "d.sqlite", "select a, json_extract(b, '$.c[1]'), d from own") == [
        (1.0, "],}", None), (2.5, None, 'quo"te\\'), (None, None, None),
    ]  # fmt: skip


def test_broken_entries_spoil_no_other(tmp_path: Path) -> None:
    (tmp_path / "own.json").write_text(
        '[{"a": 1}, nope, {"a": }, {"a": 2}, [1], {"a": "' + "x" * 3000 + '"}, {"a": 3}, {"a": 4}, {"a": 5}]'
    )
    summary = import_file(tmp_path / "d.sqlite", tmp_path / "own.json", limits=ImportLimits(line_bytes=2000))
    assert (summary.rows, summary.skipped_lines) == (5, (2, 3, 5, 6))
    assert summary.reasons == {"could not be read": 3, "longer than the limit": 1}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, max_examples=examples(60))
@given(entries=st.lists(json_values, max_size=6), indent=st.sampled_from([None, 1]), data=st.data())
def test_entries_are_those_of_the_json_parser(entries: list[object], indent: int | None, data: st.DataObject) -> None:
    """However the stream is cut into pieces, and one list deeper too. null reads as what is passed over."""
    raw = json.dumps(entries, indent=indent, ensure_ascii=data.draw(st.booleans())).encode("utf-8", "surrogatepass")
    if b"\xed" in raw:
        return
    sheets = b"[" + raw + b", []]"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_text, "CHUNK", data.draw(st.integers(1, 9)))
        assert [value for _number, value in json_text.numbered_entries(_origin(raw), ImportLimits())] == entries
        assert [
            value for _number, value in json_text.numbered_entries(_origin(sheets), ImportLimits(), depth=2)
        ] == entries


def _origin(raw: bytes) -> Origin:
    return Origin("x.json", lambda: io.BytesIO(raw))


# --- Parquet ---


def test_parquet(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table({
        "When": [datetime(2024, 2, 5, 14, 21, tzinfo=UTC), None], "n": [1, 2**40], "x": [0.5, math.nan],
        "s": ["ä", None],
        "list": [[1, 2], []], "money": [Decimal("1.50"), None], "raw": [b"\xff", None], "ok": [True, False],
    })  # fmt: skip
    parquet.write_table(table, tmp_path / "own.parquet")
    seen = preview(tmp_path / "own.parquet", rows=1)
    assert (seen.format, seen.tables[0].count, len(seen.tables[0].rows)) == ("parquet", 2, 1)
    assert import_file(tmp_path / "d.sqlite", tmp_path / "own.parquet").rows == 2
    assert rows(tmp_path / "d.sqlite", "select * from own") == [
        ("2024-02-05T14:21:00+00:00", 1, 0.5, "ä", "[1,2]", "1.50", None, 1),
        (None, 2**40, None, None, "[]", None, None, 0),
    ]


def test_damaged_parquet(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"secret": ["secret"] * 100}), tmp_path / "own.parquet")
    data = (tmp_path / "own.parquet").read_bytes()
    for cut in (
        data[:-1],
        data[:-9] + data[-8:],
        data[:60],
        b"PAR1" + bytes(100) + data[-8:],
        b"PAR1\xff\xff\xff\x7fPAR1",
    ):
        (tmp_path / "bad.parquet").write_bytes(cut)
        with pytest.raises(Malformed) as caught:
            import_file(tmp_path / "d.sqlite", tmp_path / "bad.parquet")
        assert "secret" not in str(caught.value)


@pytest.mark.slow
def test_without_pyarrow_one_line_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "own.parquet").write_bytes(b"PAR1" + bytes(40) + b"PAR1")
    script = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from pathlib import Path\nfrom peer.data import foreign\nfrom peer.data.preview import preview\n"
        "foreign.has_children = lambda: False\n"
        f"preview(Path({str(tmp_path / 'own.parquet')!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=Path(__file__).parents[4]
    )
    assert "Refused: this is a Parquet file, which needs pyarrow: export it as CSV, or `pipx install" in done.stderr


@pytest.mark.slow
def test_no_other_format_imports_a_library_of_tables(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("a\n1\n")
    script = (
        "import sys\nfrom pathlib import Path\nfrom peer.data.preview import preview\n"
        f"preview(Path({str(tmp_path / 'own.csv')!r}))\n"
        "assert not {'numpy', 'pyarrow', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[4])


# --- previews ---


def test_a_preview_says_columns_kinds_rows_and_problems(tmp_path: Path) -> None:
    (tmp_path / "Own Data.csv").write_text("id,x,name,never\n1,1.5,secret,\n2,2,b,\n3\n4,1,c,\n")
    seen = preview(tmp_path / "Own Data.csv", rows=2)
    table = seen.tables[0]
    assert table.name == "own_data"
    assert [(one.name, one.kind, one.says) for one in table.columns] == [
        ("id", "INTEGER", "whole numbers"), ("x", "REAL", "numbers"), ("name", "TEXT", "texts"),
        ("never", "", "nothing so far"),
    ]  # fmt: skip
    assert (table.rows, table.count) == (((1, 1.5, "secret", None), (2, 2.0, "b", None)), 3)
    assert seen.problems == (
        "“own_data”: 1 line would be skipped (1 another number of cells than the heading), by number: 4",
    )
    assert "secret" not in repr(seen)
    assert preview(tmp_path / "Own Data.csv", table="mine").tables[0].name == "mine"


def test_a_preview_reads_the_beginning_alone(tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text("a\n" + "1\n" * (SAMPLE * 1000))
    assert preview(tmp_path / "long.csv").tables[0].count is None
    import_rows(tmp_path / "long.sqlite", "t", ["a"], [(1,)] * (SAMPLE + 5))
    assert preview(tmp_path / "long.sqlite").tables[0].count == SAMPLE + 5, "a database is cheap to count"


def test_a_preview_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("a\n1\n")
    preview(tmp_path / "own.csv")
    assert [file.name for file in tmp_path.iterdir()] == ["own.csv"]


@pytest.mark.parametrize(("name", "content", "error"), [
    ("a.html", b"<html><body>secret</body></html>", Malformed),
    ("a.csv", b"", Malformed),
    ("a.pdf", b"%PDF-1.7\n\x00\x01secret\n" * 50, Malformed),
    ("a.png", b"\x89PNG\r\n\x1a\n\x00secret", Malformed),
    ("folder", None, Refused),
])
def test_what_is_no_data_is_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes | None, error: type[Exception]
) -> None:
    file = tmp_path / name
    file.mkdir() if content is None else file.write_bytes(content)
    with pytest.raises(error) as caught:
        import_file(tmp_path / "d.sqlite", file)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
