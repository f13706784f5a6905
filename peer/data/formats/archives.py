"""Zip and tar archives and folders: inspected whole before a byte of any file in them is unpacked, then streamed.

Refused are: too many files, a long list of them, names that leave the archive (absolute, `..`, a drive), two files of
one name, links and devices, archives in archives, files that overlap, and files or archives that unpack to more than
the limits or to many times their size. The claims of a header are not believed afterwards either: every stream is
counted (`anon.tables.streams`). Nothing is unpacked to the disk. An entry is named by its number, for its name is the
owner's.
"""

from __future__ import annotations

import io
import os
import re
import stat
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from attrs import field

from anon.errors import Malformed, Refused
from anon.tables.streams import CHUNK, ImportLimits, Origin, origin_of
from anon.text.sentences import Sentence, say
from anon.values import frozen
from peer.data.formats.tar_headers import TarEntry, walk

ARCHIVES = frozenset(
    {".zip", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".7z", ".rar", ".zst", ".lz", ".lzma", ".tbz2", ".txz", ".jar"}
)
NEXT = say("ask for another export, or unpack it yourself and import the file you mean")
HELD = 8 * 2**20
"""Bytes up to which an unpacked tar archive is held in memory."""
_ZIP_END = b"PK\5\6"
# The record at the end, and its comment of at most 65,535 bytes (APPNOTE, section 4.3.16).
_LONGEST_END = 22 + 2**16
_DRIVE = re.compile(r"[A-Za-z]:")


@frozen
class ArchiveMember:
    """A file in an archive or a folder. `path` has its folders, with slashes."""

    path: str = field(repr=False)
    size: int
    origin: Origin = field(repr=False)


def folder_members(folder: Path, limits: ImportLimits) -> tuple[ArchiveMember, ...]:
    """The plain files below a folder; links are not followed, and packed files are let be."""
    found: list[ArchiveMember] = []
    seen = 0
    for parent, folders, names in os.walk(folder, followlinks=False):
        seen += len(folders) + len(names)
        if seen > limits.entries:
            raise Refused(
                say("the folder holds more than {entries} files; name one of the folders in it", entries=limits.entries)
            )
        for name in sorted(names):
            file = Path(parent, name)
            if stat.S_ISREG(file.lstat().st_mode) and not _is_archive(name.lower().removesuffix(".gz")):
                path = file.relative_to(folder.parent).as_posix()
                found.append(ArchiveMember(path, file.stat().st_size, origin_of(file)))
    return tuple(sorted(found, key=lambda member: member.path))


# --- zip ---


def zip_members(file: Path, limits: ImportLimits, held: ExitStack) -> tuple[ArchiveMember, ...]:
    """The files of a zip archive, after all checks. Raises `Refused` or `Malformed` (broken).

    The archive stays open until `held` ends: its list of files is read once, and not for each file in it.
    """
    _check_index(file, limits)
    try:
        archive = held.enter_context(zipfile.ZipFile(file))
        infos = archive.infolist()
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, NotImplementedError, OverflowError, UnicodeDecodeError):
        raise Malformed(say("the zip archive is broken; download it again")) from None
    _check(((_zip_name(info), info.file_size) for info in infos), limits)
    for number, info in enumerate(infos, 1):
        _check_zip_entry(number, info, limits)
    _check_total(infos, limits)
    return tuple(_zip_member(archive, info) for info in infos if not info.is_dir())


def _check_index(file: Path, limits: ImportLimits) -> None:
    """The list of files is read into memory whole, so its length is looked at before."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        stream.seek(max(0, size - _LONGEST_END))
        end = stream.read()
    position = end.rfind(_ZIP_END)
    if position < 0 or len(end) - position < 22:
        raise Malformed(say("the zip archive breaks off; download it again"))
    where = max(0, size - _LONGEST_END) + position
    begins = int.from_bytes(end[position + 16 : position + 20], "little")
    length = int.from_bytes(end[position + 12 : position + 16], "little")
    if length == 0xFFFFFFFF or begins == 0xFFFFFFFF:
        length = _zip64_length(end[:position])
    if length > limits.index_bytes or length > where:
        raise Refused(
            say(
                "the archive's list of files is longer than {index_bytes} bytes; {next}",
                index_bytes=limits.index_bytes,
                next=NEXT,
            )
        )


def _zip64_length(before: bytes) -> int:
    position = before.rfind(b"PK\6\6")
    if position < 0 or len(before) - position < 56:
        raise Malformed(say("the zip archive is broken; download it again"))
    return int.from_bytes(before[position + 40 : position + 48], "little")


def _zip_name(info: zipfile.ZipInfo) -> str:
    # `orig_filename` is what stands in the archive; `filename` has lost what follows a NUL.
    return info.orig_filename


def _check_zip_entry(number: int, info: zipfile.ZipInfo, limits: ImportLimits) -> None:
    # Archivers of Unix keep the mode in the upper half; others leave 0 there.
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise Refused(say("entry {number} of the archive is a link or a device; {next}", number=number, next=NEXT))
    if info.file_size > limits.ratio_from and info.file_size > limits.ratio * max(info.compress_size, 1):
        raise Refused(
            say(
                "entry {number} of the archive unpacks to more than {ratio} times its size; {next}",
                number=number,
                ratio=limits.ratio,
                next=NEXT,
            )
        )


def _check_total(infos: Sequence[zipfile.ZipInfo], limits: ImportLimits) -> None:
    packed, unpacked = (sum(getattr(info, size) for info in infos) for size in ("compress_size", "file_size"))
    if unpacked > limits.ratio_from and unpacked > limits.ratio * max(packed, 1):
        raise Refused(
            say("the archive unpacks to more than {ratio} times its size; {next}", ratio=limits.ratio, next=NEXT)
        )
    ends = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        if info.header_offset < ends:
            raise Refused(say("two files of the archive share the same bytes; {next}", next=NEXT))
        # A local header has 30 bytes at least. Files that overlap make the densest bombs (Fifield 2019, WOOT).
        ends = info.header_offset + 30 + info.compress_size


def _zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> ArchiveMember:
    def raw() -> IO[bytes]:
        return archive.open(info)

    path = _slashes(info.filename)
    return ArchiveMember(path, info.file_size, Origin(path.rpartition("/")[2], raw, info.compress_size))


# --- tar ---


def tar_members(origin: Origin, limits: ImportLimits) -> tuple[ArchiveMember, ...]:
    """The files of a tar archive (ustar, pax or GNU; also .tar.gz), after all checks of every header."""
    entries: list[TarEntry] = []
    with origin.open(limits) as stream:
        for entry in walk(stream, limits):
            entries.append(entry)
            if len(entries) > limits.entries:
                break
    _check(((entry.path, entry.size) for entry in entries), limits)
    for number, entry in enumerate(entries, 1):
        if entry.kind == "other":
            raise Refused(say("entry {number} of the archive is a link or a device; {next}", number=number, next=NEXT))
    start = origin.start(limits, HELD + 1)
    whole = start if len(start) <= HELD else None
    return tuple(_tar_member(origin, entry, limits, whole) for entry in entries if entry.kind == "file")


def _tar_member(origin: Origin, entry: TarEntry, limits: ImportLimits, whole: bytes | None) -> ArchiveMember:
    """A short archive is held, and a plain one is read from the file's place; a long packed one is passed over up to
    there, each time."""

    def raw() -> IO[bytes]:
        if whole is not None:
            stream: IO[bytes] = io.BytesIO(whole[entry.begins : entry.begins + entry.size])
        elif origin.packed is None:
            stream = origin.raw()
            stream.seek(entry.begins)
        else:
            stream = origin.open(limits)
            _skip(stream, entry.begins)
        return io.BufferedReader(_Part(stream, entry.size), CHUNK)

    path = _slashes(entry.path)
    return ArchiveMember(path, entry.size, Origin(path.rpartition("/")[2], raw))


def _skip(stream: IO[bytes], count: int) -> None:
    while count and (passed := len(stream.read(min(count, CHUNK)))):
        count -= passed


class _Part(io.RawIOBase):
    """So many bytes of a stream. Raises EOFError, as packed files do, when there are fewer."""

    def __init__(self, stream: IO[bytes], left: int) -> None:
        super().__init__()
        self._stream, self._left = stream, left

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(min(len(buffer), self._left))
        if not data and self._left and len(buffer):
            raise EOFError
        self._left -= len(data)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


# --- what holds for both ---


def _check(entries: Iterable[tuple[str, int]], limits: ImportLimits) -> None:
    seen: set[str] = set()
    total = 0
    for number, (name, size) in enumerate(entries, 1):
        if number > limits.entries:
            raise Refused(say("the archive holds more than {entries} files; {next}", entries=limits.entries, next=NEXT))
        total += size
        if total > limits.archive_bytes:
            raise Refused(
                say(
                    "the archive unpacks to more than {archive_bytes} bytes; {next}",
                    archive_bytes=limits.archive_bytes,
                    next=NEXT,
                )
            )
        for wrong, said in _WRONG_NAMES:
            if wrong(name):
                raise Refused(said(number))
        # One name, composed or decomposed, is the same to a person.
        plain = unicodedata.normalize("NFC", _slashes(name)).rstrip("/")
        if plain in seen:
            raise Refused(
                say("entry {number} of the archive has the name of an earlier one; {next}", number=number, next=NEXT)
            )
        seen.add(plain)


def _slashes(name: str) -> str:
    path = name.replace("\\", "/")
    return path[2:] if path.startswith("./") else path


def _leaves(name: str) -> bool:
    path = name.replace("\\", "/")
    return ".." in path.split("/") or path.startswith("/") or bool(_DRIVE.match(path)) or "\0" in path


def _is_archive(name: str) -> bool:
    return not name.endswith("/") and Path(name.lower()).suffix in ARCHIVES


_WRONG_NAMES: tuple[tuple[Callable[[str], bool], Callable[[int], Sentence]], ...] = (
    (
        _leaves,
        lambda number: say(
            "entry {number} of the archive has a name that leads out of it; {next}", number=number, next=NEXT
        ),
    ),
    (
        _is_archive,
        lambda number: say("entry {number} of the archive is an archive itself; {next}", number=number, next=NEXT),
    ),
)
