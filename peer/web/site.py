"""The common part of the pages: the peer, the gate, links that wait for an answer, work that takes longer than a page
may."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, MutableMapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any, Final, Protocol, TypeVar

from aiohttp import web
from attrs import Factory, define, field
from jinja2 import Environment
from markupsafe import Markup

from anon.errors import Refused
from anon.kit.page.gate import FORM_FIELD, Gate
from anon.kit.page.guard import form_token
from anon.kit.page.jobs import Jobs
from anon.queries.sandbox import plain_tables_of
from anon.study.features import Table
from anon.study.manifest import Manifest
from anon.text.sentences import say
from anon.wire.invite import Invite
from peer.app import PeerApp
from peer.data.readiness import OwnData, own_data
from peer.rules.consent import Policy
from peer.rules.ledger import Ledger
from peer.rules.tellers import KnownTellers
from peer.run.supervisor import Running, Supervisor
from peer.store.records import Study
from peer.store.summaries import StudyStatus
from peer.web.notices import COOKIE, BrowserNotices
from peer.web.rendering import environment
from peer.web.threads import Threads
from peer.web.uploads import Staging

T = TypeVar("T")
LIVE = "X-Live"
"""The header with which `live.js` looks again. Such a look takes no notice away from the page that is to say it."""
PATIENCE_SECONDS = 1.5
"""How long a page waits for slow work before it says that it is under way, and looks again by itself."""


class StudyReader(Protocol):
    """The part of the store that every page reaches."""

    def study(self, study: bytes) -> Study: ...


class PeerReach(Protocol):
    """The part of the peer that every page reaches, a phone's as well: reading, and pausing."""

    @property
    def store(self) -> StudyReader: ...
    def budget(self) -> Ledger: ...
    def policy(self) -> Policy: ...
    def known_tellers(self) -> KnownTellers: ...
    def status(self) -> list[StudyStatus]: ...
    def pause(self, until: float, study: bytes | None = None) -> None: ...
    def paused_until(self, study: bytes | None = None) -> float | None: ...
    def resume(self, study: bytes | None = None) -> None: ...
    async def manifest(self, invite: Invite) -> Manifest: ...


@define
class Site:
    """One home's page. `progress` is how far a connection to Tor has got, empty when there is none to make. `landing`
    is where the front page leads on to, once: to the link that the program was started with."""

    reach: PeerReach
    _whole: Callable[[], PeerApp]
    data_path: Path
    supervisor: Supervisor
    gate: Gate
    staging: Staging
    now: Callable[[], float]
    random_bytes: Callable[[int], bytes]
    progress: Callable[[], str] = lambda: ""
    paired: bool = False
    invites: MutableMapping[bytes, Invite] = field(factory=dict)
    landing: str = ""
    asking: Sequence[Callable[[Path], Sequence[tuple[str, str]]]] = ()
    """Of other shells: from the home's folder to titles that wait for an answer, each with its page."""
    threads: Threads = field(factory=Threads)
    jobs: Jobs = field(factory=Jobs)
    telling: BrowserNotices = field(default=Factory(lambda site: BrowserNotices(site.random_bytes), takes_self=True))
    _stops: dict[str, Event] = field(factory=dict)
    _notices: dict[str, str] = field(factory=dict)
    _templates: Environment = field(factory=environment)

    @property
    def peer(self) -> PeerApp:
        """The whole peer. Raises `Refused` on a phone's page."""
        return self._whole()

    # Drawing

    def page(self, request: web.Request, template: str, status_code: int = 200, **context: Any) -> web.Response:
        """A page of an admitted request."""
        cookie = request.cookies[self.gate.cookie]
        token = Markup('<input type="hidden" name="{}" value="{}">').format(FORM_FIELD, form_token(request, self.gate))
        shared = {
            "here": request.path,
            "back": request.path if request.method in ("GET", "HEAD") else "/",
            "token_field": token,
            "notice": "" if request.headers.get(LIVE) else self._notices.pop(cookie, ""),
            "supervisor": self.supervisor,
            "Running": Running,
            "progress": self.progress(),
            "paired": self.paired,
            "notices": request.cookies.get(COOKIE, ""),
            "paused": self.reach.paused_until(),
            "copies": self.copies,
            "now": self.now(),
        }
        text = self._templates.get_template(template).render(shared | context)
        return web.Response(text=text, content_type="text/html", status=status_code)

    def bare(self, status: int, text: str) -> web.Response:
        """A page for whoever was not let in: nothing of the home is in it."""
        refusal_page = self._templates.get_template("refused.html").render(status=status, text=text)
        return web.Response(text=refusal_page, content_type="text/html", status=status)

    def waiting(self, request: web.Request, what: str, stop: str = "") -> web.Response:
        """A page that looks again by itself, also with scripts off. `stop` is where its form ends the work."""
        return self.page(request, "waiting.html", what=what, stop=stop)

    def onward(self, request: web.Request, path: str, notice: str = "") -> web.Response:
        """After a form: to another page, which says the notice once."""
        if notice:
            self._notices[request.cookies[self.gate.cookie]] = notice
        return web.Response(status=303, headers={"Location": path})

    # Work that takes its time

    async def work(self, name: str, make: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        """The job of this name, begun if there is none; done when it returns in time. A failed one is forgotten with
        the first look at it, so that the next look tries again."""
        task = self.jobs.begin(name, make)
        await asyncio.wait({task}, timeout=PATIENCE_SECONDS)
        if task.done() and (task.cancelled() or task.exception() is not None):
            self.forget(name)
        return task

    def stop_of(self, name: str) -> Event:
        """The event that ends the reading of this name, fresh for each reading."""
        return self._stops.setdefault(name, Event())

    def stop(self, name: str) -> None:
        """End a reading that is under way; how it ended is told by the next look at it."""
        if self.jobs.get(name) is not None:
            self.stop_of(name).set()

    def forget(self, name: str) -> None:
        """The next look at this work begins it anew. A reading under way ends."""
        if (stop := self._stops.pop(name, None)) is not None:
            stop.set()
        self.jobs.forget(name)

    def clear(self) -> None:
        """End all work, forget what it found, and remove what was staged."""
        for name in self.jobs.names():
            self.forget(name)
        self.staging.close()

    async def close(self) -> None:
        """The same for good."""
        self.clear()
        self.threads.close()

    def copies(self) -> dict[str, str]:
        """The file name of each copy that waits and is not just being imported, by its key."""
        busy = self.jobs.unfinished("import-")
        return {key: name for key, name in self.staging.names().items() if f"import-{key}" not in busy}

    # Naming things

    def study_of(self, request: web.Request) -> bytes:
        """The study that a path names. Raises `Refused`."""
        return _identifier(request.match_info["study"])

    def invite_of(self, request: web.Request) -> Invite:
        """The link that waits for an answer. Raises `Refused` when there is none of that study."""
        invite = self.invites.get(self.study_of(request))
        if invite is None:
            raise Refused(say("this link is not known any more; paste it again"))
        return invite

    async def manifest(self, invite: Invite) -> asyncio.Task[Manifest]:
        """The study of a link, being fetched."""
        return await self.work(f"invite-{invite.study.hex()}", lambda: self.reach.manifest(invite))

    async def own(self, tables: Sequence[Table]) -> OwnData:
        """The part of these tables that the owner has; their rows are counted in a thread."""
        return await self.threads.asked(own_data, self.data_path, tables)

    def waiting_elsewhere(self) -> list[tuple[str, str]]:
        """Titles of other shells that wait for an answer, each with its page. A phone's page has none."""
        return [] if self.paired else [told for found in self.asking for told in found(self.data_path.parent)]

    def tables(self) -> dict[str, tuple[str, ...]]:
        """The owner's tables and their columns."""
        return {name: tuple(columns) for name, columns in plain_tables_of(self.data_path).items()}


SITE: Final = web.AppKey("site", Site)


def _identifier(text: str) -> bytes:
    try:
        study = bytes.fromhex(text)
    except ValueError:
        study = b""
    if len(study) != 32:
        raise Refused(say("no study has this name; choose one from the list of your studies"))
    return study
