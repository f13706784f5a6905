"""The language of the page: a choice in this browser alone."""

from __future__ import annotations

import re

from aiohttp import web
from aiohttp.typedefs import Handler

from anon.errors import Malformed
from anon.text.sentences import say
from peer.web import languages
from peer.web.forms import form_text
from peer.web.site import SITE

routes = web.RouteTableDef()
_YEAR = 365 * 86400
_PLACE = re.compile(r"/(?!/)[A-Za-z0-9/._-]*")


@web.middleware
async def speaking(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The answer to this request is in the browser's language."""
    chosen = request.cookies.get(languages.COOKIE)
    languages.set_current(languages.preferred(chosen, request.headers.get("Accept-Language", "")))
    return await handler(request)


@routes.post("/language")
async def choose(request: web.Request) -> web.Response:
    """Another language, and back to the page that was read. Raises `Malformed`."""
    code, back = await form_text(request, "language"), await form_text(request, "back")
    if code not in languages.NAMES:
        raise Malformed(say("this language is not there; choose one of the list"))
    answer = request.app[SITE].onward(request, back if _PLACE.fullmatch(back) else "/")
    answer.set_cookie(languages.COOKIE, code, max_age=_YEAR, httponly=True, samesite="Strict", path="/")
    return answer
