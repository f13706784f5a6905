"""Files on their way into the owner's tables: uploaded, looked at, imported or dropped. They stay in the home."""

from __future__ import annotations

import re
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from attrs import field, frozen

from anon.errors import Refused
from peer.data.importing import ImportSummary, import_file
from peer.data.sandbox import plain_tables_of

LARGEST = 4 * 2**30
SHOWN_ROWS, SHOWN_COLUMNS, SHOWN_CHARACTERS = 5, 12, 60
_STALE_SECONDS = 86400.0
_ROOM = 64 * 2**20
"""What must stay free on the disk."""


@frozen
class Peek:
    """One table of a staged file: its first rows as text. Shown to the owner, and kept nowhere."""

    table: str
    columns: tuple[str, ...]
    rows: int
    first: tuple[tuple[str, ...], ...] = field(repr=False)


@frozen
class Preview:
    """What importing a staged file would do."""

    name: str = field(repr=False)
    summary: ImportSummary
    tables: tuple[Peek, ...]


class Staging:
    """The folder of files that wait. Emptied when the page ends, and of what a killed one left when it begins."""

    def __init__(self, home: Path, random_bytes: Callable[[int], bytes]) -> None:
        self._root = home / "incoming"
        self._random_bytes = random_bytes
        self._folder: Path | None = None

    async def take(self, name_untrusted: str, pieces: AsyncIterator[bytes]) -> str:
        """Store a file that arrives in pieces; its key. Raises `Refused` for one that is too large, or empty."""
        key = self._random_bytes(12).hex()
        folder = self._opened() / key
        folder.mkdir(mode=0o700)
        try:
            with (folder / plain_name(name_untrusted)).open("xb") as file:
                await self._store(file, pieces)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return key

    async def _store(self, file: BinaryIO, pieces: AsyncIterator[bytes]) -> None:
        size = 0
        async for piece in pieces:
            size += len(piece)
            if size > LARGEST:
                raise Refused(f"larger than {LARGEST // 2**30} GB; import it with `anonml peer import FILE`")
            if shutil.disk_usage(self._root).free < _ROOM + len(piece):
                raise Refused("the disk is nearly full; free some space and choose the file again")
            file.write(piece)
        if not size:
            raise Refused("no file was chosen, or it is empty; choose one")

    def file(self, key_untrusted: str) -> Path:
        """The staged file of a key. Raises `Refused` when there is none."""
        folder = self._opened() / key_untrusted
        if not re.fullmatch(r"[0-9a-f]{24}", key_untrusted) or not folder.is_dir():
            raise Refused("this file is not waiting any more; choose it again")
        return next(one for one in folder.iterdir() if one.name != _LOOK)

    def preview(self, key: str) -> Preview:
        """Import the file into a scratch table of its own and look at it. Takes as long as the import. Raises as
        `import_file` does; the owner's tables are not touched."""
        file = self.file(key)
        scratch = file.parent / _LOOK
        scratch.unlink(missing_ok=True)
        try:
            summary = import_file(scratch, file)
            return Preview(file.name, summary, _peeks(scratch))
        finally:
            for left in (scratch, scratch.with_name(_LOOK + "-wal"), scratch.with_name(_LOOK + "-shm")):
                left.unlink(missing_ok=True)

    def drop(self, key: str) -> None:
        """Remove a staged file."""
        shutil.rmtree(self.file(key).parent, ignore_errors=True)

    def close(self) -> None:
        """Remove all that waits."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _opened(self) -> Path:
        if self._folder is None:
            self._root.mkdir(mode=0o700, exist_ok=True)
            for left in self._root.iterdir():
                if time.time() - left.stat().st_mtime > _STALE_SECONDS:
                    shutil.rmtree(left, ignore_errors=True)
            self._folder = self._root / self._random_bytes(8).hex()
            self._folder.mkdir(mode=0o700)
        return self._folder


_LOOK = ".look.sqlite"


def plain_name(name_untrusted: str) -> str:
    """A file name that is safe here and keeps its words and endings, which the importer goes by."""
    last = re.split(r"[/\\]", name_untrusted)[-1]
    kept = re.sub(r"[^\w.\- ()]", "_", last, flags=re.ASCII).lstrip(".")[-100:]
    return kept or "file"


def _peeks(database: Path) -> tuple[Peek, ...]:
    with closing(sqlite3.connect(database)) as connection:
        found = plain_tables_of(database).items()
        return tuple(_peek(connection, name, tuple(columns)) for name, columns in found)


def _peek(connection: sqlite3.Connection, table: str, columns: tuple[str, ...]) -> Peek:
    shown = columns[:SHOWN_COLUMNS]
    listed = ", ".join(f'"{column}"' for column in shown)
    rows = connection.execute(f'SELECT {listed} FROM "{table}" LIMIT {SHOWN_ROWS}').fetchall()
    count = connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]
    return Peek(table, columns, count, tuple(tuple(_shown(cell) for cell in row) for row in rows))


def _shown(cell: object) -> str:
    text = "" if cell is None else str(cell)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "\N{HORIZONTAL ELLIPSIS}"
