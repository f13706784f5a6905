"""Parquet files that say a value once and its number, or name one part of themselves again and again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anon.errors import AnonmlError, Malformed, Refused
from peer.data import foreign
from peer.data.importing import import_file
from peer.data.preview import preview

pa: Any = pytest.importorskip("pyarrow", reason="pyarrow is missing: install the extra `test`")
pq: Any = pytest.importorskip("pyarrow.parquet", reason="pyarrow is missing: install the extra `test`")
MIB = 2**20


@pytest.fixture(autouse=True)
def _read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, whose memory is measured: the bounds hold also where there are no child processes."""
    monkeypatch.setattr(foreign, "has_children", lambda: False)


def _written(file: Path, column: Any, **options: Any) -> Path:
    pq.write_table(pa.table({"age": column}), file, compression="zstd", **options)
    return file


def _one_text(length: int, rows: int) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * length]))


def _refused(file: Path) -> str:
    with pytest.raises(AnonmlError) as by_preview:
        preview(file)
    with pytest.raises(AnonmlError) as by_import:
        import_file(file.with_suffix(".sqlite"), file)
    assert str(by_preview.value) == str(by_import.value)
    return str(by_import.value)


@pytest.mark.slow
def test_four_kilobytes_that_unpack_to_gigabytes_are_refused_before_anything_is_unpacked(tmp_path: Path) -> None:
    """256 rows of one text of 30 MB: 7.7 GB in the first batch."""
    file = _written(tmp_path / "bomb.parquet", _one_text(30_000_000, 256))
    assert file.stat().st_size < 4096
    before = pa.default_memory_pool().max_memory()
    assert "times its size" in _refused(file)
    assert pa.default_memory_pool().max_memory() - before < 4 * MIB


def test_a_long_text_is_not_made_for_each_row_that_names_it(tmp_path: Path) -> None:
    """Short enough for every bound of size: 200 rows of 3 MiB were 600 MiB in one batch, and in Python once more."""
    file = _written(tmp_path / "long.parquet", _one_text(3 * MIB, 200))
    before = pa.default_memory_pool().max_memory()
    done = import_file(tmp_path / "data.sqlite", file)
    assert (done.rows, done.emptied) == (200, 200)
    assert pa.default_memory_pool().max_memory() - before < 64 * MIB


@pytest.mark.slow
def test_one_text_in_each_of_three_million_rows_is_refused(tmp_path: Path) -> None:
    file = _written(tmp_path / "rows.parquet", _one_text(60_000, 3_000_000))
    assert file.stat().st_size < 10_000
    with pytest.raises(Refused, match="far more rows"):
        import_file(tmp_path / "data.sqlite", file)


def test_row_groups_that_are_named_again_are_refused(tmp_path: Path) -> None:
    file = _written(tmp_path / "once.parquet", pa.array(range(1000)))
    once, again, footer = pq.read_metadata(file), pq.read_metadata(file), tmp_path / "footer"
    for _ in range(200):
        again.append_row_groups(once)
    again.write_metadata_file(footer)
    content = file.read_bytes()
    body = content[: -8 - int.from_bytes(content[-8:-4], "little")]
    file.write_bytes(body + footer.read_bytes()[4:])
    assert pq.read_metadata(file).num_rows == 201_000
    assert "share the same bytes" in _refused(file)


@pytest.mark.slow
def test_one_row_with_a_list_of_millions_is_refused(tmp_path: Path) -> None:
    count = 17_000_000
    file = _written(tmp_path / "list.parquet", pa.ListArray.from_arrays([0, count], pa.nulls(count, pa.int8())))
    assert "values of a list" in _refused(file)


def test_a_long_list_of_a_text_becomes_nothing_as_every_cell_that_is_too_long(tmp_path: Path) -> None:
    texts = _one_text(100_000, 100_000)
    file = _written(tmp_path / "texts.parquet", pa.ListArray.from_arrays([0, 100_000], texts))
    done = import_file(tmp_path / "data.sqlite", file)
    assert (done.rows, done.emptied) == (1, 1)


def test_lists_structures_and_maps_of_texts_stay_json(tmp_path: Path) -> None:
    pairs = pa.map_(pa.string(), pa.string())
    kinds = {
        "a": pa.array([["x", "y"], None, []]),
        "b": pa.array([{"k": "v", "n": 1}, None, {"k": None, "n": 2}]),
        "c": pa.array([[("k", "v")], None, []], pairs),
        "d": pa.array(["text", None, ""]),
        "e": pa.array([b"bytes", None, b""]),
    }
    pq.write_table(pa.table(kinds), tmp_path / "nested.parquet")
    [table] = preview(tmp_path / "nested.parquet", rows=3).tables
    assert table.rows[0] == ('["x","y"]', '{"k":"v","n":1}', '[["k","v"]]', "text", None)
    assert table.rows[1] == (None,) * 5


@pytest.mark.slow
def test_a_page_that_says_more_than_its_column_is_damaged(tmp_path: Path) -> None:
    """Each byte of the first page's header and of the footer in turn: an error in our words, or a file that is read."""
    file = _written(tmp_path / "page.parquet", pa.array([1, 2, 3]), use_dictionary=False, write_statistics=False)
    content, refused = file.read_bytes(), 0
    for place in (*range(4, 30), *range(len(content) - 60, len(content))):
        for changed in (content[place] ^ 0x40, 0xFF):
            file.write_bytes(content[:place] + bytes([changed]) + content[place + 1 :])
            try:
                import_file(tmp_path / "data.sqlite", file)
            except (Malformed, Refused):
                refused += 1
    assert refused > 20
