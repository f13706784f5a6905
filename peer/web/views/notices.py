"""Notifications of the browser while the page is open: a choice in this browser alone. Nothing of it leaves."""

from __future__ import annotations

from aiohttp import web

from anon.errors import Malformed
from anon.text.sentences import say
from peer.run.notices import SENTENCES, Matter, for_notice, happenings
from peer.run.supervisor import Running
from peer.web.forms import form_text
from peer.web.languages import localised
from peer.web.notices import COOKIE, OFF, ON
from peer.web.site import SITE, Site

routes = web.RouteTableDef()
_YEAR = 365 * 86400


@routes.get("/notices")
async def due(request: web.Request) -> web.Response:
    """One sentence that something is, never what; empty at most times."""
    if request.cookies.get(COOKIE) != ON:
        return web.Response(status=204)
    matter = _due(request.app[SITE])
    if matter is None:
        return web.Response(status=204)
    return web.Response(text=str(localised(SENTENCES[matter])), content_type="text/plain")


@routes.post("/notices")
async def choose(request: web.Request) -> web.Response:
    """On or off, in this browser. Raises `Malformed`."""
    answer = await form_text(request, "answer")
    if answer not in (ON, OFF):
        raise Malformed(say("expected on or off; nothing was changed"))
    told = say("Your browser tells you from now on, while this page is open.") if answer == ON else say("Switched off.")
    response = request.app[SITE].onward(request, "/", told)
    response.set_cookie(COOKIE, answer, max_age=_YEAR, httponly=True, samesite="Strict", path="/")
    return response


def _due(site: Site) -> Matter | None:
    waiting = [*(study.hex() for study in site.invites), *(place for _title, place in site.waiting_elsewhere())]
    faulty, now = site.supervisor.running is Running.FAULTY, site.now()
    return site.telling.due(happenings(map(for_notice, site.peer.store.studies()), waiting, faulty, now), now)
