"""Short posts with the head that our own peers send, from bytes and into bytes, without an HTTP library.

A server reads and answers them for a third of the time that it takes through aiohttp, and with the same bytes. A head
that differs from theirs in any way is left to aiohttp.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import reduce
from http import HTTPStatus

from anon.values import frozen

_FORM = (
    b"POST ", rb"(/[!-~]*)", b" HTTP/1.1\r\nHost: ", rb"([!-~]+)", b"\r\nContent-Length: ", rb"([1-9]\d{0,7})",
    b"\r\nConnection: close\r\n\r\n",
)  # fmt: skip
"""The head that `anon.route.exchange` sends: words as they are, and between them patterns."""
_STEPS = [
    step
    for place, part in enumerate(_FORM)
    for step in ([part] if place % 2 else [re.escape(part[at : at + 1]) for at in range(len(part))])
]
_HEAD = re.compile(b"".join(_STEPS))
_BEGINNING = re.compile(reduce(lambda rest, step: step + b"(?:" + rest + b")?", reversed(_STEPS), b""))
_LONGEST_HEAD = 512
Send = Callable[[int, bytes], None]
"""Answers with a status and a body."""
Admit = Callable[[bytes, int, Send], bytes | None]
"""The key of who asks, by the beginning of a body and the length of the whole; empty for a stranger. None for a caller
who was refused by an answer, and of whom no more is read."""


def _admit_all(_opening: bytes, _length: int, _send: Send) -> bytes | None:
    return b""


@frozen
class ShortPost:
    """The posts to one path: the longest body in bytes, and the work, which is given a body and sends the answer's.

    `admit` decides by the first `opening` bytes of a body if the rest is read at all.
    """

    longest: int
    work: Callable[[bytes, Send], Awaitable[None]]
    opening: int = 0
    admit: Admit = _admit_all


FindPost = Callable[[bytes], ShortPost | None]
"""By its path, a short post; None for every other path."""


@frozen
class RequestHead:
    """The path, where the body begins, and where it ends."""

    path: bytes
    begins: int
    ends: int


def read_head(came_untrusted: bytes | bytearray) -> RequestHead | None:
    """The head with which these bytes begin; None if they do not begin with a whole one of the known form."""
    match = _HEAD.match(came_untrusted)
    return None if match is None else RequestHead(bytes(match[1]), match.end(), match.end() + int(match[3]))


def may_become_head(came_untrusted: bytes | bytearray) -> bool:
    """True as long as more bytes can make these, at least one, a head of the known form."""
    return len(came_untrusted) < _LONGEST_HEAD and _BEGINNING.fullmatch(came_untrusted) is not None


def answer_of(status: int, body: bytes = b"") -> bytes:
    """The whole answer, after which the connection ends: the bytes that `QuietResponse` gives."""
    head = b"HTTP/1.1 %d %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    return head % (status, HTTPStatus(status).phrase.encode(), len(body)) + body
