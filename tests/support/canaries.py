"""Unusual values, as every file may spell them, and a search for them in every byte of a folder."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from anon.storage import durable

TEXT, NUMBER, WHOLE = "Papageienkanarie Ümit", 43.719306254, 0x5EAF00D1CEF1F1


def spellings(name: str, value: str | float | int | bytes) -> dict[str, bytes]:
    """A value in every encoding that a database, a document or a file of ours may hold it in."""
    if isinstance(value, bytes):
        return {name: value}
    if isinstance(value, str):
        forms = {
            "utf-8": value.encode(),
            "utf-16-le": value.encode("utf-16-le"),
            "utf-16-be": value.encode("utf-16-be"),
        }
        return {f"{name} {form}": data for form, data in (forms | {"json": json.dumps(value)[1:-1].encode()}).items()}
    written = {f"{name} in digits": str(value).encode()}
    if isinstance(value, float):
        packed = {f"{name} {order}": struct.pack(f"{order}d", value) for order in "<>"}
    else:
        packed = {f"{name} {order}": value.to_bytes(7, order) for order in ("big", "little")}
    return written | packed


CANARIES = spellings("text", TEXT) | spellings("number", NUMBER) | spellings("whole", WHOLE)


def traces(folder: Path, needles: Mapping[str, bytes] = CANARIES) -> list[str]:
    """Where they are: in the bytes of files (logs, free pages and slack included) and in names."""
    found = []
    for path in sorted(folder.rglob("*")):
        name = os.fsencode(path.relative_to(folder))
        content = path.read_bytes() if path.is_file() else b""
        found += [
            f"{path.relative_to(folder)}: {what}" for what, form in needles.items() if form in content + b"\0" + name
        ]
    return found


@contextmanager
def forgetful_sqlite(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """SQLite as most builds of it are: what is deleted stays in free pages, unless a program asks for more."""
    connect, guarded = sqlite3.connect, durable.guarded

    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return _forgetting(connect(*arguments, **options))

    def made(*arguments: Any) -> Callable[..., sqlite3.Connection]:
        make = guarded(*arguments)
        return lambda *given, **options: _forgetting(make(*given, **options))

    with patch.context() as changed:
        changed.setattr(sqlite3, "connect", connected)
        changed.setattr(durable, "guarded", made)  # `durable.connect` makes its connections by itself
        yield


def _forgetting(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.execute("PRAGMA secure_delete=OFF")
    return connection
