"""Pairing as the computer's page sees it: whether it is on and for which phones; revoking one, switching it off.

It is switched on in a terminal, which shows the codes (`anonml peer pair`); the process there does what is wished here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import web

from anon.text.sentences import say
from peer.pairing.state import PairingFolder, folder_of
from peer.store.home import PeerHome
from peer.web.forms import form_whole
from peer.web.site import SITE, Site

routes = web.RouteTableDef()
_POLLS, _POLL_SECONDS = 40, 0.1
_OFF = say("Pairing is off. Links and keys are worth nothing any more.")
_SLOW = say("It was asked to; it has not answered yet. Look again in a moment.")


@routes.get("/phones")
async def phones(request: web.Request) -> web.Response:
    """The state of pairing, and the phones."""
    site = request.app[SITE]
    folder = pairing_of(site)
    return site.page(request, "phones.html", on=folder.on(), state=folder.state())


@routes.post("/phones/off")
async def switched_off(request: web.Request) -> web.Response:
    """Switch pairing off."""
    site = request.app[SITE]
    folder = pairing_of(site)
    folder.wish_off()
    done = await _soon(lambda: not folder.on())
    return site.onward(request, "/phones", _OFF if done else _SLOW)


@routes.post("/phones/revoke")
async def revoked(request: web.Request) -> web.Response:
    """Shut one phone out."""
    site = request.app[SITE]
    folder = pairing_of(site)
    number = await form_whole(request, "number", "phone")
    folder.wish_revoked(number)
    done = await _soon(lambda: not folder.on() or _is_revoked(folder, number))
    return site.onward(request, "/phones", say("This phone is shut out.") if done else _SLOW)


def pairing_of(site: Site) -> PairingFolder:
    """The folder of pairing of a site's home."""
    return folder_of(PeerHome(site.data_path.parent))


def _is_revoked(folder: PairingFolder, number: int) -> bool:
    state = folder.state()
    return state is not None and any(phone.number == number and phone.revoked for phone in state.phones)


async def _soon(done: Callable[[], bool]) -> bool:
    for _ in range(_POLLS):
        if done():
            return True
        await asyncio.sleep(_POLL_SECONDS)
    return done()
