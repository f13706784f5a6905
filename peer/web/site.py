"""What the pages share: the peer, the gate, links that wait for an answer, work that takes longer than a page may."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, MutableMapping
from pathlib import Path
from typing import Any, Final, TypeVar

from aiohttp import web
from attrs import define, field
from jinja2 import Environment
from markupsafe import Markup

from anon.errors import Refused
from anon.invite import Invite
from anon.page.guard import form_token
from anon.page.security import FORM_FIELD, Gate
from anon.study.manifest import Manifest
from peer.app import PeerApp
from peer.data.sandbox import plain_tables_of
from peer.web.engine import Engine, Running
from peer.web.rendering import environment
from peer.web.staging import Staging

T = TypeVar("T")
PATIENCE_SECONDS = 1.5
"""How long a page waits for slow work before it says that it is under way, and looks again by itself."""


@define
class Site:
    """One home's page. `progress` is how far a connection to Tor has got, empty when there is none to make. `landing`
    is where the front page leads on to, once: to the link that the program was started with."""

    peer: PeerApp
    data_path: Path
    engine: Engine
    gate: Gate
    staging: Staging
    now: Callable[[], float]
    random_bytes: Callable[[int], bytes]
    progress: Callable[[], str] = lambda: ""
    paired: bool = False
    invites: MutableMapping[bytes, Invite] = field(factory=dict)
    landing: str = ""
    _works: dict[str, asyncio.Task[Any]] = field(factory=dict)
    _notices: dict[str, str] = field(factory=dict)
    _templates: Environment = field(factory=environment)

    # Drawing

    def page(self, request: web.Request, template: str, status_code: int = 200, **context: Any) -> web.Response:
        """A page of an admitted request."""
        cookie = request.cookies[self.gate.cookie]
        token = Markup('<input type="hidden" name="{}" value="{}">').format(FORM_FIELD, form_token(request, self.gate))
        shared = {
            "here": request.path,
            "token_field": token,
            "notice": self._notices.pop(cookie, ""),
            "engine": self.engine,
            "Running": Running,
            "progress": self.progress(),
            "paired": self.paired,
            "paused": self.peer.paused_until(),
            "now": self.now(),
        }
        text = self._templates.get_template(template).render(shared | context)
        return web.Response(text=text, content_type="text/html", status=status_code)

    def bare(self, status: int, text: str) -> web.Response:
        """A page for whoever was not let in: nothing of the home is in it."""
        said = self._templates.get_template("refused.html").render(status=status, text=text)
        return web.Response(text=said, content_type="text/html", status=status)

    def waiting(self, request: web.Request, what: str) -> web.Response:
        """A page that looks again by itself, also with scripts off."""
        return self.page(request, "waiting.html", what=what)

    def onward(self, request: web.Request, place: str, notice: str = "") -> web.Response:
        """After a form: to another page, which says the notice once."""
        if notice:
            self._notices[request.cookies[self.gate.cookie]] = notice
        return web.Response(status=303, headers={"Location": place})

    # Work that takes its time

    async def work(self, name: str, make: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        """The work of this name, begun if it is not under way; done when it returns in time. A failed one is forgotten
        with the first look at it, so that the next look tries again."""
        task = self._works.get(name)
        if task is None:
            task = self._works[name] = asyncio.create_task(make())
            task.add_done_callback(_heard)
        await asyncio.wait({task}, timeout=PATIENCE_SECONDS)
        if task.done() and (task.cancelled() or task.exception() is not None):
            self.forget(name)
        return task

    def working(self, name: str) -> asyncio.Task[Any] | None:
        """The work of this name, if it was begun and not forgotten."""
        return self._works.get(name)

    def forget(self, name: str) -> None:
        """The next look at this work begins it anew."""
        task = self._works.pop(name, None)
        if task is not None and not task.done():
            task.cancel()

    async def close(self) -> None:
        """End all work and remove what was staged."""
        for name in list(self._works):
            self.forget(name)
        self.staging.close()

    # Naming things

    def study_of(self, request: web.Request) -> bytes:
        """The study that a path names. Raises `Refused`."""
        return _identifier(request.match_info["study"])

    def invite_of(self, request: web.Request) -> Invite:
        """The link that waits for an answer. Raises `Refused` when there is none of that study."""
        found = self.invites.get(self.study_of(request))
        if found is None:
            raise Refused("this link is not known any more; paste it again")
        return found

    async def manifest(self, invite: Invite) -> asyncio.Task[Manifest]:
        """The study of a link, being fetched."""
        return await self.work(f"invite-{invite.study.hex()}", lambda: self.peer.manifest(invite))

    def tables(self) -> dict[str, tuple[str, ...]]:
        """The owner's tables and their columns."""
        return {name: tuple(columns) for name, columns in plain_tables_of(self.data_path).items()}


def _heard(task: asyncio.Task[Any]) -> None:
    """Work that fails while nobody looks: asyncio would log its text, which may quote the owner's data."""
    if not task.cancelled():
        task.exception()


SITE: Final = web.AppKey("site", Site)


def _identifier(text: str) -> bytes:
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != 32:
        raise Refused("no study has this name; choose one from the list of your studies")
    return found
