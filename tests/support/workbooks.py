"""Workbooks of Excel, made for tests; and changed ones, packed anew so that the change reaches the reader."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

SHEET = "xl/worksheets/sheet1.xml"
MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def workbook(rows: Sequence[Sequence[Any]], more: Callable[[Any], None] = lambda _book: None) -> bytes:
    """One sheet with these rows. `more` is called with the workbook before it is saved."""
    book = pytest.importorskip("openpyxl", reason="openpyxl is missing: install the extra `test`").Workbook()
    for row in rows:
        book.active.append(list(row))
    more(book)
    packed = io.BytesIO()
    book.save(packed)
    return packed.getvalue()


def repacked(packed: bytes, parts: Mapping[str, bytes | None]) -> bytes:
    """The same workbook with other parts; None takes one away."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(packed)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for name in dict.fromkeys([*old.namelist(), *parts]):
            content = parts[name] if name in parts else old.read(name)
            if content is not None:
                new.writestr(name, content)
    return made.getvalue()


def sheet(rows: str, before: str = "") -> bytes:
    """A sheet's XML."""
    return f"{before}<worksheet {MAIN}><sheetData>{rows}</sheetData></worksheet>".encode()


def changed_inside(packed: bytes, source: random.Random, change: Callable[[bytes, random.Random], bytes]) -> bytes:
    """One part of it changed."""
    with zipfile.ZipFile(io.BytesIO(packed)) as old:
        name = source.choice(old.namelist())
        return repacked(packed, {name: change(old.read(name), source)})


def encrypted(kind: str) -> bytes:
    """The beginning of a compound file with an entry of this name ([MS-CFB]): of an old or an encrypted workbook."""
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + bytes(512) + kind.encode("utf-16-le") + bytes(470)


def with_shared_texts(packed: bytes, texts: str, rows: str) -> bytes:
    """The workbook with such texts, which cells name by their numbers, as Excel itself writes them."""
    with zipfile.ZipFile(io.BytesIO(packed)) as old:
        types = old.read("[Content_Types].xml").decode()
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    override = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>'
    return repacked(packed, {
        "[Content_Types].xml": types.replace("</Types>", override).encode(),
        "xl/sharedStrings.xml": f"<sst {MAIN}>{texts}</sst>".encode(),
        SHEET: sheet(rows),
    })  # fmt: skip
