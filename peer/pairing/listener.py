"""Where pairing's tor hands a phone's requests over: a socket file, the same pages, and a gate of their own."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import defaultdict
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from anon.kit.page.gate import POLICY
from anon.kit.page.guard import protect
from anon.serving.door import DoorSite, for_owner, private_socket
from anon.text.sentences import say
from peer.pairing.allowed import REFUSED, permitted
from peer.pairing.phones import PhoneGate
from peer.web.server import MOST_FORM_BYTES, add_pages
from peer.web.site import SITE, Site
from peer.web.views.data import UPLOAD

PHONE_POLICY = re.sub("(script|connect)-src 'self'", r"\1-src 'none'", POLICY)
_LAST_SECONDS = 1.0
_QUIET = logging.getLogger(f"{__name__}.requests")
_QUIET.disabled = True  # the server would quote malformed requests; pages that fail are logged by their guard


class PhoneListener:
    """Answers phones under one Host, the onion service's, and nothing under any other; not this machine's names either.

    Who gets in is `PhoneGate`, what they may do `allowed`. Nothing of a request is logged but the type of a fault.
    """

    def __init__(self, site: Site, gate: PhoneGate, host: str) -> None:
        self._site = site
        self._gate = gate
        self._host = host
        self._at_work: dict[int, set[asyncio.Task[object]]] = defaultdict(set)
        self._runner: web.AppRunner | None = None

    async def start(self, socket: Path) -> None:
        """Begin to answer at `socket`, which lies in a folder that only its owner can enter."""
        self._runner = web.AppRunner(
            self.application(),
            access_log=None,
            logger=_QUIET,
            handle_signals=False,
            shutdown_timeout=_LAST_SECONDS,
        )
        await self._runner.setup()
        await DoorSite(self._runner, [private_socket(socket)], for_owner()).start()

    def application(self) -> web.Application:
        """The pages, guarded in this order: host, origin, session and form (`protect`), then what phones may do."""
        app = web.Application(client_max_size=MOST_FORM_BYTES)
        protect(app, self._gate, {self._host}, self._site.bare, streamed=frozenset({UPLOAD}))
        app.middlewares.append(self._only_allowed())
        add_pages(app, self._site)
        app.on_response_prepare.append(_without_scripts)
        return app

    def cut_off(self, number: int) -> None:
        """End what a phone's requests are doing. Its session has ended already."""
        for task in self._at_work.pop(number, set()):
            task.cancel()

    async def close(self) -> None:
        """Answer nothing more."""
        for number in list(self._at_work):
            self.cut_off(number)
        if self._runner is not None:
            await self._runner.cleanup()

    def _only_allowed(self) -> Middleware:
        @web.middleware
        async def only_allowed(request: web.Request, handler: Handler) -> web.StreamResponse:
            phone = self._gate.phone_of(request.cookies.get(self._gate.cookie))
            if phone is None:  # revoked since the guard looked
                return self._site.bare(401, say("this phone is not let in any more"))
            resource = request.match_info.route.resource
            if resource is not None and not permitted(request.method, resource.canonical):
                return request.app[SITE].page(request, "fault.html", 403, text=REFUSED)
            task = asyncio.current_task()
            assert task is not None
            working = self._at_work[phone.number]
            working.add(task)
            try:
                return await handler(request)
            finally:
                working.discard(task)

        return only_allowed


async def _without_scripts(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers["Content-Security-Policy"] = PHONE_POLICY
