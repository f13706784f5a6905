"""The desk's pages. Who may ask is decided before (`anon.kit.page.guard`); what may be shown, in `facts`."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from aggregator.app import AggregatorApp
from aggregator.audit import audit as re_verify
from aggregator.audit.exporting import export_study
from aggregator.desk import study_view as facts
from aggregator.desk.archive import archive
from aggregator.desk.metrics import CONTENT_TYPE, exposition
from aggregator.desk.rendering import static
from aggregator.desk.routes import ROUTES
from aggregator.desk.views.class_size import BEGUN, ClassSizePages
from aggregator.desk.views.desk_page import field_of, optional_field
from aggregator.desk.views.form import FormPages
from aggregator.desk.views.invites import MOST_INVITES, InvitePages
from aggregator.intake.workers import Workers
from aggregator.lab.planning.forecast import ModelOutlook, forecast
from aggregator.lab.tested_report import full_report
from aggregator.rules.counters import STEP
from aggregator.rules.faults import DatabaseAway
from aggregator.study.handout import limits, limits_to_change, teller_notice
from aggregator.study.live import LiveStudy
from anon.errors import AnonmlError, Malformed, Refused
from anon.kit.page.gate import DOCUMENT_POLICY, Gate
from anon.kit.page.jobs import Jobs
from anon.transparency.documents import find
from anon.transparency.fingerprint import study_code, words
from anon.wire.addresses import is_loopback

LARGEST_FORM = 64 * 1024 * 1024

Page = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Pages(FormPages, InvitePages, ClassSizePages):
    """The pages of one aggregator, which the same process serves to peers."""

    def __init__(self, aggregator: AggregatorApp, gate: Gate, origin: str, processes: int = 1) -> None:
        super().__init__(aggregator, gate, processes)
        self.jobs = Jobs()
        self._origin = origin
        self._estimates = facts.Estimates()

    def add_to(self, app: web.Application) -> None:
        """Every route of the table, each with the method of its name."""
        app.middlewares.append(self._explained())
        for route in ROUTES:
            page: Page = getattr(self, route.name)
            app.router.add_route(route.method, route.path.replace("{study}", "{study:[0-9a-f]{64}}"), page)

    async def close(self) -> None:
        """End what is under way."""
        await self.jobs.close()
        self._workers.close()

    async def studies(self, request: web.Request) -> web.Response:
        """All studies."""
        all_facts = [await facts.facts_of(live) for live in self._aggregator.studies()]
        key = self._aggregator.home.public_key
        unread = self._aggregator.unread()
        return self._html(
            "studies.html", request, studies=all_facts, unread=unread, drafts=self._drafts.all(), address=self._serving,
            key=key.hex(), key_words=words(key),
            here=is_loopback(self._serving) if self._serving else False, asked=BEGUN,
        )

    async def study(self, request: web.Request) -> web.Response:
        """One study."""
        live = self._live(request)
        return self._html(
            "study.html",
            request,
            facts=await facts.facts_of(live),
            estimates=await self._estimates.of(live),
            reached=await facts.part_scores_of(live),
            fewest=STEP,
            guessing=await facts.is_guessing(live),
            statement=await facts.statement_of(live),
            audited=self.jobs.outcome(_job(live, "audit")),
            expected=self.jobs.outcome(_job(live, "forecast")),
            code=study_code(live.study),
            address=self._address(live),
            limits=limits(self._address(live), live.manifest, desk=True) if self._address(live) else "",
            lower=limits_to_change(live.manifest),
            notice=teller_notice(live.manifest),
            again=self._drafts.of_study(live.study.hex()) is not None,
            most_invites=MOST_INVITES,
        )

    async def roster(self, request: web.Request) -> web.Response:
        """Who is in the roster, by key. No count of packets and no tag stands here."""
        live = self._live(request)
        keys = await facts.roster_of(live)
        return self._html("roster.html", request, live=live, keys=keys)

    async def fingerprints(self, request: web.Request) -> web.Response:
        """The words of every signed document, to put where everybody can compare them."""
        live = self._live(request)
        heads, code = facts.fingerprints_of(live), study_code(live.study)
        return self._html("fingerprints.html", request, live=live, heads=heads, code=code)

    async def allow(self, request: web.Request) -> web.Response:
        """Put keys on a study's list."""
        live = self._live(request)
        if live.manifest.cohort.admission != "allow-list":
            raise Refused(f'admission is "{live.manifest.cohort.admission}", not by a list; nothing to allow')
        try:
            keys = [bytes.fromhex(key) for key in (await field_of(request, "keys")).split()]
        except ValueError:
            raise Malformed("keys: expected 64 hexadecimal digits each, as `anonml peer key` prints them") from None
        await self._aggregator.list_keys(live.study, keys)
        raise web.HTTPSeeOther(f"/studies/{live.study.hex()}")

    async def audit(self, request: web.Request) -> web.Response:
        """Begin an audit in a worker."""
        live = self._live(request)
        self.jobs.begin_anew(_job(live, "audit"), lambda: _audit(live, self._workers))
        raise web.HTTPSeeOther(f"/studies/{live.study.hex()}#audit")

    async def forecast(self, request: web.Request) -> web.Response:
        """Begin a forecast for those who enrolled, or for the minimum."""
        live = self._live(request)
        self.jobs.begin_anew(_job(live, "forecast"), lambda: _forecast(live, self._workers))
        raise web.HTTPSeeOther(f"/studies/{live.study.hex()}#accuracy")

    async def report(self, request: web.Request) -> web.Response:
        """The published report, in a page that may do nothing."""
        live = self._live(request)
        return _document(await _body(live, "report"), _saved(live) if request.query.get("save") else "")

    async def evaluate(self, request: web.Request) -> web.Response:
        """The report again, with what the model does on a test set that staff give. It is not kept."""
        live = self._live(request)
        body = (await full_report(live, self._workers, await field_of(request, "people"))).encode()
        return _document(body, _saved(live) if await optional_field(request, "save") else "")

    async def model(self, request: web.Request) -> web.Response:
        """The published model."""
        return web.Response(body=await _body(self._live(request), "model"), content_type="application/json")

    async def export(self, request: web.Request) -> web.Response:
        """A ZIP of what `anonml aggregator export` writes."""
        live = self._live(request)
        with tempfile.TemporaryDirectory() as scratch:
            await export_study(live, folder := Path(scratch) / "study")
            packed = tempfile.TemporaryFile()  # noqa: SIM115  (its response closes it)
            await asyncio.to_thread(archive, folder, packed)
        packed.seek(0)
        named = {"Content-Disposition": f'attachment; filename="study-{live.study.hex()[:8]}.zip"'}
        return web.Response(body=packed, content_type="application/zip", headers=named)

    async def sign_out(self, request: web.Request) -> web.Response:
        """End the session of this browser."""
        self._gate.leave(request.cookies[self._gate.cookie])
        return self.refusal(200, "signed out; `anonml aggregator desk` prints a new link")

    async def metrics(self, _: web.Request) -> web.Response:
        """Prometheus metrics."""
        all_facts = [await facts.facts_of(live) for live in self._aggregator.studies()]
        told = exposition(all_facts, self._aggregator.unread(), await self._aggregator.led())
        return web.Response(body=told.encode(), headers={"Content-Type": CONTENT_TYPE})

    async def openapi(self, _: web.Request) -> web.Response:
        """The desk's OpenAPI document, whose module is loaded when somebody asks."""
        from aggregator.desk.openapi import desk_document

        return web.Response(text=json.dumps(desk_document(ROUTES, self._origin)), content_type="application/json")

    async def aggregator_openapi(self, _: web.Request) -> web.Response:
        """The OpenAPI document of what peers ask."""
        from aggregator.desk.openapi import public_document

        return web.Response(text=json.dumps(public_document()), content_type="application/json")

    async def style(self, _: web.Request) -> web.Response:
        """The style sheet."""
        return web.Response(text=static("desk.css"), content_type="text/css")

    async def script(self, _: web.Request) -> web.Response:
        """The live parts."""
        return web.Response(text=static("desk.js"), content_type="text/javascript")

    def _explained(self) -> Middleware:
        @web.middleware
        async def explained(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                return await handler(request)
            except AnonmlError as fault:
                status = 400 if isinstance(fault, Malformed) else 503 if isinstance(fault, DatabaseAway) else 409
                return self.refusal(status, str(fault))

        return explained


def _document(body: bytes, saved: str = "") -> web.Response:
    """A page that may do nothing; `saved`: the name under which the browser keeps it as a file instead."""
    headers = {"Content-Security-Policy": DOCUMENT_POLICY}
    if saved:
        headers["Content-Disposition"] = f'attachment; filename="{saved}"'
    return web.Response(body=body, content_type="text/html", charset="utf-8", headers=headers)


def _saved(live: LiveStudy) -> str:
    return f"report-{live.study.hex()[:8]}.html"


async def _body(live: LiveStudy, kind: str) -> bytes:
    head = find(live.chain, kind)
    if head is None:
        raise Refused(f"no {kind} yet; it is published by itself once collection has closed")
    return await live.body_of(head)


def _job(live: LiveStudy, name: str) -> str:
    return f"{name}-{live.study.hex()}"


async def _audit(live: LiveStudy, workers: Workers) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as scratch:
        await export_study(live, folder := Path(scratch) / "study")
        return tuple((await workers.run(re_verify, folder, live.tools.home.public_key)).lines())


async def _forecast(live: LiveStudy, workers: Workers) -> ModelOutlook:
    people = live.rostered or live.manifest.cohort.minimum
    return await workers.run(forecast, live.manifest_bytes, people)

