"""Files of strangers, read away from every key: the side that asks.

The child is told which file to read (`peer.data.foreign_child`), and each of its answers is checked here for its form,
types, lengths and numbers. A child that ends before it answered, for whatever reason, is a file that cannot be read.
Some systems have no child processes: iOS, Android, Windows. There a file is read in this process (docs/threats.md).
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import math
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from attrs import define, field

from anon.errors import Malformed, Refused
from anon.queries.lint import NAME
from anon.queries.process import has_children
from anon.tables.streams import Cell, ImportLimits, Record, Skip
from anon.text.sentences import Ours, attributed, from_store, say
from peer.data.foreign_talk import BEGIN, EXCEL, NONE, PARQUET, WORD, ReadingRequest, Silent, Talk
from peer.data.formats import sqlite
from peer.data.formats.detect import DetectedFile, FileTable, detected
from peer.data.formats.parquet import MAGIC
from peer.data.watching import said_as_a_bad_file

_PROGRAM = "import sys; sys.path[:0] = {paths}; from peer.data.foreign_child import main; main()"
_NEEDED = ("peer", "attrs", "pyarrow", "openpyxl", "et_xmlfile")
_GRACE = 60.0
"""Seconds that a child lives beyond its reading's end, which is told here."""
_LOOK = 0.2
_LONGEST_WORDS = 2**14
_PATTERN = re.compile(r"(?:[^{}]|\{[a-z_]+\})*")
"""Of a sentence: no field has a format, which could make a text of any length."""
_UNITS = frozenset({"line", "entry", "row"})
_WORKBOOKS = frozenset({".xlsx", ".xlsm"})
_FORMAT = re.compile(r"[a-z]{1,12}(?:-[a-z]{1,12})?")


@contextmanager
def opened(file: Path, limits: ImportLimits) -> Iterator[DetectedFile]:
    """The kind of a file or folder; its sources can be read inside the block. Raises as `detected` does.

    `limits.look` is called while the child is waited for.
    """
    if not has_children() or sys.platform == "win32":
        with said_as_a_bad_file(), detected(file, limits) as found:
            yield found
        return
    with _CHILDREN.begin(limits.seconds + _GRACE, _library_for(file)) as channel:
        channel.settimeout(_LOOK)
        conversation = _Conversation(Talk(channel, limits.look), limits)
        yield conversation.opened(ReadingRequest(file, limits))


def _library_for(file: Path) -> int:
    """By the beginning alone, and of a zip archive by its name too: the child finds out the rest."""
    start = b""
    if file.is_file():
        with suppress(OSError), file.open("rb") as stream:
            start = stream.read(len(MAGIC))
    if start == MAGIC:
        return PARQUET
    return EXCEL if start[:2] == b"PK" and file.suffix.lower() in _WORKBOOKS else NONE


# --- the program ---


class Children:
    """The server of this process. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def begin(self, seconds: float, library: int) -> socket.socket:
        """The socket of a new child, which lives for at most so long. One that could not be made reads as ended."""
        ours, theirs = socket.socketpair()
        with theirs, self._lock, suppress(OSError):
            for _ in range(2):  # it may have been killed since it was last looked at
                with suppress(BrokenPipeError, ConnectionResetError):
                    socket.send_fds(self._started(), [BEGIN.pack(seconds, library)], [theirs.fileno()])
                    break
        return ours

    def stop(self) -> None:
        """End it, and with it every child. The next file starts another."""
        with self._lock:
            if self._control is not None:
                self._control.close()
            if self._process is not None:
                self._process.wait()
            self._control = self._process = None

    def _started(self) -> socket.socket:
        if self._control is not None and self._process is not None and self._process.poll() is None:
            return self._control
        if self._control is not None:
            self._control.close()
        self._process, (self._control, theirs) = None, socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603, our own program
                _command(), stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env={}, cwd="/", close_fds=True, start_new_session=True,
            )  # fmt: skip
        return self._control


def _command() -> list[str]:
    if getattr(sys, "frozen", False) or not Path(sys.executable).name.lower().startswith(("python", "pypy")):
        return [sys.executable, WORD]
    found = [importlib.util.find_spec(name) for name in _NEEDED]
    paths = sorted({str(Path(spec.origin).resolve().parents[1]) for spec in found if spec and spec.origin})
    return [sys.executable, "-I", "-S", "-B", "-c", _PROGRAM.format(paths=ascii(paths))]


_CHILDREN = Children()
atexit.register(_CHILDREN.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_CHILDREN.__init__)  # type: ignore[misc]


# --- what it says ---


@define
class _Conversation:
    """Questions and checked answers. A question of records is asked one frame ahead."""

    talk: Talk
    limits: ImportLimits
    _asked: int = 0
    _ahead: bool = False
    """More records are asked for, and not yet taken."""

    def opened(self, request: ReadingRequest) -> DetectedFile:
        """The file's kind, and sources that ask."""
        match self._answer(request.values()):
            case [str(format), str(says), list(tables), list(notes), int() | None as size] if _FORMAT.fullmatch(format):
                pass
            case _:
                raise _failed()
        found = tuple(self._table(number, table) for number, table in enumerate(tables))
        words = [_words(note) for note in notes]
        length = None if size is None else sqlite.length(request.file)
        return DetectedFile(format, _words(says), found, tuple(words), length)

    def _table(self, number: int, told: Any) -> FileTable:
        match told:
            case [name, str(title), bool(typed), str(unit)] if unit in _UNITS and _is_name(name):
                return FileTable(name, title, ForeignSource(self, number, typed, unit))
        raise _failed()

    def keys(self, table: int) -> list[str]:
        """The columns known before any record is read."""
        return _texts(self._ask("keys", table))

    def count(self, table: int) -> int | None:
        """Rows, where the child can say so."""
        match self._ask("count", table):
            case None:
                return None
            case int(count) if count >= 0:
                return count
        raise _failed()

    def records(self, table: int) -> Iterator[Record]:
        """Every record, as long as nothing else is asked meanwhile."""
        keys, answer = list[str](), self._ask("records", table)
        asked = self._asked
        while True:
            last = not isinstance(answer, list) or answer[-1:] == [None]
            if not last:
                self._say(["more"])
                self._ahead = True
            for record in _records(answer, keys, self.limits):
                if asked != self._asked:
                    raise RuntimeError("another question was asked while records were read")
                yield record
            if last:
                return
            answer, self._ahead = self._hear(), False

    def _ask(self, what: str, table: int) -> Any:
        self._asked += 1
        if self._ahead:
            self._ahead = False
            with suppress(Malformed, Refused):
                self._hear()
        return self._answer([what, table])

    def _answer(self, question: list[object]) -> Any:
        self._say(question)
        return self._hear()

    def _say(self, question: list[object]) -> None:
        with suppress(OSError):  # its end is told where the answer is awaited
            self.talk.say(question)

    def _hear(self) -> Any:
        try:
            answer = self.talk.hear()
        except (OSError, Silent):
            raise _failed() from None
        match answer:
            case {"fault": ["malformed", str(words)]}:
                raise Malformed(_words(words))
            case {"fault": ["refused", str(words)]}:
                raise Refused(_words(words))
        return answer


@define
class ForeignSource:
    """A table of a file that a child reads."""

    _conversation: _Conversation = field(repr=False)
    _table: int
    typed: bool
    unit: str

    def keys(self) -> Sequence[str]:
        """The columns known before any record is read."""
        return self._conversation.keys(self._table)

    def count(self) -> int | None:
        """Rows, where these are known without reading all of them here."""
        return self._conversation.count(self._table)

    def records(self) -> Iterator[Record]:
        """Every record. Ends, with an error, where the child does."""
        return self._conversation.records(self._table)


def _records(answer: Any, keys: list[str], limits: ImportLimits) -> Iterator[Record]:
    """The records of an answer; `keys` are those of the records before, and change with them."""
    if not isinstance(answer, list):
        raise _failed()
    for said in answer:
        if type(said) is list:
            yield _number(said), dict(zip(keys, _cells(said, len(keys), limits.cell_bytes), strict=True))
            continue
        match said:
            case {"keys": list()}:
                keys[:] = _texts(said["keys"])
            case {"skip": [int(number), str(why)]} if why in Skip.__members__:
                yield number, Skip[why]
            case None:
                return
            case _:
                raise _failed()


def _number(said: list[Any]) -> int:
    if not said or type(said[0]) is not int:
        raise _failed()
    return said[0]


def _cells(said: list[Any], width: int, most: int) -> list[Cell]:
    """The cells after a record's number, each of a kind and size that a table can hold."""
    del said[0]
    if len(said) != width:
        raise _failed()
    for index, cell in enumerate(said):
        kind = type(cell)
        if kind is str:
            fits = len(cell) <= most
        elif cell is None:
            continue
        elif kind is int:
            fits = -(2**63) <= cell < 2**63
        elif kind is float:
            fits = math.isfinite(cell)
        else:
            fits, said[index] = cell == [], "x" * (most + 1)
        if not fits:
            raise _failed()
    return said


def _texts(told: Any) -> list[str]:
    if not isinstance(told, list) or not all(type(text) is str for text in told):
        raise _failed()
    return told


def _is_name(name: object) -> bool:
    return name is None or (isinstance(name, str) and NAME.fullmatch(name) is not None)


def _words(stored: str) -> Ours:
    """A sentence of the child's. Its words are of its program, or of the file if that has taken it over."""
    with suppress(ValueError, RecursionError):
        if len(stored) <= _LONGEST_WORDS and (stored[:1] != "\x02" or _plain(json.loads(stored[1:]))):
            return attributed(from_store(stored))
    raise _failed()


def _plain(told: object) -> bool:
    """True if no pattern of a stored sentence has a field with a format."""
    if isinstance(told, list):
        return all(map(_plain, told))
    if not isinstance(told, dict):
        return True
    patterns = [told.get(part, "") for part in ("pattern", "many")]
    plain = all(isinstance(text, str) and _PATTERN.fullmatch(text) for text in patterns)
    return plain and all(map(_plain, told.values()))


def _failed() -> Malformed:
    return Malformed(
        say(
            "this file is damaged or of another kind: the process that read it ended or took too much memory; nothing "
            "was imported. Export it again, or as CSV"
        )
    )
