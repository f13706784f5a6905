"""Tar headers read block by block (POSIX.1-2017 pax, "ustar Interchange Format", and GNU's long names).

Our own reader because a header may claim an extension of any length, which must not be taken into memory, and because
the place of a file in the stream is all that is needed to stream it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Literal

from attrs import field

from anon.errors import Malformed, Refused
from anon.tables.streams import CHUNK, ImportLimits
from anon.text.sentences import say
from anon.values import frozen

BLOCK = 512
MAGIC = (257, b"ustar")
LONGEST_EXTENSION = 64 * 1024
LONGEST_NUMBER = 19
"""Digits of a length."""
Kind = Literal["file", "folder", "other"]
_KINDS: dict[bytes, Kind] = {b"0": "file", b"\0": "file", b"7": "file", b"5": "folder"}
_PAX, _PAX_GLOBAL, _LONG_NAME, _LONG_LINK = b"x", b"g", b"L", b"K"


@frozen
class TarEntry:
    """One entry; `begins` is the place of its first byte in the stream. Links, devices and the like are "other"."""

    path: str = field(repr=False)
    kind: Kind
    size: int
    begins: int


def is_tar(start: bytes) -> bool:
    """True if a file begins with a tar header that has the ustar mark."""
    position, mark = MAGIC
    return start[position : position + len(mark)] == mark and _sum_is_right(start[:BLOCK])


def walk(stream: IO[bytes], limits: ImportLimits) -> Iterator[TarEntry]:
    """Every entry, in order; what it holds is passed over. Raises `Malformed` for a broken header."""
    position, extensions = 0, _Said()
    while header := _block(stream):
        position += BLOCK
        if not header.strip(b"\0"):
            return
        if not _sum_is_right(header):
            raise Malformed(say("the tar archive is broken; download it again"))
        size, kind = _number(header[124:136]), header[156:157]
        if kind in (_PAX, _PAX_GLOBAL, _LONG_NAME, _LONG_LINK):
            extensions = extensions.after(kind, _extension(stream, size))
            position += _padded(size)
            continue
        size = extensions.size if extensions.size is not None else size
        if size > limits.archive_bytes:
            raise Refused(
                say(
                    "the archive unpacks to more than {archive_bytes} bytes; import the file you mean",
                    archive_bytes=limits.archive_bytes,
                )
            )
        entry_kind: Kind = "other" if extensions.sparse else _KINDS.get(kind, "other")
        yield TarEntry(extensions.path or _path(header), entry_kind, size, position)
        _pass_over(stream, _padded(size))
        position, extensions = position + _padded(size), _Said()


@frozen
class _Said:
    """The extensions' facts about the next entry."""

    path: str = ""
    size: int | None = None
    sparse: bool = False

    def after(self, kind: bytes, data: bytes) -> _Said:
        if kind == _LONG_NAME:
            return _Said(data.rstrip(b"\0").decode("utf-8", "surrogateescape"), self.size, self.sparse)
        if kind != _PAX:
            return self
        pairs = dict(_pairs(data))
        path = pairs.get(b"path", b"").decode("utf-8", "surrogateescape") or self.path
        size = _decimal(pairs[b"size"]) if pairs.get(b"size") else self.size
        return _Said(path, size, self.sparse or any(key.startswith(b"GNU.sparse") for key in pairs))


def _decimal(digits: bytes) -> int:
    """A length in an extension. Raises `Malformed` for one that is no number, or has more digits than 2**63."""
    if not digits.isdigit() or len(digits) > LONGEST_NUMBER:
        raise Malformed(say("the tar archive has a length that is no plain number; download it again"))
    return int(digits)


def _pairs(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Pax records: a length in decimal that counts itself, a space, key=value, a line end."""
    while data:
        digits, space, _rest = data[:20].partition(b" ")
        if not space or not digits.isdigit() or not len(digits) + 2 < int(digits) <= len(data):
            raise Malformed(say("the tar archive has a broken extension; download it again"))
        length = int(digits)
        key, _equals, value = data[len(digits) + 1 : length - 1].partition(b"=")
        yield key, value
        data = data[length:]


def _extension(stream: IO[bytes], size: int) -> bytes:
    if size > LONGEST_EXTENSION:
        raise Refused(
            say(
                "the archive has a name longer than {longest_extension} bytes; unpack it yourself",
                longest_extension=LONGEST_EXTENSION,
            )
        )
    data = stream.read(_padded(size))
    if len(data) < size:
        raise Malformed(say("the tar archive breaks off; download it again"))
    return data[:size]


def _block(stream: IO[bytes]) -> bytes:
    data = stream.read(BLOCK)
    if data and len(data) < BLOCK:
        raise Malformed(say("the tar archive breaks off; download it again"))
    return data


def _pass_over(stream: IO[bytes], count: int) -> None:
    while count:
        passed = len(stream.read(min(count, CHUNK)))
        if not passed:
            raise Malformed(say("the tar archive breaks off; download it again"))
        count -= passed


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def _number(raw: bytes) -> int:
    """Octal text, or GNU's base 256 where the first bit is set."""
    if raw[:1] >= b"\x80":
        value = int.from_bytes(bytes([raw[0] & 0x7F]) + raw[1:], "big")
        if raw[0] & 0x40:
            raise Malformed(say("the tar archive has a negative length; download it again"))
        return value
    text = raw.strip(b" \0")
    if any(digit not in b"01234567" for digit in text):
        raise Malformed(say("the tar archive is broken; download it again"))
    return int(text or b"0", 8)


def _sum_is_right(header: bytes) -> bool:
    if len(header) < BLOCK:
        return False
    text = header[148:156].strip(b" \0")
    if not text or any(digit not in b"01234567" for digit in text):
        return False
    # The sum counts its own field as eight spaces (pax, "ustar Interchange Format").
    return int(text, 8) == sum(header) - sum(header[148:156]) + 8 * 32


def _path(header: bytes) -> str:
    name = header[:100].partition(b"\0")[0]
    # GNU's older form has another mark, and times where ustar has the prefix.
    prefix = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return (prefix + b"/" + name if prefix else name).decode("utf-8", "surrogateescape")
