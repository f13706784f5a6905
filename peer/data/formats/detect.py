"""The kind of a file, found out from its content first and its name second, and the sources of its tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from attrs import field

from anon.errors import Malformed, Refused, of_the_system
from anon.tables.delimited import DELIMITERS, DelimitedSource
from anon.tables.streams import (
    GZIP,
    ImportLimits,
    Origin,
    Record,
    Skip,
    Source,
    in_its_encoding,
    numbered_lines,
    origin_of,
)
from anon.text.sentences import NOTHING, Ours, Sentence, Term, joined, say, say_many
from anon.values import frozen
from peer.data.formats import edx, excel, moodle, sqlite, takeout
from peer.data.formats.archives import ArchiveMember, folder_members, tar_members, zip_members
from peer.data.formats.json_text import JsonLinesSource, JsonListSource, json_value, numbered_entries
from peer.data.formats.parquet import MAGIC as PARQUET
from peer.data.formats.parquet import ParquetSource
from peer.data.formats.tar_headers import is_tar

READABLE = say(
    "CSV, TSV, JSON Lines, a JSON list, SQLite, Parquet, an edX tracking log, a Moodle log, Google Takeout's activity, "
    "a zip, tar or gzip of these, or an Excel file (.xlsx)"
)
_ENCODINGS: dict[str, Ours] = {"utf-8": NOTHING, "utf-16": Term("UTF-16"), "cp1252": Term("Windows-1252")}
_JSON = {".json", ".jsonl", ".ndjson"}
_TEXT = {".csv", ".tsv", ".tab", ".log", *_JSON}
_PACKED = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"7z\xbc\xaf": "7-zip", b"Rar!": "RAR", b"\x28\xb5\x2f\xfd": "zstd"}
_SHEETS = re.compile(rb"\s*\[\s*\[\s*[\[\]]")
_LINES_TRIED = 20


@frozen
class FileTable:
    """One table to be: the name that the format or the file gives it, and its rows."""

    name: str | None
    """The name by the format; None where it is the file's or the table's own, which is `title`."""
    title: str = field(repr=False)
    source: Source

    def count(self) -> int | None:
        """Rows, where the source can say so without giving them all."""
        count = getattr(self.source, "count", None)
        return count() if count else None


@frozen
class DetectedFile:
    """The kind of a file: a word for programs, a sentence for its owner, its tables, and what the owner should know."""

    format: str
    says: Ours
    tables: tuple[FileTable, ...]
    notes: tuple[str, ...] = ()
    size: int | None = None
    """Bytes on the disk of a file whose rows are not found by reading all of it in order; None for every other."""


@frozen
class _Container:
    """A file that holds files: a word for programs, and two phrases."""

    word: str
    says: Sentence
    inside: Sentence


_FOLDER = _Container("folder", say("a folder"), say("in a folder"))
_ZIP = _Container("zip", say("a zip archive"), say("in a zip archive"))
_TAR = _Container("tar", say("a tar archive"), say("in a tar archive"))


@contextmanager
def detected(path: Path, limits: ImportLimits) -> Iterator[DetectedFile]:
    """The kind of a file or folder; its sources can be read inside the block.

    Raises `Malformed` for what cannot be read and `Refused` for what policy forbids, an unsafe archive among it,
    before anything of it is unpacked.
    """
    if path.is_dir():
        yield _of_members(folder_members(path, limits), _FOLDER, limits)
        return
    start = _raw_start(path)
    if start.startswith(sqlite.MAGIC):
        with sqlite.opened_source(path, limits) as foreign:
            sources = sqlite.table_sources(foreign, limits, sqlite.length(path))
            tables = tuple(FileTable(None, name, source) for name, source in sources.items())
            yield DetectedFile("sqlite", say("a SQLite database"), tables, size=sqlite.length(path))
        return
    with ExitStack() as held:
        yield _of_file(path, start, limits, held)


def _raw_start(path: Path) -> bytes:
    if not path.is_file():
        raise Malformed(say("there is no such file; check the path"))
    try:
        with path.open("rb") as stream:
            return stream.read(1024)
    except OSError as error:
        raise Malformed(
            say("the file cannot be read ({strerror}); check its permissions", strerror=of_the_system(error))
        ) from None


def _of_file(path: Path, start: bytes, limits: ImportLimits, held: ExitStack) -> DetectedFile:
    if start.startswith(PARQUET):
        table = FileTable(None, path.stem, ParquetSource(path, limits))
        return DetectedFile("parquet", say("a Parquet file"), (table,), size=path.stat().st_size)
    if start.startswith((b"PK\3\4", b"PK\5\6", b"PK\7\x08")):
        members = zip_members(path, limits, held)
        if excel.is_workbook(members):
            return _of_workbook(path, members, limits, held)
        return _of_members(members, _ZIP, limits)
    if start.startswith(excel.OLE):
        raise excel.old_office_file(path)
    for magic, name in _PACKED.items():
        if start.startswith(magic):
            packed = say("the file is packed with {name}; unpack it first, or pack it as gzip or zip", name=Term(name))
            raise Refused(packed)
    origin = origin_of(path)
    inner = origin.start(limits, 1024)
    if is_tar(inner):
        return _of_members(tar_members(origin, limits), _TAR, limits)
    if inner.startswith((sqlite.MAGIC, PARQUET)):
        raise Refused(say("this is a packed database; unpack it first"))
    if inner.startswith((GZIP, b"PK\3\4", *_PACKED)):
        raise Refused(say("this is an archive in an archive; unpack the outer one first"))
    return _of_text(origin, limits)


def _of_workbook(
    path: Path, members: Sequence[ArchiveMember], limits: ImportLimits, held: ExitStack
) -> DetectedFile:
    source, notes = excel.opened_sheet(path, members, limits, held)
    if moodle.is_moodle(source):
        log = moodle.MoodleSource(Origin(path.name, lambda: path.open("rb")), limits, source)
        kind = _of_moodle(log, say("a Moodle log (Excel)"))
        return DetectedFile(kind.format, kind.says, kind.tables, (*notes, *kind.notes), path.stat().st_size)
    table = FileTable(None, path.stem, source)
    return DetectedFile("excel", say("an Excel file"), (table,), notes, path.stat().st_size)


# --- text ---


def _of_text(origin: Origin, limits: ImportLimits) -> DetectedFile:
    origin = in_its_encoding(origin, limits)
    start = origin.start(limits)
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    details: list[Ours] = [_ENCODINGS[origin.encoding], say("packed") if origin.packed is not None else NOTHING]
    says = joined([NOTHING, *(detail for detail in details if detail)], ", ")
    suffixes = origin.suffixes
    if text.startswith(b"<") and not {".csv", ".tsv"} & suffixes:
        return _of_page(origin, limits)
    if text.startswith(b"[") and not {".csv", ".tsv"} & suffixes:
        return _of_list(origin, text, says, limits)
    if _JSON & suffixes or (text.startswith(b"{") and not {".csv", ".tsv"} & suffixes):
        return _of_lines(origin, says, limits)
    return _of_delimited(origin, says, limits)


def _of_page(origin: Origin, limits: ImportLimits) -> DetectedFile:
    if not takeout.looks_like_activity(_as(origin, ".html"), limits):
        raise Malformed(say("this is a web page without activities; expected {readable}", readable=READABLE))
    return _of_takeout([("", _as(origin, ".html"))], say("an activity page of Google Takeout"), limits)


def _as(origin: Origin, suffix: str) -> Origin:
    return origin if suffix in origin.suffixes else Origin(f"page{suffix}", origin.raw, origin.packed, origin.encoding)


def _of_list(origin: Origin, text: bytes, says: Ours, limits: ImportLimits) -> DetectedFile:
    if _SHEETS.match(text):
        first = [value for _number, value in _some(numbered_entries(origin, limits, depth=2))]
        if not any(first) or moodle.is_moodle_list(first):
            return _of_moodle(moodle.MoodleSource(origin, limits), say("a Moodle log (JSON{details})", details=says))
    first_entry = next(iter(numbered_entries(origin, limits)), (0, None))[1]
    if takeout.is_activity_entry(first_entry):
        return _of_takeout(
            [("", _as(origin, ".json"))],
            say("an activity file of Google Takeout (JSON{details})", details=says),
            limits,
        )
    return DetectedFile(
        "json",
        say("a JSON list{details}", details=says),
        (FileTable(None, origin.stem, JsonListSource(origin, limits)),),
    )


def _of_lines(origin: Origin, says: Ours, limits: ImportLimits) -> DetectedFile:
    lines = (json_value(line) for _number, line in _some(numbered_lines(origin, limits)) if line and line.strip())
    if any(edx.is_event(value) for value in lines):
        table = FileTable(edx.TABLE, origin.stem, edx.edx_source(origin, limits))
        return DetectedFile("edx", say("an edX tracking log{details}", details=says), (table,))
    return DetectedFile(
        "json-lines",
        say("a JSON Lines file{details}", details=says),
        (FileTable(None, origin.stem, JsonLinesSource(origin, limits)),),
    )


def _of_delimited(origin: Origin, says: Ours, limits: ImportLimits) -> DetectedFile:
    source = DelimitedSource(origin, limits)
    description = joined((DELIMITERS[source.delimiter], says), "")
    if moodle.is_moodle(source):
        return _of_moodle(
            moodle.MoodleSource(origin, limits, source), say("a Moodle log (CSV {separated})", separated=description)
        )
    name = "tsv" if source.delimiter == "\t" else "csv"
    return DetectedFile(
        name,
        say("a {kind} file {separated}", kind=Term(name.upper()), separated=description),
        (FileTable(None, origin.stem, source),),
    )


def _of_moodle(source: moodle.MoodleSource, says: Ours) -> DetectedFile:
    table = FileTable(moodle.TABLE, moodle.TABLE, source)
    return DetectedFile("moodle", says, (table,), moodle.NOTES[source.month_first()])


def _some(records: Iterator[Any]) -> Iterator[Any]:
    yield from (record for _place, record in zip(range(_LINES_TRIED), records, strict=False))


# --- several files ---


def _of_takeout(parts: Sequence[takeout.Part], says: Ours, limits: ImportLimits) -> DetectedFile:
    table = FileTable(takeout.TABLE, takeout.TABLE, takeout.TakeoutSource(tuple(parts), limits))
    return DetectedFile("takeout", says, (table,))


def _of_members(members: Sequence[ArchiveMember], around: _Container, limits: ImportLimits) -> DetectedFile:
    parts = takeout.activity_parts(members, limits)
    if parts:
        files = say_many("{count} file", "{count} files", len(parts))
        says = say("an activity export of Google Takeout ({files} {inside})", files=files, inside=around.inside)
        return _of_takeout(parts, says, limits)
    inner = _found_among(members, limits)
    if not inner:
        raise Refused(
            say(
                "{says} without any file that can be imported; expected {readable}", says=around.says, readable=READABLE
            )
        )
    others = len(members) - len(inner)
    notes = [note for member_kind in inner for note in member_kind.notes]
    if others:
        notes.append(say_many("{count} other file in it is not read", "{count} other files in it are not read", others))
    kinds = sorted({member_kind.format for member_kind in inner})
    kinds_said = joined(dict.fromkeys(member_kind.says for member_kind in inner))
    description = say_many(
        "{says} with {count} file: {kinds}",
        "{says} with {count} files: {kinds}",
        len(inner),
        says=around.says,
        kinds=kinds_said,
    )
    word = kinds[0] if len(kinds) == 1 else around.word
    return DetectedFile(word, description, _merged(inner), tuple(dict.fromkeys(notes)))


def _found_among(members: Sequence[ArchiveMember], limits: ImportLimits) -> list[DetectedFile]:
    """Those of these files that can be imported. Raises `Refused` as soon as it would be too many tables."""
    found: list[DetectedFile] = []
    tables = 0
    for member in members:
        if (kind := _of_member(member, limits)) is not None:
            found.append(kind)
            tables += sum(table.name is None for table in kind.tables)
        if tables > limits.tables:
            raise Refused(
                say("it holds more than {tables} tables; unpack it and import the files you mean", tables=limits.tables)
            )
    return found


def _of_member(member: ArchiveMember, limits: ImportLimits) -> DetectedFile | None:
    """None for a file that is no text with records in it."""
    if not member.origin.suffixes & _TEXT:
        return None
    try:
        kind_of_text = _of_text(member.origin, limits)
        return kind_of_text if all(_readable(table.source) for table in kind_of_text.tables) else None
    except Malformed:
        return None


def _readable(source: Source) -> bool:
    return bool(source.keys()) or any(not isinstance(row, Skip) for _number, row in _some(source.records()))


def _merged(parts: Sequence[DetectedFile]) -> tuple[FileTable, ...]:
    """Files of one format that names its table become that one table; every other file is a table of its own."""
    tables: dict[str, list[Source]] = {}
    rest: list[FileTable] = []
    for table in (table for member_kind in parts for table in member_kind.tables):
        if table.name is None:
            rest.append(table)
        else:
            tables.setdefault(table.name, []).append(table.source)
    together = (
        FileTable(name, name, sources[0] if len(sources) == 1 else FileSeries(tuple(sources)))
        for name, sources in tables.items()
    )
    return (*together, *rest)


@frozen
class FileSeries:
    """Several files of one format, one after another; a record's number counts on from file to file."""

    sources: tuple[Source, ...]
    typed: bool = True
    unit: str = "entry"

    def keys(self) -> Sequence[str]:
        """The columns of all of them."""
        return list(dict.fromkeys(key for source in self.sources for key in source.keys()))  # noqa: SIM118

    def records(self) -> Iterator[Record]:
        """Every record of every file."""
        number = 0
        for source in self.sources:
            for _number, row in source.records():
                number += 1
                yield number, row
