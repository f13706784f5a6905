"""A CSV file as columns of typed cells: the delimiter, the encoding, the names and the types that the importer finds.

Staff's own data, read whole: what a member's importer would skip row by row is here counted or refused with its place.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import unicodedata
import zlib
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from anon.errors import Malformed
from anon.sql import NAME

Cell = int | float | str | None

DELIMITERS = ",;\t|"
_EXCEL = re.compile(r"sep=(.)\r?\n?", re.IGNORECASE)
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})", re.ASCII)
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
_IDENTIFIER = re.compile(r"[+-]?(0[0-9].*|[0-9]{19,})", re.ASCII)
_GZIP = b"\x1f\x8b"


@frozen
class CsvFile:
    """The columns by name, of equal length, and how many rows were left out because they have more or fewer cells."""

    columns: dict[str, list[Cell]]
    skipped: int


def read_columns(path: Path) -> dict[str, list[Cell]]:
    """`read_csv` without the count of rows left out."""
    return read_csv(path).columns


def read_csv(path: Path) -> CsvFile:
    """The cells of a text file with a header, gzipped or not: commas, semicolons, tabs or bars; UTF-8, UTF-16 with its
    mark or Windows-1252. An empty cell is None; a column is numbers if all its cells are.

    Raises `Malformed` when the file cannot be read, has no row, or two columns of one name.
    """
    text = _text(path)
    told = _EXCEL.match(text)
    text = text[told.end() :] if told else text
    delimiter = told[1] if told and told[1] in DELIMITERS else _delimiter(text)
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
        table = [row for row in rows if row]
    except csv.Error as error:
        raise Malformed(f"{path.name}: cannot be read as CSV ({error}); check its quotes and line ends") from None
    if len(table) < 2:
        raise Malformed(f"{path.name}: expected a header and at least one row")
    names = _names(path, table[0])
    body = [row for row in table[1:] if len(row) == len(names)]
    if not body:
        raise Malformed(f"{path.name}: no row has {len(names)} cells as the header has; check the delimiter")
    columns = {name: _typed([row[place].strip() for row in body]) for place, name in enumerate(names)}
    return CsvFile(columns, len(table) - 1 - len(body))


def column_name(title: str, place: int) -> str:
    """The name of a column by its title and place (from 1), as `peer import` names it: a-z, 0-9 and _."""
    if not title.strip():
        return f"column_{place}"
    ascii_only = unicodedata.normalize("NFKD", title.strip()[:256]).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "_", ascii_only.lower()).strip("_")[:60] or "unnamed"
    return words if NAME.fullmatch(words) else f"x_{words}"[:63]


def _names(path: Path, titles: Sequence[str]) -> list[str]:
    found: list[str] = []
    for place, title in enumerate(titles, 1):
        name = column_name(title, place)
        if name in found:
            raise Malformed(
                f"{path.name}: columns {found.index(name) + 1} and {place} are both {name} once reduced to "
                "a-z, 0-9 and _; rename one in the file"
            )
        found.append(name)
    return found


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if data.startswith(_GZIP) else data
        text = data.decode(_encoding(data))
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise Malformed(f"{path.name}: cannot be read as CSV ({type(error).__name__}); check the path") from None
    if "\0" in text:
        raise Malformed(f"{path.name}: cannot be read as CSV (bytes that are no text); save it as UTF-8")
    return text


def _encoding(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"


def _delimiter(text: str) -> str:
    first = text.lstrip("\r\n").partition("\n")[0]
    unquoted = "".join(first.split('"')[::2])
    return max(DELIMITERS, key=unquoted.count)


def _typed(texts: list[str]) -> list[Cell]:
    """Numbers with a leading zero or of 19 digits and more are identifiers: they stay text, to the last digit."""
    different = {text for text in texts if text}
    if different and all(_INTEGER.fullmatch(text) for text in different):
        return [int(text) if text else None for text in texts]
    if different and all(is_number(text) for text in different):
        return [float(text) if text else None for text in texts]
    return [text or None for text in texts]


def is_number(text: str) -> bool:
    """Whether a text is a finite number and no identifier."""
    return bool(_REAL.fullmatch(text)) and not _IDENTIFIER.fullmatch(text) and math.isfinite(float(text))
