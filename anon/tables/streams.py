"""The owner's files as streams of bytes: unpacked, in UTF-8, and no longer than the limits, whatever the file is.

A file is read more than once, to learn what it is, what its columns are, and to import it; so an `Origin` is something
that can be opened again. Nothing is ever unpacked to the disk. Messages never quote a file's content or the name of
an archive's member.
"""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import math
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import IO, Any, Protocol

from attrs import evolve, field

from anon.errors import Malformed, Refused, because
from anon.text.sentences import say
from anon.values import frozen

Cell = str | int | float | None


class Skip(Enum):
    """Why a record is passed over, for its owner to read."""

    BROKEN = say("could not be read")
    LONG = say("longer than the limit")
    WIDTH = say("another number of cells than the heading")


Record = tuple[int, dict[str, Cell] | Skip]
"""A record's number (of a line, an entry or a row, from 1) and its cells, or why it has none."""

CHUNK = 64 * 1024
GZIP = b"\x1f\x8b"
UNREADABLE = "anonml-unreadable"
"""Codec error handler: what cannot be decoded becomes NUL, which no readable record holds."""

codecs.register_error(UNREADABLE, lambda error: ("\0", getattr(error, "end", 0)))


@frozen
class ImportLimits:
    """The bounds of an import. A row also has to fit what the sandbox can read
    (`anon.queries.lint.Bounds.bytes_of_value`)."""

    line_bytes: int = 2**20
    """Longer lines, and longer entries of a list, are passed over."""
    row_bytes: int = 240 * 2**10
    """Longer rows are passed over."""
    cell_bytes: int = 64 * 2**10
    """Longer cells become NULL."""
    columns: int = 200
    file_bytes: int = 8 * 2**30
    """Of one file after unpacking; stops a file that unpacks without end."""
    blank_lines: int = 1_000_000
    """As many may be blank, and ten times as many as are not."""
    lines_named: int = 20
    """How many of the records passed over a summary names."""
    archive_bytes: int = 256 * 2**30
    """Of all files in an archive together, by what it declares; a Takeout with photos is large."""
    entries: int = 50_000
    """Files and folders in an archive or a folder."""
    ratio: int = 300
    """Unpacked bytes to packed ones. Logs reach about 40, deflate at most 1032."""
    ratio_from: int = 4 * 2**20
    """Unpacked bytes up to which any ratio is accepted."""
    index_bytes: int = 8 * 2**20
    """Of an archive's list of files, which is held in memory."""
    tables: int = 1_000
    """Tables of one file."""
    rows_from: int = 16 * 2**20
    """Bytes of rows up to which any ratio is accepted, of a file that says a value once and its number."""
    passes: int = 2
    """Times that an import reads all of a file: to learn its columns, and to take its rows."""
    seconds: float = 4 * 3600.0
    """Of an import."""
    look_seconds: float = 120.0
    """Of a preview."""
    look: Callable[[], None] = field(default=lambda: None, eq=False, repr=False)
    """Called again and again while a file is read; what it raises ends the reading."""


LIMITS = ImportLimits()


class Source(Protocol):
    """Records that can be read more than once."""

    @property
    def typed(self) -> bool:
        """True if cells already have types; where not, all are text and types are to be found out."""

    @property
    def unit(self) -> str:
        """The unit that a record's number counts: line, entry or row."""

    def keys(self) -> Sequence[str]:
        """Columns known before any record is read, so that an empty table is still a table."""

    def records(self) -> Iterator[Record]:
        """Every record from the first."""


class BadLine(Exception):
    """A line that cannot be read. Carries nothing but why."""

    def __init__(self, why: Skip = Skip.BROKEN) -> None:
        super().__init__()
        self.why = why


# --- streams ---


@frozen
class Origin:
    """A file of the owner's, or one member of an archive, that can be opened again and again.

    `name` is for its suffixes and the table's name only. `packed` is its size in the archive, where there is one.
    """

    name: str = field(repr=False)
    raw: Callable[[], IO[bytes]] = field(repr=False)
    packed: int | None = None
    encoding: str = "utf-8"
    lone_returns: bool = False
    """Lines end in a carriage return alone, as on old Macs; they are read as line feeds."""

    @property
    def suffixes(self) -> frozenset[str]:
        """Every suffix in lower case, `.gz` among them."""
        return frozenset(suffix.lower() for suffix in Path(self.name).suffixes)

    @property
    def stem(self) -> str:
        """The name without its last suffix, nor `.gz`."""
        name = self.name[:-3] if self.name.lower().endswith(".gz") else self.name
        return Path(name).stem

    def open(self, limits: ImportLimits) -> IO[bytes]:
        """The bytes, in UTF-8 if they are text. Reading raises `Malformed` (broken) or `Refused` (too much)."""
        bounded = io.BufferedReader(_Bounded(self, limits), CHUNK)
        if self.encoding == "utf-8" and not self.lone_returns:
            return bounded
        return io.BufferedReader(_InUtf8(bounded, self.encoding, self.lone_returns), CHUNK)

    def start(self, limits: ImportLimits, count: int = CHUNK) -> bytes:
        """The first bytes, at most `count`."""
        with self.open(limits) as stream:
            return stream.read(count)


def origin_of(file: Path) -> Origin:
    """The file, unpacked if it is gzip."""
    with file.open("rb") as stream:
        packed = stream.read(2) == GZIP
    if packed:
        return Origin(file.name, lambda: _unzipping(file), file.stat().st_size)
    return Origin(file.name, lambda: file.open("rb"))


def _unzipping(file: Path) -> IO[bytes]:
    return gzip.GzipFile(filename=str(file), mode="rb")  # type: ignore[return-value]


@contextmanager
def _said_in_our_words() -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, ValueError):
        raise Malformed(say("the packed file is broken or breaks off; pack or download it again")) from None
    except (NotImplementedError, RuntimeError):
        raise Refused(say("the file is encrypted or packed in an unusual way; unpack it first")) from None
    except OSError as error:
        raise Malformed(say("the file cannot be read{why}; try again", why=because(error))) from None


class _Bounded(io.RawIOBase):
    """Passes bytes through, counts them, and says in our words what is wrong with them."""

    def __init__(self, origin: Origin, limits: ImportLimits) -> None:
        super().__init__()
        self._packed, self._limits, self._read = origin.packed, limits, 0
        with _said_in_our_words():
            self._inner = origin.raw()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._limits.look()
        with _said_in_our_words():
            data = self._inner.read(len(buffer))
        self._read += len(data)
        self._check()
        buffer[: len(data)] = data
        return len(data)

    def _check(self) -> None:
        limits, read = self._limits, self._read
        if read > limits.file_bytes:
            raise Refused(
                say(
                    "the file holds more than {file_bytes} bytes when unpacked; import it in parts",
                    file_bytes=limits.file_bytes,
                )
            )
        if self._packed is not None and read > limits.ratio_from and read > limits.ratio * max(self._packed, 1):
            raise Refused(
                say(
                    "the file is more than {ratio} times as long when unpacked, as no log is; if it is really yours, "
                    "unpack it and import what is inside",
                    ratio=limits.ratio,
                )
            )

    def close(self) -> None:
        if not self.closed and hasattr(self, "_inner"):
            self._inner.close()
        super().close()


class _InUtf8(io.RawIOBase):
    """Text in another encoding, or with other line ends, as UTF-8; what cannot be decoded comes as NUL."""

    def __init__(self, inner: IO[bytes], encoding: str, lone_returns: bool) -> None:
        super().__init__()
        self._inner, self._lone_returns = inner, lone_returns
        self._decoder = codecs.getincrementaldecoder(encoding)(UNREADABLE)
        self._ready = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._ended:
            data = self._inner.read(CHUNK)
            self._ended = not data
            text = self._decoder.decode(data, final=not data)
            self._ready = (text.replace("\r", "\n") if self._lone_returns else text).encode("utf-8", "replace")
        part, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._inner.close()
        super().close()


# --- encodings ---

_BYTE_ORDERS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_SAMPLE = 2**20
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f")) + b"\x7f"


def in_its_encoding(origin: Origin, limits: ImportLimits) -> Origin:
    """The same file, read as UTF-8, UTF-16 with a byte order mark, or Windows-1252.

    The last only where the beginning (1 MiB) is no UTF-8 at all, yet text and no JSON, which is UTF-8 by its standard
    (RFC 8259, section 8.1). So a few broken lines stay broken lines.
    """
    start = origin.start(limits, _SAMPLE)
    if start[:2] in _BYTE_ORDERS:
        return evolve(origin, encoding=_BYTE_ORDERS[start[:2]])
    json = start.lstrip()[:1] in (b"{", b"[")
    if not (start.isascii() or json or _some_utf_8(start)) and _windows(start):
        return evolve(origin, encoding="cp1252")
    return origin


def _some_utf_8(start: bytes) -> bool:
    """True if any line holds a character beyond ASCII in valid UTF-8; the last line may be cut off."""
    for line in start.split(b"\n"):
        if not line.isascii():
            try:
                codecs.getincrementaldecoder("utf-8")().decode(line)
            except UnicodeDecodeError:
                continue
            return True
    return False


def _windows(start: bytes) -> bool:
    if start.translate(None, _CONTROL) != start:
        return False
    try:
        start.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return True


# --- lines and cells ---


def with_line_feeds(origin: Origin, limits: ImportLimits) -> Origin:
    """The same file with a line feed after each line, also where its beginning has carriage returns and no line feed.
    """
    start = origin.start(limits)
    return evolve(origin, lone_returns=b"\r" in start[:-1] and b"\n" not in start)


def numbered_lines(origin: Origin, limits: ImportLimits) -> Iterator[tuple[int, bytes | None]]:
    """Lines from 1; None for one longer than the limit. No more than one is held.

    Raises `Refused` for a file of blank lines: bytes of one kind unpack to hundreds of times as many.
    """
    number = blank = 0
    with origin.open(limits) as stream:
        while line := stream.readline(limits.line_bytes + 1):
            number, whole, rest = number + 1, len(line) <= limits.line_bytes, line
            blank += line.isspace()
            if blank > limits.blank_lines and blank > 10 * (number - blank):
                raise Refused(
                    say("more than {most} lines of the file are blank; take them out", most=limits.blank_lines)
                )
            while not whole and not rest.endswith(b"\n") and (rest := stream.readline(limits.line_bytes)):
                pass
            yield number, line if whole else None


def finite_number(value: int | float) -> int | float | None:
    """A number as SQLite can hold it: an integer of 64 bits, or a finite float."""
    if isinstance(value, int):
        if -(2**63) <= value < 2**63:
            return value
        return float(value) if abs(value) < 10**300 else None
    return value if math.isfinite(value) else None
