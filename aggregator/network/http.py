"""The HTTP surface of docs/protocol.md: eight endpoints, and nothing in any answer but what is asked for.

No answer carries a clock but the one that is asked for it, in coarse steps. None carries a version, a length that
depends on the sender, or anything of the request, malformed ones included. Nothing about a connection is logged or
kept.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from aiohttp import web

from aggregator.rules.enrol import largest_enrolment
from aggregator.store.crash_points import crash_point
from aggregator.study.live import LiveStudy
from anon.serving.quiet_http import QuietResponse, QuietStream, closing, listen, listen_unix, read_body
from anon.serving.short_posts import Send, ShortPost
from anon.transparency.together import HeadGroup
from anon.wire.replies import encode_reply

_HEADS = rf"heads(?:/({'|'.join(HeadGroup)}))?"
_DOCUMENTS = r"documents/(0|[1-9]\d{0,8})"
_BUCKETS = r"(buckets|contents)/(0|[1-9]\d{0,8})/(0|[1-9]\d{0,8})"
_PATH = re.compile(rf"/v1/([0-9a-f]{{64}})/({_HEADS}|{_DOCUMENTS}|{_BUCKETS}|enrol|withdraw|packets)\Z")
_POSTS = re.compile(rb"/v1/([0-9a-f]{64})/(enrol|withdraw|packets)")
PIECE = 64 * 1024
"""Bytes of a document that are handed to a connection at once."""

Studies = Mapping[bytes, LiveStudy]


class Surface:
    """Answers requests from the studies of the mapping, which may change while it serves."""

    def __init__(self, studies: Studies) -> None:
        self._studies = studies

    def short_post(self, path: bytes) -> ShortPost | None:
        """The posts of peers: packets, which are nearly all that a server is sent, and what comes around enrolment."""
        match = _POSTS.fullmatch(path)
        study = self._studies.get(bytes.fromhex(match[1].decode())) if match else None
        if match is None or study is None:
            return None
        name = match[2].decode()
        accept = _accepting(study, name)

        async def work(body: bytes, send: Send) -> None:
            word = await accept(body)
            crash_point("before-answer")
            send(200, encode_reply(word))
            crash_point("after-answer")

        return ShortPost(_limit(study, name), work)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer to one request."""
        # As it was sent: decoded, one document would have many names.
        match = _PATH.match(request.rel_url.raw_path) if not request.rel_url.raw_query_string else None
        study = self._studies.get(bytes.fromhex(match[1])) if match else None
        if match is None or study is None:
            return closing(404)
        name, group, number = match[2], match[3], match[4]
        if request.method == "GET" and name == "heads":
            return await _in_pieces(request, [study.heads()])
        if request.method == "GET" and group is not None:
            pieces = await study.served_together(HeadGroup(group))
            return await _in_pieces(request, pieces) if pieces else closing(404)
        if request.method == "GET" and number is not None:
            body = await study.served(int(number))
            return closing(404) if body is None else await _in_pieces(request, [body])
        if request.method == "GET" and match[5] is not None:
            bucket = await study.served_bucket(int(match[6]), int(match[7]), whole=match[5] == "contents")
            return closing(404) if bucket is None else await _in_pieces(request, [bucket])
        if request.method != "POST" or name not in ("enrol", "withdraw", "packets"):
            return closing(404)
        return await _post(request, _accepting(study, name), _limit(study, name))


async def start(studies: Studies, host: str, port: int, shared: bool = False) -> tuple[web.ServerRunner, int]:
    """Serve; the runner (call its `cleanup`) and the port, which is the system's choice when `port` is 0. For `shared`
    see `listen`."""
    surface = Surface(studies)
    return await listen(surface.answer, host, port, shared, surface.short_post)


async def start_unix(studies: Studies, path: Path) -> web.ServerRunner:
    """Serve at a socket file that only its owner can reach; see `listen_unix`."""
    surface = Surface(studies)
    return await listen_unix(surface.answer, path, surface.short_post)


async def _post(request: web.BaseRequest, accept: Callable[[bytes], Awaitable[str]], limit: int) -> web.StreamResponse:
    body = await read_body(request, limit)
    if body is None:
        return closing(200, encode_reply("wrong-size"))
    word = await accept(body)
    crash_point("before-answer")
    response = QuietResponse(body=encode_reply(word))
    await response.prepare(request)
    await response.write_eof()
    crash_point("after-answer")
    return response


async def _in_pieces(request: web.BaseRequest, bodies: Sequence[bytes | memoryview]) -> web.StreamResponse:
    """Bodies that all readers share, one after the other: a slow reader holds a piece here, not a copy of 20 MB."""
    response = QuietStream()
    response.content_length = sum(map(len, bodies))
    await response.prepare(request)
    for body in bodies:
        # A slice of bytes is a copy, one of a view is not.
        whole = memoryview(body)
        for start in range(0, len(body), PIECE):
            await response.write(whole[start : start + PIECE])  # waits until the last ones were read
    await response.write_eof()
    return response


def _accepting(study: LiveStudy, name: str) -> Callable[[bytes], Awaitable[str]]:
    return {"enrol": study.enrol, "withdraw": study.withdraw, "packets": study.submit}[name]


def _limit(study: LiveStudy, name: str) -> int:
    rules = study.packet_intake.rules
    return rules.layout.sealed_size if name == "packets" else largest_enrolment(study.manifest.packets)
