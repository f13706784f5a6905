"""The owner's data: tables, choosing a file, looking at it, importing it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from aiohttp import BodyPartReader, web

from anon.errors import Refused
from anon.study.parts import Table
from peer.data.importing import import_file
from peer.data.preview import preview as look_at
from peer.data.reading import counted
from peer.own_data import own_data
from peer.session import LAST
from peer.web.site import SITE, Site
from peer.web.views.forms import form_file, form_text
from peer.web.views.joining import STEPS, newest_invite, policy_of

routes = web.RouteTableDef()
UPLOAD = "/data/upload"
_PIECE = 2**18
_PLACES = {"start": "/start/data", "": "/data"}
"""Where an import leads back to."""


@routes.get("/data")
async def data(request: web.Request) -> web.Response:
    """The tables, and a form to add to them."""
    site = request.app[SITE]
    wanted = await _wanted(site)
    return site.page(
        request, "data.html", tables=site.tables(), own=own_data(site.data_path, wanted), wanted=wanted, back=""
    )


@routes.post(UPLOAD)
async def upload(request: web.Request) -> web.Response:
    """A file, read piece by piece after the form's token was checked."""
    site = request.app[SITE]
    part, fields = await form_file(request, "file")
    back = fields.get("back", "")
    key = await site.staging.take(part.filename or "", _pieces(part))
    return site.onward(request, f"/data/preview/{key}?back={back if back in _PLACES else ''}")


async def _pieces(part: BodyPartReader) -> AsyncIterator[bytes]:
    while piece := await part.read_chunk(_PIECE):
        yield piece


@routes.get("/data/preview/{key}")
async def preview(request: web.Request) -> web.StreamResponse:
    """What is in a file, before it becomes a table."""
    site, key = request.app[SITE], request.match_info["key"]
    file = site.staging.file(key)
    looked = await site.work(f"look-{key}", lambda: asyncio.to_thread(look_at, file))
    if not looked.done():
        return site.waiting(request, "Reading the file")
    found = looked.result()
    wanted = await _wanted(site)
    return site.page(
        request,
        "preview.html",
        preview=found,
        name=file.name,
        key=key,
        wanted=wanted,
        suggested=_suggested(wanted, [one.name for one in found.tables], site),
        tables=site.tables(),
        back=_back(request),
        policy=site.peer.policy() if _sets_budget(request) else None,
        step=3,
        steps=STEPS,
    )


@routes.post("/data/preview/{key}")
async def decided(request: web.Request) -> web.StreamResponse:
    """Import the file, or drop it."""
    site, key = request.app[SITE], request.match_info["key"]
    file, place = site.staging.file(key), _PLACES[_back(request)]
    if await form_text(request, "answer") != "import":
        site.forget(f"look-{key}")
        site.staging.drop(key)
        return site.onward(request, place, "Nothing was imported; the copy of the file is gone.")
    if _sets_budget(request):
        site.peer.set_policy(await policy_of(request, site.peer.policy()))
    table = await form_text(request, "table") or None
    adding = await form_text(request, "mode") == "append"
    if site.paired and not adding:
        raise Refused("a paired phone adds rows; to put them in place of a table's, do this on the computer itself")
    watched = _watched(site, request.cookies[site.gate.cookie])
    importing = await site.work(
        f"import-{key}",
        lambda: asyncio.to_thread(import_file, site.data_path, file, table, "append" if adding else "replace", watched),
    )
    if importing.done():
        importing.result()
    return site.onward(request, f"/data/imported/{key}?back={_back(request)}")


def _watched(site: Site, session: str) -> Callable[[int], None]:
    """Called as rows are read; what it raises takes the whole import back. A phone that is shut out adds nothing more,
    and rows that unpack without end must leave room for packets, which are stored before they leave."""

    def watched(_rows: int) -> None:
        site.staging.demand_room()
        if site.paired and not site.gate.lives(session):
            raise Refused("this phone was shut out, or pairing ended, meanwhile; nothing was imported")

    return watched


@routes.get("/data/imported/{key}")
async def imported(request: web.Request) -> web.StreamResponse:
    """Waits for an import, and leads back from it."""
    site, key = request.app[SITE], request.match_info["key"]
    work = site.working(f"import-{key}")
    if work is None:
        raise Refused("this import is not known any more; look at your tables")
    if not work.done():
        return site.waiting(request, "Importing the file")
    site.forget(f"import-{key}")
    site.forget(f"look-{key}")
    summary = work.result()
    site.staging.drop(key)
    lost = f", {counted(summary.skipped, summary.unit)} could not be read" if summary.skipped else ""
    said = f"Imported: {counted(summary.rows, 'row')} into {summary.table}{lost}."
    ready = _sets_budget(request) and not own_data(site.data_path, await _wanted(site)).warnings
    return site.onward(request, newest_invite(site) if ready else _PLACES[_back(request)], said)


def _sets_budget(request: web.Request) -> bool:
    """Whether the owner is on the way from a first link to its consent screen: limits are then set beside the data."""
    site = request.app[SITE]
    return _back(request) == "start" and bool(site.invites) and not site.peer.status()


def after_fault(request: web.Request) -> str:
    """Where to choose another file, or to correct what was written beside one; nothing away from a file's import."""
    site = request.app[SITE]
    if not request.path.startswith("/data/"):
        return ""
    if request.method == "POST" and request.path != UPLOAD:
        return request.path_qs
    first = not site.paired and bool(site.invites) and not site.peer.status()
    return _PLACES["start" if first or _back(request) == "start" else ""]


def _back(request: web.Request) -> str:
    """Where an import leads back to. The way from a first link to its consent screen is no phone's."""
    back = request.query.get("back", "")
    return back if back in _PLACES and not request.app[SITE].paired else ""


async def _wanted(site: Site) -> tuple[Table, ...]:
    """The tables that studies joined, or links that wait for an answer, read."""
    found: dict[str, Table] = {}
    for one in site.peer.status():
        if one.state not in LAST:
            found |= {table.name: table for table in site.peer.store.study(one.study).manifest.tables}
    for invite in list(site.invites.values()):
        fetched = await site.manifest(invite)
        if fetched.done() and not fetched.cancelled() and fetched.exception() is None:
            found |= {table.name: table for table in fetched.result().tables}
    return tuple(found.values())


def _suggested(wanted: tuple[Table, ...], found: list[str], site: Site) -> str:
    """The table to import a file into: the only one that is read and not there, unless the file's name says it."""
    if len(found) != 1 or any(table.name == found[0] for table in wanted):
        return found[0] if len(found) == 1 else ""
    lacking = [table.name for table in wanted if table.name not in site.tables()]
    return lacking[0] if len(lacking) == 1 else found[0]
