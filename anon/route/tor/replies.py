"""Reading what tor's control port says (control-spec, section 2.3): replies and asynchronous events. Pure and bounded.

The bytes that a parser holds never exceed one reply of `REPLY_BYTES`; whatever comes, it either parses or raises
`Malformed`.
"""

from __future__ import annotations

import re

from attrs import field

from anon.errors import Malformed
from anon.values import frozen

LINE_BYTES = 256 * 1024  # the longest line; descriptors and configuration texts come as data of many lines
REPLY_BYTES = 8 * 1024 * 1024  # one whole reply: a full list of relays is about 2 MiB
ASYNCHRONOUS = 650

_PLAIN = re.compile(r"[^ \"]*")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(r"\\([0-7]{1,3}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_KEY = re.compile(r"([A-Za-z0-9_./:+-]+)=")


@frozen
class ReplyLine:
    """One line of a reply: three-digit status, text, and the data that followed it (after `+`), if any."""

    status: int
    text: str
    data: str | None = None


@frozen
class TorReply:
    """A whole reply: its lines in order, at least one; the last carries the outcome. Not shown: it may hold a key."""

    lines: tuple[ReplyLine, ...] = field(repr=False)

    @property
    def status(self) -> int:
        """The outcome: 250 and 251 are good, 4xx and 5xx are refusals, 650 is an event."""
        return self.lines[-1].status

    @property
    def text(self) -> str:
        """All texts and data, one a line."""
        return "\n".join(line.text if line.data is None else f"{line.text}\n{line.data}" for line in self.lines)

    def values(self) -> dict[str, str]:
        """The `key=value` lines, with data and quotes resolved. The last `250 OK` is none of them."""
        values: dict[str, str] = {}
        for line in self.lines:
            key, equals, value = line.text.partition("=")
            if equals:
                values[key] = line.data if line.data is not None else _value(value)
        return values


@frozen
class TorEvent:
    """Something tor said by itself: its kind, such as STATUS_CLIENT, and the rest of its text."""

    name: str
    text: str

    def arguments(self) -> tuple[list[str], dict[str, str]]:
        """Positional words and `KEY=value` pairs, quotes resolved. Raises `Malformed`."""
        return arguments(self.text)


def event_of(reply: TorReply) -> TorEvent:
    """The event in a reply of status 650."""
    name, _, rest = reply.text.partition(" ")
    return TorEvent(*reply.text.split("\n", 1)) if "\n" in name else TorEvent(name, rest)


def unquoted(text: str) -> str:
    """The text of a quoted string without its quotes: escapes n, r, t, one to three octal digits, or the character."""
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    if escaped[0] in "01234567":
        return chr(int(escaped, 8) & 0xFF)
    return _ESCAPED.get(escaped, escaped)


def _value(text: str) -> str:
    whole = _QUOTED.fullmatch(text)
    return unquoted(whole[1]) if whole else text


def arguments(text: str) -> tuple[list[str], dict[str, str]]:
    """Words and `KEY=value` pairs of a line; a value may be a quoted string. Raises `Malformed` for an open quote."""
    words: list[str] = []
    pairs: dict[str, str] = {}
    position = 0
    while position < len(text):
        if text[position] == " ":
            position += 1
            continue
        key = _KEY.match(text, position)
        start = key.end() if key else position
        quoted = text[start : start + 1] == '"'
        match = (_QUOTED if quoted else _PLAIN).match(text, start)
        if match is None or match.end() == position or text[match.end() : match.end() + 1] not in ("", " "):
            raise Malformed("tor's control port: expected words and key=value pairs, got an open or stray quote")
        value = unquoted(match[1]) if quoted else match[0]
        if key:
            pairs[key[1]] = value
        else:
            words.append(value)
        position = match.end()
    return words, pairs


class ReplyParser:
    """Bytes in, whole replies out, however the bytes were cut. After `Malformed` it must not be fed again."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._held = 0
        self._lines: list[ReplyLine] = []
        self._data: list[str] | None = None

    def feed(self, chunk_untrusted: bytes) -> list[TorReply]:
        """The replies that this chunk completed, in order. Raises `Malformed`."""
        self._buffer += chunk_untrusted
        replies: list[TorReply] = []
        start = 0
        while (end := self._buffer.find(b"\n", max(start, self._searched))) >= 0:
            reply = self._line(bytes(self._buffer[start:end]).removesuffix(b"\r"))
            if reply is not None:
                replies.append(reply)
            start = end + 1
        del self._buffer[:start]
        self._searched = len(self._buffer)
        if self._searched > LINE_BYTES:
            raise Malformed(f"tor's control port: a line is longer than {LINE_BYTES} bytes; start tor again")
        return replies

    def _line(self, line: bytes) -> TorReply | None:
        self._held += len(line) + 2
        if len(line) > LINE_BYTES or self._held > REPLY_BYTES:
            raise Malformed(f"tor's control port: a reply is longer than {REPLY_BYTES} bytes; start tor again")
        text = line.decode("latin-1")  # every byte has a character, so decoding cannot fail
        if self._data is None:
            return self._opening(text)
        if text == ".":
            last = self._lines.pop()
            self._lines.append(ReplyLine(last.status, last.text, "\n".join(self._data)))
            self._data = None
        else:
            self._data.append(text[1:] if text.startswith(".") else text)
        return None

    def _opening(self, text: str) -> TorReply | None:
        status, kind = text[:3], text[3:4]
        if len(status) != 3 or not (status.isascii() and status.isdigit()) or kind not in ("-", "+", " "):
            raise Malformed("tor's control port: expected a three-digit status, got something else; start tor again")
        self._lines.append(ReplyLine(int(status), text[4:]))
        if kind == "+":
            self._data = []
        if kind != " ":
            return None
        reply = TorReply(tuple(self._lines))
        self._lines, self._held = [], 0
        return reply
