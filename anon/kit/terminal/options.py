"""The common parts of the commands of both sides: options, one line of JSON, naming a study, work that waits."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import datetime
from typing import Annotated, Any, TypeVar

import typer

from anon.errors import Refused
from anon.text.instants import zone

T = TypeVar("T")

JsonOption = Annotated[bool, typer.Option("--json", help="Print machine-readable JSON.")]
StudyOption = Annotated[str, typer.Option("--study", help="Study id or its beginning; not needed when there is one.")]


def print_json(value: object, indent: int | None = None) -> None:
    """JSON on standard output: one line, or as many as an indent makes. A reader of a pipe gets it at once."""
    sys.stdout.write(json.dumps(value, sort_keys=indent is None, indent=indent) + "\n")
    sys.stdout.flush()


def finished(work: Coroutine[Any, Any, T], close: Callable[[], Awaitable[None]] | None = None) -> T:
    """The result of work that waits; `close` is called when it has ended, however it ended."""

    import asyncio  # a command that only shows does without

    async def whole() -> T:
        try:
            return await work
        finally:
            if close is not None:
                await close()

    return asyncio.run(whole())


def picked(studies: Mapping[bytes, str], prefix: str, none: str) -> bytes:
    """The one study whose id begins with the prefix; each study has a short text that tells it from others.

    Raises `Refused` and lists them; with `none` when there are no studies.
    """
    found = {study: text for study, text in studies.items() if study.hex().startswith(prefix.lower())}
    if len(found) == 1:
        return next(iter(found))
    if not studies:
        raise Refused(none)
    if not found:
        raise Refused(f"no study's id begins with {prefix!r}; there are: {_listed(studies)}")
    raise Refused(f"there are several studies; name one by the beginning of its id (--study): {_listed(found)}")


def _listed(studies: Mapping[bytes, str]) -> str:
    return "; ".join(f"{study.hex()[:8]} {text}" for study, text in studies.items())


def local_time(seconds: float) -> str:
    """Unix seconds as this machine's clock shows them, with the zone."""
    at = datetime.fromtimestamp(seconds).astimezone()
    return f"{at:%a %Y-%m-%d %H:%M:%S} {zone(at)}"
