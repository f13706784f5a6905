"""The owner's data: tables, choosing a file, looking at it, importing it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from pathlib import Path
from threading import Event

from aiohttp import BodyPartReader, web

from anon.errors import Refused
from anon.study.features import Table
from anon.study.manifest import Manifest
from anon.study.translations import StudyText, wording
from anon.text.sentences import joined, say
from anon.values import frozen
from peer.data.choices import Choices, remembered
from peer.data.importing import ImportSummary, Mode, Progress, import_file
from peer.data.preview import PreviewTable
from peer.data.preview import preview as look_at
from peer.data.readiness import unread_of
from peer.data.reading import counted
from peer.rules.lifecycle import LAST
from peer.web.forms import form_file, form_text
from peer.web.languages import current
from peer.web.site import SITE, Site
from peer.web.views.choosing import choices_of, offer_of
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
        request, "data.html", tables=site.tables(), own=await site.own(wanted.tables), wanted=wanted, back=""
    )


@routes.post(UPLOAD)
async def upload(request: web.Request) -> web.Response:
    """A file, read piece by piece after the form's token was checked."""
    site = request.app[SITE]
    part, fields = await form_file(request, "file")
    back = fields.get("back", "")
    for name in site.jobs.unfinished("look-"):
        site.forget(name)
    key = await site.staging.take(part.filename or "", _pieces(part))
    if (instead := fields.get("instead", "")) in site.copies():
        site.forget(f"look-{instead}")
        site.staging.drop(instead)
    return site.onward(request, f"/data/preview/{key}?back={back if back in _PLACES else ''}")


async def _pieces(part: BodyPartReader) -> AsyncIterator[bytes]:
    while piece := await part.read_chunk(_PIECE):
        yield piece


@routes.get("/data/preview/{key}")
async def preview(request: web.Request) -> web.StreamResponse:
    """The content of a file, before it becomes a table."""
    site, key = request.app[SITE], request.match_info["key"]
    file = site.staging.file(key)
    name = f"look-{key}"
    looked = await site.work(name, lambda: site.threads.looked(look_at, file, stop=site.stop_of(name)))
    if not looked.done() or looked.cancelled():  # a file that was chosen meanwhile ends it; the next look begins anew
        return site.waiting(request, say("Reading the file"), f"/data/preview/{key}?back={_back(request)}")
    preview, tables, wanted = looked.result(), site.tables(), await _wanted(site)
    only = preview.tables[0] if len(preview.tables) == 1 else None
    before = await site.threads.asked(_remembered, site.data_path, wanted.tables)
    choices = declared(wanted.tables, only, tables, before) if only is not None else ()
    chosen = request.query.get("table", "")
    if only is not None and chosen not in {choice.name for choice in choices}:
        chosen = suggested(choices, only.name)
    return site.page(
        request,
        "preview.html",
        preview=preview,
        name=file.name,
        key=key,
        choices=choices,
        chosen=chosen,
        offer=await offer_of(site, only, *wanted.of(chosen)) if only is not None else None,
        sources=wanted.sources.values(),
        tables=tables,
        back=_back(request),
        policy=site.reach.policy() if _sets_budget(request) else None,
        step=2,
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
        return site.onward(request, place, say("Nothing was imported; the copy of the file is gone."))
    policy = await policy_of(request, site.reach.policy()) if _sets_budget(request) else None
    table = await form_text(request, "table") or None
    choices = await _chosen(request, table)
    if choices is None:
        place = f"/data/preview/{key}?back={_back(request)}&table={table}"
        return site.onward(request, place, say("A study reads this table. Look at what it asks, then import."))
    adding = await form_text(request, "mode") == "append"
    if site.paired and not adding:
        raise Refused(say(
            "a paired phone adds rows; to put them in place of a table's, do this on the computer itself",
        ))
    if policy is not None:
        site.peer.set_policy(policy)
    watched = _watched(site, request.cookies[site.gate.cookie])
    name, mode = f"import-{key}", "append" if adding else "replace"
    importing = await site.work(
        name,
        lambda: site.threads.imported(
            _import, site.data_path, file, table, mode, watched, choices, stop=site.stop_of(name)
        ),
    )
    if importing.done():
        importing.result()
    return site.onward(request, f"/data/imported/{key}?back={_back(request)}")


def _import(
    database: Path, file: Path, table: str | None, mode: Mode, progress: Progress, choices: Choices, stop: Event
) -> ImportSummary:
    return import_file(database, file, table, mode, progress, stop=stop, choices=choices)


async def _chosen(request: web.Request, table: str | None) -> Choices | None:
    """The owner's choices for the file; None where its table was not yet compared with what studies read."""
    site, key = request.app[SITE], request.match_info["key"]
    file, name = site.staging.file(key), f"look-{key}"
    looked = await site.work(name, lambda: site.threads.looked(look_at, file, stop=site.stop_of(name)))
    if not looked.done() or looked.cancelled():
        return None
    if len(tables := looked.result().tables) != 1:
        return Choices()
    wanted, studies = (await _wanted(site)).of(table or "")
    if wanted is not None and await form_text(request, "compared") != table:
        return None
    return await choices_of(request, await offer_of(site, tables[0], wanted, studies))


def _watched(site: Site, session: str) -> Callable[[int], None]:
    """Called as rows are read; what it raises takes the whole import back. A phone that is shut out adds nothing more,
    and rows that unpack without end must leave room for packets, which are stored before they leave."""

    def watched(_rows: int) -> None:
        site.staging.demand_room()
        if site.paired and not site.gate.lives(session):
            raise Refused(say("this phone was shut out, or pairing ended, meanwhile; nothing was imported"))

    return watched


@routes.get("/data/imported/{key}")
async def imported(request: web.Request) -> web.StreamResponse:
    """Waits for an import, and leads back from it."""
    site, key = request.app[SITE], request.match_info["key"]
    work = site.jobs.get(f"import-{key}")
    if work is None:
        raise Refused(say("this import is not known any more; look at your tables"))
    if not work.done():
        return site.waiting(request, say("Importing the file"), f"/data/imported/{key}?back={_back(request)}")
    site.forget(f"import-{key}")
    site.forget(f"look-{key}")
    summary = work.result()
    site.staging.drop(key)
    rows = counted(summary.rows, "row")
    if summary.skipped:
        skipped = counted(summary.skipped, summary.unit)
        sentence = say(
            "Imported: {rows} into {table}, {skipped} could not be read.",
            rows=rows,
            table=summary.table,
            skipped=skipped,
        )
    else:
        sentence = say("Imported: {rows} into {table}.", rows=rows, table=summary.table)
    wanted = (await _wanted(site)).tables
    if unread := unread_of(summary.table, wanted):
        return site.onward(request, _PLACES[_back(request)], joined([sentence, unread], " "))
    ready = _sets_budget(request) and not (await site.own(wanted)).warnings
    return site.onward(request, newest_invite(site) if ready else _PLACES[_back(request)], sentence)


@routes.post("/data/imported/{key}")
async def stopped(request: web.Request) -> web.StreamResponse:
    """End an import. The page that waits for it tells its result: it may just have been done."""
    site, key = request.app[SITE], request.match_info["key"]
    site.stop(f"import-{key}")
    return site.onward(request, f"/data/imported/{key}?back={_back(request)}")


def _sets_budget(request: web.Request) -> bool:
    """True if the owner is on the way from a first link to its consent screen: limits are then set beside the data."""
    site = request.app[SITE]
    return _back(request) == "start" and bool(site.invites) and not site.reach.status()


def after_fault(request: web.Request) -> str:
    """Where to go on after a fault: the form or the file to correct; empty for the front page."""
    site = request.app[SITE]
    if request.path.startswith("/budget"):
        return "/budget"
    if not request.path.startswith("/data/"):
        return ""
    if request.method == "POST" and request.path != UPLOAD:
        return request.path_qs
    first = not site.paired and bool(site.invites) and not site.reach.status()
    return _PLACES["start" if first or _back(request) == "start" else ""]


def _back(request: web.Request) -> str:
    """Where an import leads back to. The way from a first link to its consent screen is no phone's."""
    back = request.query.get("back", "")
    return back if back in _PLACES and not request.app[SITE].paired else ""


@frozen
class WantedTables:
    """The studies joined, and those of links that wait for an answer."""

    studies: tuple[Manifest, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        """Each table once: the newest study's columns of it."""
        return tuple({table.name: table for study in self.studies for table in study.tables}.values())

    def of(self, name: str) -> tuple[Table | None, tuple[Manifest, ...]]:
        """The table of this name, and the studies that read it."""
        found = next((table for table in self.tables if table.name == name), None)
        readers = (study for study in self.studies if any(table.name == name for table in study.tables))
        return found, tuple(readers)

    @property
    def sources(self) -> dict[str, StudyText]:
        """Where each study's file comes from, by the study's title; without those that do not say."""
        found = (wording(study, current().code) for study in self.studies)
        return {told.title: told.data_source for told in found if told.data_source}


async def _wanted(site: Site) -> WantedTables:
    found: list[Manifest] = []
    for status in site.reach.status():
        stored = site.reach.store.study(status.study)
        if status.state not in LAST and not stored.refused:
            found.append(stored.manifest)
    for invite in list(site.invites.values()):
        fetched = await site.manifest(invite)
        if fetched.done() and not fetched.cancelled() and fetched.exception() is None:
            found.append(fetched.result())
    return WantedTables(tuple(found))


@frozen
class DeclaredTable:
    """A table that studies read, beside the file that is looked at."""

    name: str
    present: bool
    """A table of this name is there, and would be replaced."""
    fits: bool
    """The file has every column that the studies read of it."""
    whole: bool = True
    """The table that is there has them too."""


def _remembered(database: Path, tables: Sequence[Table]) -> dict[str, dict[str, str]]:
    return {table.name: remembered(database, table.name) for table in tables}


def declared(
    wanted: Sequence[Table],
    previewed: PreviewTable,
    present: Mapping[str, Collection[str]],
    before: Mapping[str, Mapping[str, str]],
) -> tuple[DeclaredTable, ...]:
    """Every table that studies read, those that are there among them: the file that is there may be the wrong one.
    `before`: the names that the owner gave to columns of earlier files, by table."""
    held = {column.name for column in previewed.columns}
    as_before = {name: held | {names[column] for column in names.keys() & held} for name, names in before.items()}
    return tuple(
        DeclaredTable(
            table.name,
            table.name in present,
            as_before.get(table.name, held) >= set(table.columns),
            set(present.get(table.name, ())) >= set(table.columns),
        )
        for table in wanted
    )


def suggested(choices: Sequence[DeclaredTable], name: str) -> str:
    """The table to import a file of this name into: the one that its name says, else the only one that it fits, else
    the only one that is not there or lacks columns, else the only one that studies read. Empty where the owner has to
    say which. The file's own name where no study reads anything: a table of that name would be read by nobody, and the
    studies would go on with the rows of the file before."""
    if not choices or any(choice.name == name for choice in choices):
        return name
    free = [choice for choice in choices if not (choice.present and choice.whole)]
    ways = [choice for choice in choices if choice.fits], free, choices
    return next((way[0].name for way in ways if len(way) == 1), "")
