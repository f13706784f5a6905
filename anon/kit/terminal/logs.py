"""This program's log of its own faults: the kind and the places, never a text or a value.

The text of an exception may quote somebody's data (`could not convert string to float: '...'`), and what a program
that starts at login says is kept in the system's log. So a fault is told as the exceptions' types and the places in
the code that they passed; the rest is found by repeating it under a debugger.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Iterator
from types import TracebackType

_LOG = logging.getLogger(__name__)
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


class Plain(logging.Formatter):
    """Formats a record without the text of any exception, asyncio's reports of forgotten tasks included."""

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """The record's line, then its fault's places."""
        record.exc_text = None  # what another handler may have kept
        if record.name == "asyncio" and record.exc_info:  # its message quotes the task, and with it the exception
            record = logging.makeLogRecord(record.__dict__ | {"msg": "a task failed", "args": ()})
        return super().format(record)

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


def _thread_failed(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_type is not SystemExit:
        _told("a thread failed", failed.exc_value)


def _not_raised(failed: sys.UnraisableHookArgs) -> None:
    _told("a fault could not be raised", failed.exc_value)  # nothing of the object: it may show what it holds


def _told(what: str, error: BaseException | None) -> None:
    _LOG.error(what, exc_info=(type(error), error, error.__traceback__) if error is not None else None)
