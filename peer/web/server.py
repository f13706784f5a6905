"""The page as a server on loopback, with the peer running beside it in one process."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.resources import files

from aiohttp import web
from aiohttp.typedefs import Handler

from anon.errors import AnonmlError, Refused, Unreachable
from anon.kit.page.gate import Gate, hosts_of
from anon.kit.page.guard import protect
from anon.serving.door import DoorSite, for_owner
from anon.text.sentences import Sentence, say
from peer.app import PeerApp
from peer.run.supervisor import Supervisor
from peer.store.home import PeerHome
from peer.web.languages import ENGLISH, current
from peer.web.site import SITE, Site
from peer.web.uploads import Staging
from peer.web.views import budget, codes, data, diagnosis, joining, language, notices, results, studies, taking_back

HOST = "127.0.0.1"
MOST_FORM_BYTES = 64 * 1024
_QUIET = logging.getLogger(f"{__name__}.requests")
_QUIET.disabled = True  # the server would quote malformed requests; pages that fail are logged by their guard
_PUBLIC = frozenset({"/static/style.css"})
"""Files that are no secret: the look of the page that asks for a link."""
_STATIC = {"style.css": "text/css", "live.js": "text/javascript", "icon.svg": "image/svg+xml"}


class PageServer:
    """Serves one home's page until it is closed. Port 0 takes any that is free.

    Nothing of a request is logged: there is no access log, and a fault is logged as its type alone.
    """

    def __init__(
        self,
        peer: PeerApp,
        home: PeerHome,
        port: int = 0,
        *,
        now: Callable[[], float] = time.time,
        random_bytes: Callable[[int], bytes] = os.urandom,
        progress: Callable[[], str] = lambda: "",
        guests: Sequence[web.RouteTableDef] = (),
    ) -> None:
        self._socket = _listening(port)
        self.port: int = self._socket.getsockname()[1]
        self.home = home
        self._guests = guests
        gate = Gate(f"peer-{self.port}", random_bytes)
        self.supervisor = Supervisor(peer.run)
        self.site = Site(
            peer, lambda: peer, home.data_path, self.supervisor, gate, Staging(home.path, random_bytes),
            now, random_bytes, progress, invites=peer.waiting,
        )
        self._runner: web.AppRunner | None = None
        self._running: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://{HOST}:{self.port}"

    @property
    def link(self) -> str:
        """The link that opens the page in a browser, once; after its use this is another one."""
        return self.site.gate.link(self.address)

    async def start(self, run: bool = True) -> None:
        """Begin to answer and, with `run`, to run the home's studies."""
        self._runner = web.AppRunner(self._application(), access_log=None, logger=_QUIET, handle_signals=False)
        await self._runner.setup()
        await DoorSite(self._runner, [self._socket], for_owner()).start()
        if run:
            self._running = asyncio.create_task(self.supervisor.run())

    async def close(self) -> None:
        """End the run, the work under way and the server."""
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
        await self.site.close()
        if self._runner is not None:
            await self._runner.cleanup()
        self._socket.close()

    def _application(self) -> web.Application:
        app = web.Application(client_max_size=MOST_FORM_BYTES)
        streamed = frozenset({data.UPLOAD, codes.PICTURE})
        protect(app, self.site.gate, hosts_of(self.port), self.site.bare, public=_PUBLIC, streamed=streamed)
        add_pages(app, self.site, self._guests)
        return app


def add_pages(app: web.Application, site: Site, guests: Sequence[web.RouteTableDef] = ()) -> None:
    """Add every page of a site, and those of `guests`, to an application that is protected already."""
    app[SITE] = site
    app.middlewares.insert(0, language.speaking)
    app.middlewares.append(_explained)
    for module in (joining, codes, studies, budget, data, taking_back, results, diagnosis, language, notices):
        app.add_routes(module.routes)
    for routes in guests:
        app.add_routes(routes)
    app.router.add_get("/static/{name}", _static)


def _listening(port: int) -> socket.socket:
    """Raises `Refused` when the port is taken."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except (OSError, OverflowError):
        listening.close()
        raise Refused(say(
            "port {port} of this machine is taken; choose another one with --port, or none",
            port=port,
        )) from None
    return listening


@web.middleware
async def _explained(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A fault that the owner can do something about, as a page. Nothing was changed by it."""
    try:
        return await handler(request)
    except Unreachable as fault:
        return _fault(request, 502, str(fault))
    except AnonmlError as fault:
        return _fault(request, 400, str(fault))
    except web.HTTPNotFound:
        return _fault(request, 404, say("there is no such page"))
    except asyncio.CancelledError:
        if (request_task := asyncio.current_task()) is None or request_task.cancelling():
            raise
        return _fault(request, 409, say("this was begun anew in another window and stopped here; load the page again"))


def _fault(request: web.Request, status: int, text: str) -> web.Response:
    untranslated = not isinstance(text, Sentence) and current().code != ENGLISH
    again = data.after_fault(request)
    return request.app[SITE].page(request, "fault.html", status, text=text, untranslated=untranslated, again=again)


async def _static(request: web.Request) -> web.Response:
    kind = _STATIC.get(request.match_info["name"])
    if kind is None:
        raise web.HTTPNotFound
    body = files("peer.web").joinpath("static", request.match_info["name"]).read_bytes()
    return web.Response(body=body, content_type=kind, charset="utf-8")

