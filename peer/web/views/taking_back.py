"""Deleting a table, and erasing everything: what it means first, then a form that does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from aiohttp import web

from anon.errors import Refused
from anon.text.foreign import Quoted
from anon.text.sentences import joined, listed, say, say_many
from peer.data.deleting import demand_table, rows_of
from peer.run import taking_back_words as words
from peer.run.taking_back import Choice, TakingBack
from peer.store.records import EvaluatingStudy, Study
from peer.web.forms import form_text
from peer.web.site import SITE, Site

routes = web.RouteTableDef()
T = TypeVar("T")
_KEPT = say("you did not confirm; nothing was deleted")


@routes.get("/data/delete/{table}")
async def delete(request: web.Request) -> web.Response:
    """The consequences of deleting a table, and the choice for the studies that read it."""
    site, table = request.app[SITE], request.match_info["table"]
    demand_table(site.data_path, table)
    with site.peer.taking_back() as mine:
        concerned = mine.concerned(table)
    return site.page(
        request,
        "delete.html",
        table=table,
        rows=await site.threads.asked(rows_of, site.data_path, table),
        words=words,
        choices=_choices(concerned),
        studies=[(study.study.hex(), study.manifest.title, words.standing(study)) for study in concerned],
    )


@routes.post("/data/delete/{table}")
async def deleted(request: web.Request) -> web.Response:
    """Delete it."""
    site, table = request.app[SITE], request.match_info["table"]
    if await form_text(request, "answer") != "delete":
        raise Refused(_KEPT)
    choice = _choice(await form_text(request, "studies"))
    concerned = await _alone(site, lambda mine: mine.delete_table(table, choice))
    for look in site.jobs.names("look-"):  # its first rows are those of a copy that is gone
        site.forget(look)
    notice = [say("The table {table} is deleted.", table=Quoted(table))]
    if choice is Choice.LEAVE and concerned:
        number = len(concerned)
        left = say_many("You left the study that read it.", "You left the {count} studies that read it.", number)
        notice.append(left)
    return site.onward(request, "/data", joined(notice, " "))


@routes.get("/data/erase")
async def erase(request: web.Request) -> web.Response:
    """The consequences of erasing everything."""
    site = request.app[SITE]
    with site.peer.taking_back() as mine:
        under_way, titles = mine.under_way(), mine.titles()
    told = words.told(under_way, site.now()) and not site.peer.store.retired()
    return site.page(request, "erase.html", words=words, titles=titles, told=told, tables=site.tables())


@routes.post("/data/erase")
async def erased(request: web.Request) -> web.Response:
    """Erase it. Files on their way into tables go first, whoever reads them."""
    site = request.app[SITE]
    if await form_text(request, "answer") != "erase":
        raise Refused(_KEPT)
    tell = await form_text(request, "tell") != "silent"
    site.clear()
    result = await _alone(site, lambda mine: mine.erase(tell))
    notice = [say("Your data are erased. You take part in no study any more.")]
    if result.leaving:
        notice.append(say("This program now tells the aggregators that you left."))
    if result.unknown:
        names = listed(result.unknown)
        notice.append(say("Left alone, for it is no part of this program: {names}.", names=names))
    return site.onward(request, "/", joined(notice, " "))


async def _alone(site: Site, take: Callable[[TakingBack], T]) -> T:
    """In a thread, while no study runs. Work that is under way just now is waited for, not broken off."""
    _demand_nothing_is_worked_out(site)

    def taken() -> T:
        with site.peer.taking_back() as mine:
            return take(mine)

    async with site.supervisor.halted():
        return await site.threads.asked(taken)


def _demand_nothing_is_worked_out(site: Site) -> None:
    """Breaking an evaluation off would make every value of its study missing, of other tables too."""
    for active in site.peer.store.active():
        study = site.peer.store.study(active)
        if isinstance(study, EvaluatingStudy) and site.now() < study.evaluation.due:
            raise Refused(say("your answers to a study are being worked out right now; in a minute, try again"))


def _choices(concerned: Sequence[Study]) -> list[tuple[str, str]]:
    """The choices that differ: without answers that are worked out there is nothing to erase of them."""
    worked_out = any(study.has_answers for study in concerned)
    offered = [choice for choice in Choice if worked_out or choice is not Choice.MISSING]
    return [(choice.value, words.CHOICES[choice]) for choice in offered]


def _choice(text: str) -> Choice:
    try:
        return Choice(text or Choice.GO_ON)
    except ValueError:
        raise Refused(say("choose what becomes of the studies; nothing was deleted")) from None
