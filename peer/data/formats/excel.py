"""Workbooks of Excel (ECMA-376), read row by row with openpyxl, which is an extra (`excel`).

Nothing is imported until a workbook comes. The first visible sheet with rows is the table. Rows above its heading, such
as a title, are left out; of a formula the value counts that was last computed. All of a file may unpack to
`LARGEST_UNPACKED`, and what is held in memory whole to `LARGEST_HELD`. Cells are read as the table's columns are, as of
CSV: a number that was typed as text is a number.
"""

from __future__ import annotations

import importlib
import io
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import date, datetime, time, timedelta
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from anon.errors import Malformed, Refused
from anon.machine.extras import install
from anon.tables.streams import Cell, ImportLimits, Record, finite_number
from anon.text.sentences import Ours, say, say_many
from anon.values import frozen
from peer.data.formats.archives import ArchiveMember

LIBRARY = "openpyxl"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The beginning of files of Office before 2007, and of those with a password ([MS-CFB], section 2.2)."""
LARGEST_UNPACKED = 512 * 2**20
LARGEST_HELD = 64 * 2**20
"""Bytes of the texts that cells share, of styles and of all else but the rows."""
MOST_ROWS = 2**20
"""Of a sheet, by Excel's own limit."""
MOST_COLUMNS = 2**14
AS_CSV = say("save it as CSV in Excel (File > Save As > CSV UTF-8)")
_LOOKED_AT = 30
"""Rows with something in them among which the heading is looked for."""
_WORKBOOK = re.compile(r"xl/workbook[0-9]*\.xml", re.IGNORECASE)
_OTHERS = {
    "xl/workbook.bin": say("this is a binary Excel file (.xlsb): {csv}", csv=AS_CSV),
    "content.xml": say("this is a file of LibreOffice: open it there and save it as CSV (File > Save As > Text CSV)"),
    "Index/Document.iwa": say("this is a file of Numbers or Pages: open it there and export it as CSV"),
    "word/document.xml": say("this is a Word file: copy its table into a spreadsheet and save that as CSV"),
}
_NO_TIME = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
"""Parts of a cell's format that are no codes: quoted text, a colour or language, one escaped character."""


def is_workbook(members: Iterable[ArchiveMember]) -> bool:
    """True if the files of this zip archive are a workbook. Raises `Refused` for those of another office program."""
    paths = {member.path for member in members}
    for path, said in _OTHERS.items():
        if path in paths and ("mimetype" in paths or "[Content_Types].xml" in paths or path.endswith(".iwa")):
            raise Refused(said)
    return "[Content_Types].xml" in paths and any(_WORKBOOK.fullmatch(path) for path in paths)


def old_office_file(file: Path) -> Refused:
    """The error for a file that begins with `OLE`, with the step that leads on."""
    with file.open("rb") as stream:
        held = stream.read(LARGEST_HELD)
    if "EncryptedPackage".encode("utf-16-le") in held:
        return Refused(
            say(
                "the file has a password: open it in Excel, take the password away (File > Info > Protect Workbook > "
                "Encrypt with Password, and leave it empty), save it, and choose it again"
            )
        )
    if "Workbook".encode("utf-16-le") in held or "Book\0".encode("utf-16-le") in held:
        return Refused(
            say("this is an Excel file of the old kind (.xls): open it in Excel and save it as .xlsx or CSV")
        )
    return Refused(
        say("this is a file of another office program: copy its table into an Excel file, and {csv}", csv=AS_CSV)
    )


def opened_sheet(
    file: Path, members: Sequence[ArchiveMember], limits: ImportLimits, held: ExitStack
) -> tuple[SheetSource, tuple[Ours, ...]]:
    """The first visible sheet with rows, and notes for the owner. It can be read until `held` ends."""
    _check_size(members)
    load = _reader()
    workbook = load(held.enter_context(_Watched(file, limits)), read_only=True, data_only=True, keep_links=False)
    held.callback(workbook.close)
    sheets = [sheet for sheet in workbook.worksheets if hasattr(sheet, "reset_dimensions")]
    for number, sheet in sorted(enumerate(sheets, 1), key=lambda numbered: numbered[1].sheet_state != "visible"):
        sheet.reset_dimensions()  # some programs write that a sheet ends with its first cell
        begin = list(islice(_filled(sheet, limits), _LOOKED_AT))
        if begin:
            heading = _heading(begin)
            return SheetSource(sheet, limits, *begin[heading]), tuple(_notes(number, len(sheets), heading))
    raise Malformed(
        say("the Excel file has no sheet with rows; check that it is the right file, and {csv}", csv=AS_CSV)
    )


def _reader() -> Any:
    try:
        library = importlib.import_module(LIBRARY)
    except ImportError:
        raise Refused(
            say(
                "this is an Excel file, which needs openpyxl: {csv}, or `{install}`",
                csv=AS_CSV,
                install=install("excel"),
            )
        ) from None
    # Its warnings quote cells.
    warnings.filterwarnings("ignore", module=rf"{LIBRARY}\.")
    return library.load_workbook


def _check_size(members: Sequence[ArchiveMember]) -> None:
    rows = sum(member.size for member in members if member.path.startswith("xl/worksheets/"))
    parts = (member for member in members if member.path.startswith("xl/") and member.path.endswith(".xml"))
    rest = sum(member.size for member in parts) - rows
    if rows > LARGEST_UNPACKED or rest > LARGEST_HELD:
        raise Refused(
            say(
                "the Excel file unpacks to more than {largest} bytes; {csv}",
                largest=LARGEST_UNPACKED if rows > LARGEST_UNPACKED else LARGEST_HELD,
                csv=AS_CSV,
            )
        )


class _Watched(io.FileIO):
    """The file. Its owner may stop it being read."""

    def __init__(self, file: Path, limits: ImportLimits) -> None:
        super().__init__(file)
        self._limits = limits

    def read(self, size: int | None = -1) -> bytes:
        self._limits.look()
        return super().read(-1 if size is None else size)


def _notes(number: int, sheets: int, above: int) -> Iterator[Ours]:
    if sheets > 1:
        yield say(
            "it has {sheets} sheets, and only sheet {number} is read; to import another, move that one to the front in "
            "Excel and save",
            sheets=sheets,
            number=number,
        )
    if above:
        yield say_many(
            "{count} row above the heading is left out", "{count} rows above the heading are left out", above
        )


# --- rows ---

_Filled = dict[int, Cell]
"""The cells of a row that hold something, by the place of their column, from 1."""


@frozen
class SheetSource:
    """The rows under one sheet's heading, by Excel's own numbers; an empty row is none. Keys carry their place after a
    NUL. A column without a name is one if a row has something in it. Dates and times are ISO 8601, booleans 1 and 0."""

    sheet: Any
    limits: ImportLimits
    number: int
    """Of the heading's row."""
    heading: _Filled
    typed: bool = False
    unit: str = "row"

    def keys(self) -> Sequence[str]:
        """The columns with a name."""
        return [_key(str(name), place) for place, name in self.heading.items()]

    def records(self) -> Iterator[Record]:
        """Every row. Raises `Malformed` for a sheet that is larger than one of Excel's."""
        titles = {place: _key(str(name), place) for place, name in self.heading.items()}
        for number, filled in _filled(self.sheet, self.limits):
            if number > self.number:
                others = {_key("", place): cell for place, cell in filled.items() if place not in titles}
                yield number, {key: filled.get(place) for place, key in titles.items()} | others


def _key(title: str, place: int) -> str:
    return f"{title.replace(chr(0), '').strip()}\0{place}"


def _heading(rows: Sequence[tuple[int, _Filled]]) -> int:
    """The place of the heading among these rows: the first that fills more than half of the widest row's columns."""
    widest = max(len(filled) for _number, filled in rows)
    return next(place for place, (_number, filled) in enumerate(rows) if 2 * len(filled) > widest)


def _filled(sheet: Any, limits: ImportLimits) -> Iterator[tuple[int, _Filled]]:
    for number, row in enumerate(sheet.iter_rows(), 1):
        if number % 64 == 0:
            limits.look()
        if number > MOST_ROWS or len(row) > MOST_COLUMNS:
            raise Malformed(say("the Excel file is damaged: it is larger than Excel allows; {csv}", csv=AS_CSV))
        filled: _Filled = {place: cell for place, each in enumerate(row, 1) if (cell := _cell(each)) is not None}
        if filled:
            yield number, filled


def _cell(found: Any) -> Cell:
    """The value as a person sees it. An error such as #N/A is nothing."""
    value = found.value
    match value:
        case None | "":
            return None
        case bool():
            return int(value)
        case int() | float():
            return _number(value)
        case str():
            return None if found.data_type == "e" or not value.strip() else value
        case datetime() if not value.microsecond and value.time() == time() and not _tells_time(found.number_format):
            return value.date().isoformat()
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            minutes, seconds = divmod(round(value.total_seconds()), 60)
            return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
    return None


def _number(value: float) -> Cell:
    """To the 15 digits that Excel shows: 0.3 and not 0.30000000000000004. It knows no difference of 7 and 7.0."""
    finite = finite_number(value)
    if not isinstance(finite, float):
        return finite
    return int(finite) if finite.is_integer() and abs(finite) < 2**53 else float(f"{finite:.15g}")


@cache
def _tells_time(number_format: str) -> bool:
    codes = _NO_TIME.sub("", number_format).lower()
    return "h" in codes or "s" in codes
