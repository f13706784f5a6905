"""A SQLite file's schema has a number (`PRAGMA user_version`) that only moves on, in one transaction, with a copy kept.

A program opens files of its own number. One of a lower number is first copied beside itself and then moved on, all
steps in one transaction. A process that is killed meanwhile leaves the old file or the new one. Two kinds are refused
with nothing changed: of a number from which no step leads on, and of a higher one, which a newer program wrote. This
one would break what it does not know.

The copy is for an owner whose program of yesterday should go on after all. It is made by VACUUM INTO, so it holds no
row that was erased before. `drop_copies` removes it when the first thing is erased afterwards. Otherwise it would keep
erased data, and bring spent budget back.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from pathlib import Path

from anon.errors import Refused
from anon.storage.crash_points import crash_points
from anon.storage.durable import KeptFile, connect, guarded, reading
from anon.storage.locks import synced
from anon.storage.private_files import new_private
from anon.text.foreign import whole_place
from anon.text.sentences import Term, attributed, say
from anon.values import frozen

KEPT = "-kept"
"""How the names of kept copies end: `FILE.v1-kept` is a copy with number 1."""
PATIENCE_SECONDS = 5.0
POINTS = ("before-migration", "within-migration", "after-migration")
"""Where a test may kill a migration: after the copy, before the commit, after it."""
crash_point = crash_points(POINTS)
Step = Callable[[sqlite3.Connection], None]
UNNAMED = KeptFile(say("With it is what its home stored"), say("Restore a backup of the home"))


@frozen
class Schema:
    """`steps[n]` moves a file of number n on to n + 1, inside a transaction of the caller's. `version` is this
    program's own number, `kept` what such a file holds."""

    version: int
    steps: Mapping[int, Step]
    kept: KeptFile = UNNAMED

    def demand_known(self, file: Path) -> None:
        """Raises `Refused` for a file that a newer program wrote, and for one from whose number no step leads on.

        It reads nothing else and changes nothing.
        """
        stored_version = version_of(file, self.kept)
        if stored_version > self.version:
            raise Refused(
                say(
                    "{file}: written by a newer anonml (schema {stored_version}, this one knows {version}); install "
                    "that one again. If none ever ran here, the file is damaged: restore a backup. Nothing was changed",
                    file=whole_place(file),
                    stored_version=stored_version,
                    version=self.version,
                )
            )
        if stored_version not in (*self.steps, self.version) and _has_tables(file, self.kept):
            raise Refused(
                say(
                    "{file}: no home of this anonml (schema {stored_version}, this one knows {version}). If an earlier "
                    "one wrote it, finish its studies with that one, or begin in another folder with --home. "
                    "Otherwise put back a copy of the home. Nothing was changed",
                    file=whole_place(file),
                    stored_version=stored_version,
                    version=self.version,
                )
            )

    def demand_own(self, file: Path) -> None:
        """Raises `Refused` for a file of another number than this program's."""
        self.demand_known(file)
        if _is_behind(file, self):
            raise Refused(
                say(
                    "{file}: written by an older anonml; any command that opens its home brings it up to date",
                    file=whole_place(file),
                )
            )


def version_of(file: Path, kept: KeptFile | None = None) -> int:
    """The file's number; 0 for one that has none, is empty or is not there. Raises `Damaged`."""
    if not file.exists():
        return 0
    with closing(_looking(file, kept or UNNAMED)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def upgrade(
    file: Path,
    schema: Schema,
    held: Callable[[], AbstractContextManager[object]],
    sleep: Callable[[float], None] = time.sleep,
) -> Path | None:
    """Move a file on to the program's number; the copy that was kept, None when there was nothing to do.

    `held` keeps every other program out of the home, and raises `Refused` while one is in: an older one that runs would
    go on by its own rules. It is asked again for a while, because two new programs may begin at once. Raises `Refused`
    for a newer file and while an older program runs.
    """
    schema.demand_known(file)
    asked_at = 0.0
    while _is_behind(file, schema):
        try:
            with held():
                return _moved_on(file, schema) if _is_behind(file, schema) else None
        except Refused as busy:
            if asked_at >= PATIENCE_SECONDS:
                raise Refused(
                    say(
                        "{busy} (its files are an older anonml's, and must be brought up to date)",
                        busy=attributed(str(busy)),
                    )
                ) from None
        sleep(0.1)
        asked_at += 0.1
    return None


def drop_copies(file: Path) -> None:
    """Remove the copies that were kept of a file."""
    for copy in file.parent.glob(f"{file.name}.v*{KEPT}*"):
        copy.unlink(missing_ok=True)


def _is_behind(file: Path, schema: Schema) -> bool:
    return version_of(file, schema.kept) < schema.version and _has_tables(file, schema.kept)


def _looking(file: Path, kept: KeptFile) -> sqlite3.Connection:
    return guarded(file, kept)(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=30)


def _has_tables(file: Path, kept: KeptFile) -> bool:
    if not file.exists():
        return False
    with closing(_looking(file, kept)) as connection:
        return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def _moved_on(file: Path, schema: Schema) -> Path:
    with closing(connect(file, schema.kept, timeout=30, isolation_level=None)) as connection:
        for setting in ("synchronous = FULL", "secure_delete = ON"):
            connection.execute(f"PRAGMA {setting}")
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        copy = _copied(connection, file, version)
        crash_point("before-migration")
        # The write lock at once: a transaction that begins by reading may be refused it later, without a wait.
        connection.execute("BEGIN IMMEDIATE")
        for number in range(version, schema.version):
            with reading(file, schema.kept, Term(f"schema {number}")):
                schema.steps[number](connection)
        connection.execute(f"PRAGMA user_version = {schema.version}")
        crash_point("within-migration")
        connection.execute("COMMIT")
        crash_point("after-migration")
    return copy


def _copied(connection: sqlite3.Connection, file: Path, number: int) -> Path:
    """A copy readable by its owner only: all of it under its name, or nothing."""
    copy = file.with_name(f"{file.name}.v{number}{KEPT}")
    fresh = copy.with_name(copy.name + ".new")
    fresh.unlink(missing_ok=True)
    new_private(fresh).close()
    connection.execute("VACUUM INTO ?", (str(fresh),))
    _synced(fresh)
    fresh.replace(copy)
    synced(file.parent)
    return copy


def _synced(file: Path) -> None:
    with file.open("rb+") as kept:
        os.fsync(kept.fileno())
