"""This program's log of its own faults: the kind and the places, never a text or a value.

The text of an exception may quote somebody's data (`could not convert string to float: '...'`), and what a program
that starts at login says is kept in the system's log. So a fault is told as the exceptions' types and the places in
the code that they passed; the rest is found by repeating it under a debugger.

Lines of a command that serves begin with their time in UTC, unless the system's journal takes them, which adds its own.
It is to the second. Where a line may come of a single member's act it is to the hour (docs/threats.md).
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import IO

from anon.kit.terminal.hints import completed
from anon.machine.clock import OF_ONE
from anon.machine.environment import is_journal

_LOG = logging.getLogger(__name__)
_OWN = ("anon.", "aggregator.")
"""Other libraries log where a request fails, too."""
_Failure = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def places(error: BaseException) -> str:
    """A fault in lines: each exception of its chain and groups by type, with its frames."""
    return "\n".join(_lines(error, set()))


def _lines(error: BaseException, seen: set[int]) -> Iterator[str]:
    if id(error) in seen:
        return
    seen.add(id(error))
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None:
        yield from _lines(before, seen)
        yield "then"
    yield type(error).__name__
    for frame, line in traceback.walk_tb(error.__traceback__):
        yield f"  {frame.f_globals.get('__name__', '?')}:{line} in {frame.f_code.co_name}"
    if isinstance(error, BaseExceptionGroup):
        for exception in error.exceptions:
            yield "of which"
            yield from _lines(exception, seen)


def moment(seconds: float, of_one: bool = False) -> str:
    """Unix seconds as lines begin with them. `of_one`: it may come of a single member's act."""
    return time.strftime("%Y-%m-%dT%HZ " if of_one else "%Y-%m-%dT%H:%M:%SZ ", time.gmtime(seconds))


def beginning(stream: IO[str], of_one: bool = False) -> str:
    """The beginning of a line that a command that serves writes there now. For `of_one` see `moment`."""
    return "" if is_journal(stream) else moment(time.time(), of_one)


class Plain(logging.Formatter):
    """Formats a record without the text of any exception, asyncio's reports of forgotten tasks included."""

    def __init__(self, timed: bool = False) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")
        self._timed = timed

    def format(self, record: logging.LogRecord) -> str:
        """The record's line, then its fault's places."""
        record.exc_text = None  # what another handler may have kept
        if record.name == "asyncio" and record.exc_info:  # its message quotes the task, and with it the exception
            record = logging.makeLogRecord(record.__dict__ | {"msg": "a task failed", "args": ()})
        of_one = hasattr(record, "of_one") or not record.name.startswith(_OWN)
        return (moment(record.created, of_one) if self._timed else "") + completed(super().format(record))

    def formatException(self, ei: _Failure) -> str:
        """The fault's places."""
        return places(ei[1]) if ei[1] is not None else ""


def to_stderr() -> None:
    """Messages logged from now on go to stderr, warnings and worse, and so formatted. Faults of threads and of the
    garbage collector, which Python itself would print, are logged with them."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Plain())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    threading.excepthook = _thread_failed
    sys.unraisablehook = _not_raised


def with_times() -> None:
    """Messages of a command that serves begin with their time from now on."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, Plain):
            handler.setFormatter(Plain(timed=not is_journal(sys.stderr)))


def _thread_failed(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_type is not SystemExit:
        _told("a thread failed", failed.exc_value)


def _not_raised(failed: sys.UnraisableHookArgs) -> None:
    _told("a fault could not be raised", failed.exc_value)  # nothing of the object: it may show what it holds


def _told(what: str, error: BaseException | None) -> None:
    exc_info = (type(error), error, error.__traceback__) if error is not None else None
    _LOG.error(what, exc_info=exc_info, extra=OF_ONE)
