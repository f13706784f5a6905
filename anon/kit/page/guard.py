"""`gate` as aiohttp middleware: no handler is reached by a request that may not reach it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from hmac import compare_digest
from weakref import WeakSet

from aiohttp import hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware

from anon.errors import FAULT_IN_THIS_PROGRAM
from anon.kit.page.gate import ENTER, FORM_FIELD, HEADERS, Gate, GateRequest, refusal
from anon.kit.page.peer_process import is_stranger
from anon.machine.guard import told
from anon.text.sentences import say

Refuse = Callable[[int, str], web.Response]
"""(status, reason) -> a page that says so."""

_MULTIPART = "multipart/form-data"
UNREADABLE = (ValueError, LookupError, HttpProcessingError)
"""The errors of reading a body that is no form, is in an unknown encoding, or has parts whose heads are none."""
_LOG = logging.getLogger(__name__)


def plain_refusal(status: int, reason: str) -> web.Response:
    """A refusal as plain text."""
    return web.Response(status=status, text=f"{reason}\n")


def form_token(request: web.Request, gate: Gate) -> str:
    """The secret for the forms of the page that answers an admitted request."""
    return gate.form_token(request.cookies[gate.cookie])


def protect(
    app: web.Application,
    gate: Gate,
    hosts: AbstractSet[str],
    refuse: Refuse = plain_refusal,
    bearers: Mapping[str, str] | None = None,
    public: AbstractSet[str] = frozenset(),
    streamed: frozenset[str] = frozenset(),
) -> None:
    """Guard every route of `app`, unknown ones included, and put `HEADERS` on every answer.

    `bearers`: paths that programs read with `Authorization: Bearer TOKEN` in place of a cookie. `public`: paths
    that need neither, such as a style sheet. `streamed`: paths whose handlers read a large multipart form piece by
    piece, and must check its form token themselves (`gate.fits`).
    """
    owners: WeakSet[asyncio.Transport] = WeakSet()

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        gate_request = GateRequest(
            request.method,
            request.path,
            request.headers.get(hdrs.HOST),
            request.headers.get(hdrs.ORIGIN),
            request.headers.get("Sec-Fetch-Site"),
        )
        reason = refusal(gate_request, hosts)
        if reason is not None:
            return refuse(403, reason)
        if request.path in (bearers or {}):
            return await _for_bearer(request, handler, (bearers or {})[request.path], refuse)
        if _from_a_stranger(request, owners):
            return refuse(403, say("another user's program asked for this; start this page as who runs the browser"))
        if request.path == ENTER:
            return _enter(request, gate, refuse)
        if request.path in public and request.method != hdrs.METH_POST:
            return await handler(request)
        session = request.cookies.get(gate.cookie)
        if session is None or not gate.knows(session):
            return refuse(401, say("open the link that the program printed; each link works once"))
        if request.method == hdrs.METH_POST and not await _form_fits(request, gate, session, streamed):
            return refuse(403, say("the form is too old or not ours; go back, load the page again and repeat"))
        return await handler(request)

    app.middlewares.append(_caught(refuse))
    app.middlewares.append(guard)
    app.on_response_prepare.append(_harden)


def _enter(request: web.Request, gate: Gate, refuse: Refuse) -> web.StreamResponse:
    if request.method != hdrs.METH_GET:
        return refuse(403, say("open the link that the program printed"))
    session = gate.exchange(request.query.get("token", ""))
    if session is None:
        return refuse(403, say("this link was used already or is not from this run; take a new one from the program"))
    answer = _onward(request)
    answer.set_cookie(gate.cookie, session, httponly=True, samesite="Strict", path="/")
    return answer


def _onward(request: web.Request) -> web.Response:
    """To the front page. A browser that came from another site's page sends a strict cookie only with a fresh click."""
    if request.headers.get("Sec-Fetch-Site") in (None, "none", "same-origin"):
        return web.Response(status=303, headers={hdrs.LOCATION: "/"})
    body = '<!doctype html><html lang="en"><title>AnonML</title><p><a href="/">Go on</a></p></html>'
    return web.Response(text=body, content_type="text/html")


def _from_a_stranger(request: web.Request, owners: WeakSet[asyncio.Transport]) -> bool:
    """`owners`: connections that were looked up and are no stranger's. The far end of one never changes its user."""
    transport = request.transport
    if transport is None:  # the connection is gone, and nobody is there to be answered
        return True
    if transport in owners:
        return False
    if is_stranger(transport.get_extra_info("peername"), transport.get_extra_info("sockname")):
        return True
    owners.add(transport)
    return False


async def _for_bearer(request: web.Request, handler: Handler, token: str, refuse: Refuse) -> web.StreamResponse:
    authorization = request.headers.get(hdrs.AUTHORIZATION, "").encode("utf-8", "replace")
    if request.method not in ("GET", "HEAD") or not compare_digest(authorization, f"Bearer {token}".encode()):
        return refuse(401, "expected the header Authorization: Bearer TOKEN")
    return await handler(request)


async def _form_fits(request: web.Request, gate: Gate, session: str, streamed: frozenset[str]) -> bool:
    if request.content_type == _MULTIPART and request.path in streamed:
        return True
    try:
        value = (await request.post()).get(FORM_FIELD)
    except UNREADABLE:
        return False
    return isinstance(value, str) and gate.fits(session, value)


def _caught(refuse: Refuse) -> Middleware:
    @web.middleware
    async def caught(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPException as answer:
            if answer.status < 400:
                raise
            return refuse(answer.status, say("there is no such page") if answer.status == 404 else answer.reason)
        except Exception as error:  # its text may quote data: the type alone is logged
            said = told(error)
            if said == FAULT_IN_THIS_PROGRAM:
                _LOG.error("a page failed: %s", type(error).__name__)
                return refuse(500, say("this page failed; the program's log names the kind of fault"))
            _LOG.error("a page failed: %s", said)
            return refuse(500, said)

    return caught


async def _harden(_request: web.Request, response: web.StreamResponse) -> None:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.pop(hdrs.SERVER, None)
