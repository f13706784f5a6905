"""Zip and tar archives and folders: inspected whole before a byte of any file in them is unpacked, then streamed.

Refused are: too many files, a long list of them, names that leave the archive (absolute, `..`, a drive), two files of
one name, links and devices, archives in archives, files that overlap, and files or archives that unpack to more than
the limits or to many times their size. What a header claims is not believed afterwards either: every stream is counted
(`peer.data.files`). Nothing is unpacked to the disk. An entry is named by its number, for its name is the owner's.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, cast

from attrs import field, frozen

from anon.errors import Malformed, Refused
from peer.data.files import CHUNK, ImportLimits, Origin, origin_of
from peer.data.formats.tar_headers import Entry, walk

ARCHIVES = frozenset(
    {".zip", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".7z", ".rar", ".zst", ".lz", ".lzma", ".tbz2", ".txz", ".jar"}
)
NEXT = "ask for another export, or unpack it yourself and import the file you mean"
_ZIP_END = b"PK\5\6"
_LONGEST_END = 22 + 2**16
_DRIVE = re.compile(r"[A-Za-z]:")


@frozen
class Member:
    """A file in an archive or a folder. `path` has its folders, with slashes."""

    path: str = field(repr=False)
    size: int
    origin: Origin = field(repr=False)


def folder_members(folder: Path, limits: ImportLimits) -> tuple[Member, ...]:
    """The plain files below a folder; links are not followed, and packed files are let be."""
    found: list[Member] = []
    seen = 0
    for parent, folders, names in os.walk(folder, followlinks=False):
        seen += len(folders) + len(names)
        if seen > limits.entries:
            raise Refused(f"the folder holds more than {limits.entries} files; name one of the folders in it")
        for name in sorted(names):
            file = Path(parent, name)
            if stat.S_ISREG(file.lstat().st_mode) and not _is_archive(name.lower().removesuffix(".gz")):
                path = file.relative_to(folder.parent).as_posix()
                found.append(Member(path, file.stat().st_size, origin_of(file)))
    return tuple(sorted(found, key=lambda member: member.path))


# --- zip ---


def zip_members(file: Path, limits: ImportLimits) -> tuple[Member, ...]:
    """The files of a zip archive, after all checks. Raises `Refused` or `Malformed` (broken)."""
    _check_index(file, limits)
    try:
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, NotImplementedError, OverflowError, UnicodeDecodeError):
        raise Malformed("the zip archive is broken; download it again") from None
    _check(((_zip_name(info), info.file_size) for info in infos), limits)
    for number, info in enumerate(infos, 1):
        _check_zip_entry(number, info, limits)
    _check_total(infos, limits)
    return tuple(_zip_member(file, info) for info in infos if not info.is_dir())


def _check_index(file: Path, limits: ImportLimits) -> None:
    """The list of files is read into memory whole, so its length is looked at before."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        stream.seek(max(0, size - _LONGEST_END))
        end = stream.read()
    place = end.rfind(_ZIP_END)
    if place < 0 or len(end) - place < 22:
        raise Malformed("the zip archive breaks off; download it again")
    where = max(0, size - _LONGEST_END) + place
    begins = int.from_bytes(end[place + 16 : place + 20], "little")
    length = int.from_bytes(end[place + 12 : place + 16], "little")
    if length == 0xFFFFFFFF or begins == 0xFFFFFFFF:
        length = _zip64_length(end[:place])
    if length > limits.index_bytes or length > where:
        raise Refused(f"the archive's list of files is longer than {limits.index_bytes} bytes; {NEXT}")


def _zip64_length(before: bytes) -> int:
    place = before.rfind(b"PK\6\6")
    if place < 0 or len(before) - place < 56:
        raise Malformed("the zip archive is broken; download it again")
    return int.from_bytes(before[place + 40 : place + 48], "little")


def _zip_name(info: zipfile.ZipInfo) -> str:
    # `orig_filename` is what stands in the archive; `filename` has lost what follows a NUL.
    return info.orig_filename


def _check_zip_entry(number: int, info: zipfile.ZipInfo, limits: ImportLimits) -> None:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise Refused(f"entry {number} of the archive is a link or a device; {NEXT}")
    if info.file_size > limits.ratio_from and info.file_size > limits.ratio * max(info.compress_size, 1):
        raise Refused(f"entry {number} of the archive unpacks to more than {limits.ratio} times its size; {NEXT}")


def _check_total(infos: Sequence[zipfile.ZipInfo], limits: ImportLimits) -> None:
    packed, unpacked = (sum(getattr(info, size) for info in infos) for size in ("compress_size", "file_size"))
    if unpacked > limits.ratio_from and unpacked > limits.ratio * max(packed, 1):
        raise Refused(f"the archive unpacks to more than {limits.ratio} times its size; {NEXT}")
    ends = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        if info.header_offset < ends:
            raise Refused(f"two files of the archive share the same bytes; {NEXT}")
        ends = info.header_offset + 30 + info.compress_size


def _zip_member(file: Path, info: zipfile.ZipInfo) -> Member:
    def raw() -> IO[bytes]:
        archive = zipfile.ZipFile(file)
        try:
            return cast(IO[bytes], _Both(archive.open(info), archive))
        except BaseException:
            archive.close()
            raise

    path = _slashes(info.filename)
    return Member(path, info.file_size, Origin(path.rpartition("/")[2], raw, info.compress_size))


class _Both:
    """A stream that takes the archive it comes from with it when it is closed."""

    def __init__(self, stream: IO[bytes], archive: zipfile.ZipFile) -> None:
        self._stream, self._archive = stream, archive

    def read(self, count: int) -> bytes:
        return self._stream.read(count)

    def close(self) -> None:
        self._stream.close()
        self._archive.close()


# --- tar ---


def tar_members(origin: Origin, limits: ImportLimits) -> tuple[Member, ...]:
    """The files of a tar archive (ustar, pax or GNU; also .tar.gz), after all checks of every header."""
    entries: list[Entry] = []
    with origin.open(limits) as stream:
        for entry in walk(stream, limits):
            entries.append(entry)
            if len(entries) > limits.entries:
                break
    _check(((entry.path, entry.size) for entry in entries), limits)
    for number, entry in enumerate(entries, 1):
        if entry.kind == "other":
            raise Refused(f"entry {number} of the archive is a link or a device; {NEXT}")
    return tuple(_tar_member(origin, entry, limits) for entry in entries if entry.kind == "file")


def _tar_member(origin: Origin, entry: Entry, limits: ImportLimits) -> Member:
    def raw() -> IO[bytes]:
        stream = origin.open(limits)
        _skip(stream, entry.begins)
        return cast(IO[bytes], _Part(stream, entry.size))

    path = _slashes(entry.path)
    return Member(path, entry.size, Origin(path.rpartition("/")[2], raw))


def _skip(stream: IO[bytes], count: int) -> None:
    while count and (passed := len(stream.read(min(count, CHUNK)))):
        count -= passed


class _Part:
    """So many bytes of a stream. Raises EOFError, as packed files do, when there are fewer."""

    def __init__(self, stream: IO[bytes], left: int) -> None:
        self._stream, self._left = stream, left

    def read(self, count: int) -> bytes:
        data = self._stream.read(min(count, self._left))
        if not data and self._left and count:
            raise EOFError
        self._left -= len(data)
        return data

    def close(self) -> None:
        self._stream.close()


# --- what holds for both ---


def _check(entries: Iterable[tuple[str, int]], limits: ImportLimits) -> None:
    seen: set[str] = set()
    total = 0
    for number, (name, size) in enumerate(entries, 1):
        if number > limits.entries:
            raise Refused(f"the archive holds more than {limits.entries} files; {NEXT}")
        total += size
        if total > limits.archive_bytes:
            raise Refused(f"the archive unpacks to more than {limits.archive_bytes} bytes; {NEXT}")
        for wrong, says in _WRONG_NAMES:
            if wrong(name):
                raise Refused(f"entry {number} of the archive {says}; {NEXT}")
        plain = unicodedata.normalize("NFC", _slashes(name)).rstrip("/")
        if plain in seen:
            raise Refused(f"entry {number} of the archive has the name of an earlier one; {NEXT}")
        seen.add(plain)


def _slashes(name: str) -> str:
    path = name.replace("\\", "/")
    return path[2:] if path.startswith("./") else path


def _leaves(name: str) -> bool:
    path = name.replace("\\", "/")
    return ".." in path.split("/") or path.startswith("/") or bool(_DRIVE.match(path)) or "\0" in path


def _is_archive(name: str) -> bool:
    return not name.endswith("/") and Path(name.lower()).suffix in ARCHIVES


_WRONG_NAMES: tuple[tuple[Callable[[str], bool], str], ...] = (
    (_leaves, "has a name that leads out of it"),
    (_is_archive, "is an archive itself"),
)
