"""A number that no program of ours wrote is refused in one line, and nothing is changed."""

from __future__ import annotations

import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from anon.errors import Refused
from anon.storage.migration import Schema, upgrade


def make(file: Path, number: int, tables: bool = True) -> bytes:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        if tables:
            connection.execute("CREATE TABLE ledger (spent INTEGER)")
        connection.execute(f"PRAGMA user_version = {number}")
    return file.read_bytes()


@pytest.mark.parametrize("number", [-(2**31), -1, 0, 3, 2**31 - 1])
def test_a_number_that_none_wrote(tmp_path: Path, number: int) -> None:
    file, schema = tmp_path / "peer.sqlite", Schema(2, {1: lambda _: None})
    before = make(file, number)
    with pytest.raises(Refused, match=rf"schema {number}\b.*Nothing was changed"):
        upgrade(file, schema, nullcontext)
    with pytest.raises(Refused, match=f"schema {number}"):
        schema.demand_own(file)
    assert file.read_bytes() == before and [one.name for one in tmp_path.iterdir()] == ["peer.sqlite"]


@pytest.mark.parametrize("number", [0, 1])
def test_a_file_without_tables_has_nothing_to_move(tmp_path: Path, number: int) -> None:
    """A program that was killed while it made its store."""
    file = tmp_path / "peer.sqlite"
    assert upgrade(file, Schema(2, {1: lambda _: None}), nullcontext) is None
    make(file, number, tables=False)
    assert upgrade(file, Schema(2, {1: lambda _: None}), nullcontext) is None
