"""Reading and writing the files of a home: a damaged file or a full disk becomes an error that says how to go on.

Every connection to a database of a home is made by `connect`, and every value out of a store is read within `reading`.
So a fault is told in one way wherever it is met: `Damaged` names the file, what was lost and how to restore, `NoRoom`
says that the disk is full. Values never stand in a message.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from anon.errors import Damaged, Malformed, NoRoom, RejectedProof
from anon.storage.open_elsewhere import opened_to_write
from anon.text.foreign import whole_place
from anon.text.sentences import Ours, Sentence, Term, say
from anon.values import frozen

Given = ParamSpec("Given")
Result = TypeVar("Result")
_UNWRITABLE = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")
_BROKEN = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_IOERR_SHORT_READ", "SQLITE_IOERR_DATA")
_BROKEN_SCHEMA = ("malformed database schema", "unsupported file format", "Could not decode to UTF-8")
_PASSING = (
    "SQLITE_BUSY",
    "SQLITE_LOCKED",
    "SQLITE_INTERRUPT",
    "SQLITE_NOMEM",
    "SQLITE_PROTOCOL",
    "SQLITE_MISUSE",
    "SQLITE_AUTH",
)
UNREADABLE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, Malformed, RejectedProof)
"""The errors of decoding bytes that this program did not write so."""


@frozen
class KeptFile:
    """The content of a file of a home, and how to restore it, in sentences.

    `own`: every statement on it is this program's own, so that one that fails tells of damage. Elsewhere, in the
    owner's tables, only a broken file does, and other faults stay what they are.
    """

    holds: Ours
    restore: Ours
    own: bool = True

    def damaged(self, file: Path | str, why: Ours) -> Damaged:
        """The file cannot be relied on. `why`: the kind of fault, never a value."""
        return Damaged(
            say(
                "{file}: damaged ({why}). {holds}. {restore}",
                file=whole_place(file), why=why, holds=self.holds, restore=self.restore,
            )
        )

    def full(self, file: Path | str, why: Ours) -> NoRoom:
        """The disk of the file takes nothing more."""
        return NoRoom(unwritten(whole_place(file), why))


def unwritten(file: Ours, why: Ours) -> Sentence:
    """A file, or a folder, that takes nothing more."""
    return say(
        "{file}: cannot be written ({why}); nothing that was stored is lost. Make room on that disk, check that the "
        "file may be written to, or move the home to another disk; it goes on from here",
        file=file, why=why,
    )


def connect(file: Path | str, kept: KeptFile, **options: Any) -> sqlite3.Connection:
    """A connection to write by, whose faults are `Damaged` and `NoRoom`. `options` are those of `sqlite3.connect`."""
    try:
        return opened_to_write(lambda: guarded(Path(file), kept)(file, **options))
    except sqlite3.Error as error:
        raise translated(error, Path(file), kept) from error


def guarded(file: Path, kept: KeptFile) -> Callable[..., sqlite3.Connection]:
    """The factory of such connections, for a library that connects by itself."""

    def make(*given: Any, **options: Any) -> sqlite3.Connection:
        made = _Connection(*given, **options)
        made.explain = lambda error: translated(error, file, kept)
        return made

    return make


def translated(error: Exception, file: Path, kept: KeptFile) -> Exception:
    """The error for its reader; itself when it passes by itself, is the owner's or a fault of this program."""
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    told = Term(name) if hasattr(error, "sqlite_errorname") else say("its content is not as it was written")
    if isinstance(error, UnicodeError) or name.startswith(_BROKEN) or str(error).startswith(_BROKEN_SCHEMA):
        return kept.damaged(file, told)
    # A broken constraint or a wrong statement is a fault of this program: it is not told as damage.
    ours = isinstance(error, (sqlite3.IntegrityError, sqlite3.ProgrammingError))
    if ours or not kept.own or name.startswith(_PASSING):
        return error
    return kept.full(file, told) if name.startswith(_UNWRITABLE) else kept.damaged(file, told)


@contextmanager
def reading(file: Path | str, kept: KeptFile, what: Ours) -> Iterator[None]:
    """Values out of a file, named `what`: one that cannot be read so is damage. Only for bytes that were written here.
    """
    try:
        yield
    except UNREADABLE as error:
        raise kept.damaged(file, say("{what} cannot be read", what=what)) from error


@contextmanager
def writing(file: Path | str, kept: KeptFile) -> Iterator[None]:
    """Writing a file: a full disk is told as one."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise kept.full(file, Term(errno.errorcode[error.errno])) from error
        raise


class _Cursor(sqlite3.Cursor):
    """Tells faults as its connection does."""

    def execute(self, *given: Any) -> _Cursor:
        return self._told(super().execute, *given)

    def executemany(self, *given: Any) -> _Cursor:
        return self._told(super().executemany, *given)

    def executescript(self, *given: Any) -> sqlite3.Cursor:
        return self._told(super().executescript, *given)

    def fetchone(self) -> Any:
        return self._told(super().fetchone)

    def fetchmany(self, *given: Any) -> list[Any]:
        return self._told(super().fetchmany, *given)

    def fetchall(self) -> list[Any]:
        return self._told(super().fetchall)

    def __next__(self) -> Any:
        return self._told(super().__next__)

    def _told(self, function: Callable[Given, Result], *given: Given.args, **named: Given.kwargs) -> Result:
        try:
            return function(*given, **named)
        except (sqlite3.Error, UnicodeError) as error:  # a damaged schema may spoil SQLite's own message
            assert isinstance(self.connection, _Connection)
            raise self.connection.told(error) from error


class _Connection(sqlite3.Connection):
    explain: Callable[[Exception], Exception]

    def cursor(self, *_: Any) -> _Cursor:  # type: ignore[override]
        """One that tells faults."""
        return super().cursor(_Cursor)

    def execute(self, *given: Any) -> _Cursor:
        """With a cursor of its own."""
        return self.cursor().execute(*given)

    def executemany(self, *given: Any) -> _Cursor:
        """With a cursor of its own."""
        return self.cursor().executemany(*given)

    def commit(self) -> None:
        """Commit."""
        try:
            super().commit()
        except sqlite3.Error as error:
            raise self.told(error) from error

    def backup(self, *given: Any, **options: Any) -> None:
        """Copy."""
        try:
            super().backup(*given, **options)
        except sqlite3.Error as error:
            raise self.told(error) from error

    def told(self, error: Exception) -> Exception:
        """The error for its reader."""
        return self.explain(error)


def runs_by_itself(connection: sqlite3.Connection) -> bool:
    """True if a file holds a trigger or a view: no program of ours writes one, and it would run with our statements."""
    foreign = "SELECT count(*) FROM main.sqlite_master WHERE type IN ('trigger', 'view')"
    return bool(connection.execute(foreign).fetchone()[0])


def first_unsound(connection: sqlite3.Connection) -> str:
    """SQLite's own look at the structure of a file, in which nothing runs by itself; empty when it is whole."""
    if runs_by_itself(connection):
        return "a trigger or a view"
    rows: Sequence[Any] = connection.execute("PRAGMA quick_check(1)").fetchall()
    return "" if [row[0] for row in rows] == ["ok"] else "quick_check"
