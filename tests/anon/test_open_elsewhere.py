"""A file that another program has open: tried again for a bounded time, then told. Windows' refusal is planted here;
`tests/windows/system_there.py` meets the real one."""

from __future__ import annotations

import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from anon.errors import Refused
from anon.storage.open_elsewhere import TRIES, opened_to_write, replace_file
from anon.storage.overwriting import remove_file
from anon.storage.private_files import write_private

REFUSED = PermissionError(13, "in use")


class Holder:
    """Another program that holds every file open for so many tries."""

    def __init__(self, tries: int, patched: pytest.MonkeyPatch) -> None:
        self.tries, self.waits = tries, 0
        replace, unlink = Path.replace, Path.unlink

        def held(act: object, *given: object, **named: object) -> object:
            self.tries -= 1
            if self.tries >= 0:
                raise REFUSED
            return act(*given, **named)  # type: ignore[operator]

        patched.setattr(Path, "replace", lambda *given: held(replace, *given))
        patched.setattr(Path, "unlink", lambda *given, **named: held(unlink, *given, **named))
        patched.setattr(time, "sleep", self._wait)
        patched.setattr(sys, "platform", "win32")

    def _wait(self, _seconds: float) -> None:
        self.waits += 1


def test_a_file_that_is_open_for_a_moment_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, fresh = tmp_path / "file", tmp_path / "fresh"
    file.write_text("old"), fresh.write_text("new")
    holder = Holder(TRIES - 1, monkeypatch)
    replace_file(file, fresh)
    assert file.read_text() == "new" and holder.waits == TRIES - 1


def test_a_file_that_stays_open_is_told_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings"
    file.write_bytes(b"old")
    with monkeypatch.context() as patched:
        Holder(10**9, patched)
        with pytest.raises(Refused, match="another program has this file open"):
            remove_file(file)
    assert file.exists()


def test_elsewhere_a_file_that_may_not_be_written_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = Holder(1, monkeypatch)
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(PermissionError):
        write_private(tmp_path / "settings", b"new")
    assert holder.waits == 0


def test_a_connection_that_can_only_read_is_closed_and_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, made = tmp_path / "data.sqlite", list[sqlite3.Connection]()
    with closing(sqlite3.connect(file)) as first:
        first.execute("CREATE TABLE kept (value)")

    def connect() -> sqlite3.Connection:
        made.append(sqlite3.connect(f"file:{file}?mode={'ro' if len(made) < 3 else 'rw'}", uri=True))
        return made[-1]

    holder = Holder(0, monkeypatch)
    with closing(opened_to_write(connect)) as opened:
        opened.execute("INSERT INTO kept VALUES (1)")
    assert len(made) == 4 and holder.waits == 3
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        made[0].execute("SELECT 1")


def test_a_file_that_another_connection_writes_to_is_opened_without_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And with the patience that it had."""
    file, patience, said = tmp_path / "data.sqlite", 5, list[str]()

    def connect() -> sqlite3.Connection:
        made = sqlite3.connect(file, timeout=patience)
        made.set_trace_callback(said.append)
        return made

    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("CREATE TABLE kept (value)")
        other.execute("BEGIN IMMEDIATE")
        holder = Holder(0, monkeypatch)
        with closing(opened_to_write(connect)) as opened:
            assert opened.execute("PRAGMA busy_timeout").fetchone() == (1000 * patience,)
    assert holder.waits == 0 and said.index("PRAGMA busy_timeout = 0") < said.index("PRAGMA incremental_vacuum")
