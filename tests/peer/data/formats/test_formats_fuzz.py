"""A preview or an import of any bytes ends with rows or with one of our errors, and quotes nothing."""

from __future__ import annotations

import gzip
import io
import random
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anon.errors import AnonmlError
from anon.tables.streams import ImportLimits
from peer.data.importing import import_file
from peer.data.preview import preview
from tests.support.real_exports import (
    edx_lines,
    moodle_csv,
    moodle_json,
    takeout_html,
    takeout_json,
    takeout_path,
    tarred,
    zipped,
)
from tests.support.tries import examples

SMALL = ImportLimits(line_bytes=20_000, row_bytes=10_000, columns=30, file_bytes=2_000_000, entries=50)
QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
SUFFIXES = [".csv", ".tsv", ".json", ".jsonl", ".log", ".html", ".zip", ".tar", ".gz", ".db", ".parquet", ""]


def survives(folder: Path, content: bytes, suffix: str) -> None:
    file, database = folder / f"any{suffix}", folder / "any-data.db"
    file.write_bytes(content)
    seen = None
    try:
        seen = preview(file, limits=SMALL)
    except AnonmlError as error:
        assert "\n" not in str(error)
    try:
        summary = import_file(database, file, limits=SMALL)
    except AnonmlError as error:
        assert "\n" not in str(error)
        return
    assert seen is not None, "what can be imported can be previewed"
    with closing(sqlite3.connect(database)) as connection:
        tables = summary.table.split(", ")
        assert (
            sum(connection.execute(f'select count(*) from "{name}"').fetchone()[0] for name in tables) == summary.rows
        )


def _sqlite() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.executescript("create table t (a, b); insert into t values (1, 'x'), (2, 'y'); create table u (c);")
    return connection.serialize()


def _real(tmp: Path) -> dict[str, tuple[bytes, str]]:
    return {
        "edx": ("\n".join(edx_lines()).encode(), ".log"),
        "edx.gz": (gzip.compress("\n".join(edx_lines()).encode()), ".log.gz"),
        "moodle": (moodle_csv("de").encode(), ".csv"),
        "moodle utf-16": (moodle_csv("de").encode("utf-16"), ".csv"),
        "moodle json": (moodle_json().encode(), ".json"),
        "takeout json": (takeout_json().encode(), ".json"),
        "takeout html": (takeout_html("de").replace(".mdl-cell{width:100%}" * 6500, "").encode(), ".html"),
        "takeout zip": (zipped(tmp / "t.zip", {takeout_path("de", "json"): takeout_json()}).read_bytes(), ".zip"),
        "takeout tar": (
            tarred(tmp / "t.tar", {takeout_path("de", "json"): takeout_json()}).read_bytes()[:4096],
            ".tar",
        ),
        "sqlite": (_sqlite(), ".db"),
    }  # fmt: skip


def _parquet() -> bytes:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    sink = io.BytesIO()
    parquet.write_table(arrow.table({"a": [1, 2], "b": ["x", None], "c": [[1], []]}), sink)
    return sink.getvalue()


@settings(suppress_health_check=QUIET, deadline=None, max_examples=examples(120))
@given(
    content=st.one_of(
        st.binary(max_size=400),
        st.text(alphabet='{}[]:,"ab1e.- \n\\u', max_size=200).map(str.encode),
        st.text(alphabet='<>/ab="div classouter-cell&;#\n', max_size=200).map(
            lambda text: b'<div class="outer-cell' + text.encode() + b"content-cell"
        ),
        st.sampled_from([b"PK\3\4", b"PAR1", b"SQLite format 3\0", b"\x1f\x8b\x08", b"\xff\xfe", b"[[["]).flatmap(
            lambda magic: st.binary(max_size=200).map(lambda rest: magic + rest + (magic if magic == b"PAR1" else b""))
        ),
    ),
    suffix=st.sampled_from(SUFFIXES),
)
def test_any_bytes_under_any_name(tmp_path: Path, content: bytes, suffix: str) -> None:
    survives(tmp_path, content, suffix)


@pytest.mark.slow
@settings(suppress_health_check=QUIET, deadline=None, max_examples=examples(25))
@given(seed=st.integers(0, 2**32))
@pytest.mark.parametrize(
    "name",
    [
        "edx", "edx.gz", "moodle", "moodle utf-16", "moodle json", "takeout json", "takeout html", "takeout zip",
        "takeout tar", "sqlite",
    ],
)
def test_a_real_file_cut_and_changed_anywhere(tmp_path: Path, name: str, seed: int) -> None:
    content, suffix = _real(tmp_path)[name]
    survives(tmp_path, _changed(content, random.Random(seed)), suffix)


@settings(suppress_health_check=QUIET, deadline=None, max_examples=examples(60))
@given(seed=st.integers(0, 2**32))
def test_parquet_cut_and_changed_anywhere(tmp_path: Path, seed: int) -> None:
    survives(tmp_path, _changed(_parquet(), random.Random(seed)), ".parquet")


@settings(suppress_health_check=QUIET, deadline=None, max_examples=examples(60))
@given(seed=st.integers(0, 2**32))
def test_zip_lists_with_any_numbers(tmp_path: Path, seed: int) -> None:
    """Changes in the list of files alone, where sizes and places stand."""
    source = random.Random(seed)
    content = bytearray(zipped(tmp_path / "z.zip", {"a.csv": "a\n1\n", "b/c.jsonl": '{"x": 1}\n'}).read_bytes())
    begins = content.find(b"PK\1\2")
    for _ in range(source.randint(1, 3)):
        content[source.randrange(begins, len(content))] = source.choice([0, 1, 0x7F, 0xFF, source.randrange(256)])
    survives(tmp_path, bytes(content), ".zip")


def _changed(content: bytes, source: random.Random) -> bytes:
    data = bytearray(content[: source.randint(0, len(content))] if source.random() < 0.5 else content)
    for _ in range(source.randint(0, 4)):
        if data:
            place = source.randrange(len(data))
            data[place : place + source.randint(0, 3)] = source.randbytes(source.randint(0, 3))
    return bytes(data)


def test_the_real_files_themselves_are_imported(tmp_path: Path) -> None:
    """So that the changed ones above begin from something that works."""
    for content, suffix in _real(tmp_path).values():
        (tmp_path / f"real{suffix}").write_bytes(content)
        assert import_file(tmp_path / "d.sqlite", tmp_path / f"real{suffix}").rows > 0
    assert zipfile.is_zipfile(tmp_path / "t.zip")
