"""The studies joined: the front page, each study, pausing, leaving, receipts."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from anon.accounting.statement import Accounting, for_owner
from anon.errors import Refused
from anon.protocols.models.chart import chart_of
from anon.protocols.models.published import PublishedModel
from anon.text.sentences import say
from anon.transparency.documents import find
from anon.transparency.fingerprint import HeadPrint, head_prints, study_code, words
from anon.wire.invite import parse_invite
from peer.predict import caution
from peer.rules.lifecycle import LAST, State
from peer.rules.limits import limits_shown
from peer.rules.packet_lifecycle import Status
from peer.rules.results import MODEL, REPORT, Results, results_of
from peer.rules.unsummed import ENDED, UNSUMMED
from peer.store.records import Study
from peer.store.summaries import parts_of
from peer.view import accounting_of
from peer.web.forms import form_text, form_whole
from peer.web.site import LIVE, SITE, Site
from peer.web.study_text import STATES, meter, other_budgets, receipt_line, sendings

routes = web.RouteTableDef()
PAUSES = ((3600, say("an hour")), (4 * 3600, say("four hours")), (86400, say("a day")), (7 * 86400, say("a week")))
_SHOWN_WINDOWS = 4


@routes.get("/")
async def home(request: web.Request) -> web.Response:
    """Where everything stands, or for a new home what to do first."""
    site = request.app[SITE]
    landing, site.landing = site.landing, ""
    if landing:
        return site.onward(request, landing)
    statuses = site.reach.status()
    asking = site.waiting_elsewhere()
    if not (statuses or site.invites or asking or site.tables() or site.paired):
        return site.page(request, "welcome.html")
    now, ledger = site.now(), site.reach.budget()
    limits = limits_shown(ledger, site.reach.policy().limits)
    stored = [site.reach.store.study(status.study) for status in statuses]
    coming = [
        (status.title, window)
        for study, status in zip(stored, statuses, strict=True)
        for window in sendings(study, status.slots, now)
        if not window.over
    ]
    coming.sort(key=lambda each: each[1].window.opens)
    return site.page(
        request,
        "home.html",
        active=[status for status in statuses if status.state not in LAST],
        ended=[status for status in statuses if status.state in LAST],
        reported=() if site.paired else await site.threads.asked(_reported, stored, now),
        states=STATES,
        invites=[(study.hex(), _title(site, study), invite.address) for study, invite in site.invites.items()],
        asking=asking,
        meter=meter(ledger) if ledger.held or not ledger.entries else None,
        others=[one for one in other_budgets(ledger, limits, parts_of(ledger, statuses)) if one.parts],
        coming=coming[:_SHOWN_WINDOWS],
        paused_studies={status.study: site.reach.paused_until(status.study) for status in statuses},
        pauses=PAUSES,
        place="/",
    )


def _reported(stored: Sequence[Study], now: float) -> set[bytes]:
    """The studies whose report can be asked for."""
    known = (study for study in stored if not study.refused)
    return {study.study for study in known if _results(study, now)[0] is Results.OUT}


def _title(site: Site, study: bytes) -> str:
    """The title of a study whose link waits; empty until it was fetched. Looking at this page fetches nothing."""
    fetched = site.jobs.get(f"invite-{study.hex()}")
    if fetched is None or not fetched.done() or fetched.cancelled() or fetched.exception() is not None:
        return ""
    title: str = fetched.result().title
    return title


@routes.post("/link")
async def link(request: web.Request) -> web.Response:
    """Another study's link."""
    site = request.app[SITE]
    invite = parse_invite(await form_text(request, "link"))
    site.invites[invite.study] = invite
    return site.onward(request, f"/invite/{invite.study.hex()}")


@routes.get("/study/{study}")
async def study(request: web.Request) -> web.Response:
    """One study: where it stands, its windows, its cost, and what can be done about it."""
    site = request.app[SITE]
    key = site.study_of(request)
    stored = site.reach.store.study(key)
    status = next(current for current in site.reach.status() if current.study == key)
    manifest = stored.manifest
    accounting, heads, unsummed = await site.threads.asked(_told_by_heads, stored)
    report, model = await site.threads.asked(_results, stored, site.now())
    over = stored.state in LAST
    published = _fetched_model(site, request, key)
    return site.page(
        request,
        "study.html",
        study=stored,
        manifest=manifest,
        status=status,
        said=(say("Ended"), ENDED) if unsummed and not over else STATES[stored.state],
        over=over,
        leaving=stored.state is State.LEAVING,
        stopped=stored.state is State.STOPPED,
        unsummed=unsummed,
        report=report,
        model=model,
        fetched=published is not None,
        chart=await site.threads.asked(chart_of, published) if published is not None else None,
        caution=caution(published) if published is not None else "",
        waits=stored.state in (State.CONSENTED, State.ENROLLED, State.CHECKED),
        queued=any(slot.status is Status.QUEUED for slot in status.slots),
        windows=sendings(stored, status.slots, site.now()),
        receipts=[receipt_line(status, slot) for slot in status.slots],
        accounting=for_owner(accounting) if accounting is not None else (),
        fingerprint=words(key),
        qr_text=study_code(key),
        heads=heads,
        study_paused=site.reach.paused_until(key),
        home_paused=site.reach.paused_until(),
        pauses=PAUSES,
        place=f"/study/{key.hex()}",
    )


def _fetched_model(site: Site, request: web.Request, study: bytes) -> PublishedModel | None:
    """The model, if the owner had it fetched since the program began. It is drawn outside of what a page refreshes."""
    fetched = site.jobs.outcome(f"model-{study.hex()}")
    if site.paired or request.headers.get(LIVE) or fetched is None:
        return None
    model: PublishedModel | None = fetched.result
    return model


def _told_by_heads(stored: Study) -> tuple[Accounting | None, tuple[HeadPrint, ...], bool]:
    """Facts that follow from the signed heads, whose number an aggregator decides: the cost, the fingerprints, and true
    for a study that ended without a sum."""
    chain = stored.chain
    return accounting_of(stored), head_prints(chain), find(chain, UNSUMMED) is not None


def _results(stored: Study, now: float) -> tuple[Results, Results]:
    """Report and model."""
    manifest, chain = stored.manifest, stored.chain
    report, model = (results_of(kind, manifest, chain, stored.state, now) for kind in (REPORT, MODEL))
    return report, model


@routes.post("/pause")
async def pause_home(request: web.Request) -> web.Response:
    """Nothing of any study for a time."""
    return await _pause(request, None, "/")


@routes.post("/resume")
async def resume_home(request: web.Request) -> web.Response:
    """Go on."""
    site = request.app[SITE]
    site.reach.resume()
    return site.onward(request, "/", say("Not paused any more. What is due is done at its own times."))


@routes.post("/study/{study}/pause")
async def pause_study(request: web.Request) -> web.Response:
    """Nothing of this study for a time."""
    key = request.app[SITE].study_of(request)
    return await _pause(request, key, f"/study/{key.hex()}")


@routes.post("/study/{study}/resume")
async def resume_study(request: web.Request) -> web.Response:
    """Go on with this study."""
    site = request.app[SITE]
    key = site.study_of(request)
    site.reach.resume(key)
    return site.onward(request, f"/study/{key.hex()}", say("Not paused any more."))


async def _pause(request: web.Request, key: bytes | None, path: str) -> web.Response:
    site = request.app[SITE]
    seconds = await form_whole(request, "seconds", "pause")
    site.reach.pause(site.now() + seconds, key)
    return site.onward(request, path, say("Paused. Meanwhile nothing leaves and nothing is asked for."))


@routes.get("/study/{study}/leave")
async def leave(request: web.Request) -> web.Response:
    """The consequences of leaving, before it is done."""
    site = request.app[SITE]
    stored = site.reach.store.study(site.study_of(request))
    status = next(current for current in site.reach.status() if current.study == stored.study)
    early = _early(site, stored.state, stored.manifest.timetable.enrol_closes)
    return site.page(
        request,
        "leave.html",
        manifest=stored.manifest,
        status=status,
        early=early,
        place=f"/study/{stored.study.hex()}",
    )


@routes.post("/study/{study}/leave")
async def left(request: web.Request) -> web.Response:
    """Leave, once it was confirmed."""
    site = request.app[SITE]
    key = site.study_of(request)
    if await form_text(request, "answer") != "leave":
        raise Refused(say("you did not confirm; nothing was changed"))
    await site.peer.leave(key)
    return site.onward(request, f"/study/{key.hex()}", say("You left this study."))


def _early(site: Site, state: State, closes: int) -> bool:
    return state in (State.CONSENTED, State.ENROLLED) and site.now() < closes


@routes.get("/history")
async def history(request: web.Request) -> web.Response:
    """Every study that was joined, and a receipt for each packet."""
    site = request.app[SITE]
    statuses = site.reach.status()
    return site.page(
        request,
        "history.html",
        studies=statuses,
        states=STATES,
        receipts=[receipt_line(status, slot) for status in statuses for slot in status.slots],
    )
