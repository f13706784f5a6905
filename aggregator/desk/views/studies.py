"""The desk's pages. Who may ask is decided before (`anon.page.guard`); what may be shown, in `facts`."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from aggregator.app import AggregatorApp
from aggregator.audit import audit_documents
from aggregator.desk import editor as editing
from aggregator.desk import study_view as facts
from aggregator.desk.archive import archive
from aggregator.desk.metrics import CONTENT_TYPE, exposition
from aggregator.desk.openapi import desk_document, public_document
from aggregator.desk.rendering import environment, secret, static
from aggregator.desk.routes import ROUTES
from aggregator.intake.workers import Workers
from aggregator.lab.planning.forecast import Expected, forecast
from aggregator.lab.tested_report import full_report
from aggregator.network.onion_key import onion_address
from aggregator.study.live import LiveStudy
from anon.errors import AnonmlError, Malformed, Refused
from anon.page.gate import DOCUMENT_POLICY, Gate
from anon.page.guard import form_token
from anon.page.jobs import Jobs
from anon.transparency.documents import encode_chain, find
from anon.transparency.fingerprint import study_code
from anon.wire.addresses import is_loopback

MOST_INVITES = 1000
QR_INVITES = 30
"""So many invites at once are also drawn as codes."""
ONION, LOOPBACK = "onion", "loopback"
LARGEST_FORM = 64 * 1024 * 1024

Page = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Pages:
    """The pages of one aggregator, which the same process serves to peers."""

    def __init__(self, aggregator: AggregatorApp, gate: Gate, origin: str, processes: int = 1) -> None:
        self.jobs = Jobs()
        self._workers = Workers(processes)  # not those that verify packets: they must not wait for an audit
        self._aggregator = aggregator
        self._gate = gate
        self._origin = origin
        self._estimates = facts.Estimates()
        self._templates = environment()

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

    def refusal(self, status: int, reason: str) -> web.Response:
        """The page for a request that is not answered."""
        return self._html("refused.html", None, status, reason=reason, code=status)

    async def studies(self, request: web.Request) -> web.Response:
        """All studies."""
        all_facts = [await facts.facts_of(live) for live in self._aggregator.studies()]
        key = self._aggregator.home.public_key
        unread = self._aggregator.unread()
        return self._html(
            "studies.html", request, studies=all_facts, unread=unread, address=self._serving, key=key.hex()
        )

    async def editor(self, request: web.Request) -> web.Response:
        """The study editor with the last draft."""
        return await self._edited(request, editing.draft(self._home))

    async def check(self, request: web.Request) -> web.Response:
        """Check a study file with scripts off; the text is kept for the next visit."""
        text = await _field(request, "text")
        editing.keep_draft(self._home, text)
        return self._html("editor.html", request, text=text, linted=await self._judged(text))

    async def lint(self, request: web.Request) -> web.Response:
        """The same as a fragment."""
        text = await _field(request, "text")
        return self._html("linted.html", request, linted=await asyncio.to_thread(editing.lint_text, text))

    async def confirm(self, request: web.Request) -> web.Response:
        """Show what publishing would fix for good, and ask."""
        text = await _field(request, "text")
        editing.keep_draft(self._home, text)
        linted = await self._judged(text)
        if not linted.ok:
            return self._html("editor.html", request, text=text, linted=linted)
        onion = not is_loopback(self._serving)
        return self._html("confirm.html", request, text=text, linted=linted, manifest=linted.manifest, onion=onion)

    async def publish(self, request: web.Request) -> web.Response:
        """Publish; the clock of the study starts."""
        text = await _field(request, "text")
        linted = await asyncio.to_thread(editing.lint_text, text)
        if linted.proposal is None:
            return self._html("editor.html", request, text=text, linted=linted)
        reach = await _field(request, "reach")
        if reach not in (ONION, LOOPBACK):
            raise Malformed(f"reach: expected {ONION} or {LOOPBACK}")
        named = onion_address(self._aggregator.home, os.urandom) if reach == ONION else ""
        manifest = await self._aggregator.create_study(linted.proposal, named)
        editing.forget_draft(self._home)
        raise web.HTTPSeeOther(f"/studies/{manifest.study_id.hex()}")

    async def study(self, request: web.Request) -> web.Response:
        """One study."""
        live = self._live(request)
        return self._html(
            "study.html",
            request,
            facts=await facts.facts_of(live),
            estimates=await self._estimates.of(live),
            reached=await facts.reached_by(live),
            guessing=await facts.is_guessing(live),
            statement=await facts.statement_of(live),
            audited=self.jobs.outcome(_job(live, "audit")),
            expected=self.jobs.outcome(_job(live, "forecast")),
            code=study_code(live.study),
            address=self._address(live),
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

    async def invites(self, request: web.Request) -> web.Response:
        """Draw invites. They are shown by this answer and kept nowhere."""
        live = self._live(request)
        wanted, address = await _field(request, "count"), (await _field(request, "address")).strip()
        if not wanted.isascii() or not wanted.isdigit() or not 1 <= int(wanted[:9]) <= MOST_INVITES:
            raise Malformed(f"count: expected a whole number from 1 to {MOST_INVITES}")
        if live.phase != "enrolling":
            raise Refused(f"enrolment of this study has closed ({live.state}); an invite would admit nobody")
        count = int(wanted) if live.manifest.cohort.admission == "invite" else 1
        links = [link.link() for link in await self._aggregator.create_invites(live.study, count, address)]
        return self._html("invites.html", request, live=live, links=links, with_codes=len(links) <= QR_INVITES)

    async def allow(self, request: web.Request) -> web.Response:
        """Put keys on a study's list."""
        live = self._live(request)
        if live.manifest.cohort.admission != "allow-list":
            raise Refused(f'admission is "{live.manifest.cohort.admission}", not by a list; nothing to allow')
        try:
            keys = [bytes.fromhex(key) for key in (await _field(request, "keys")).split()]
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
        return _document(await _body(self._live(request), "report"))

    async def evaluate(self, request: web.Request) -> web.Response:
        """The report again, with what the model does on a test set that staff give. It is not kept."""
        live = self._live(request)
        return _document((await full_report(live, self._workers, await _field(request, "people"))).encode())

    async def model(self, request: web.Request) -> web.Response:
        """The published model."""
        return web.Response(body=await _body(self._live(request), "model"), content_type="application/json")

    async def export(self, request: web.Request) -> web.Response:
        """A ZIP of what `anonml aggregator export` writes."""
        live = self._live(request)
        body = await asyncio.to_thread(archive, live.chain, await _bodies(live))
        named = {"Content-Disposition": f'attachment; filename="study-{live.study.hex()[:8]}.zip"'}
        return web.Response(body=body, content_type="application/zip", headers=named)

    async def sign_out(self, request: web.Request) -> web.Response:
        """End the session of this browser."""
        self._gate.leave(request.cookies[self._gate.cookie])
        return self.refusal(200, "signed out; `anonml aggregator desk` prints a new link")

    async def metrics(self, _: web.Request) -> web.Response:
        """Prometheus metrics."""
        all_facts = [await facts.facts_of(live) for live in self._aggregator.studies()]
        return web.Response(body=exposition(all_facts).encode(), headers={"Content-Type": CONTENT_TYPE})

    async def openapi(self, _: web.Request) -> web.Response:
        """The desk's OpenAPI document."""
        return web.Response(text=json.dumps(desk_document(ROUTES, self._origin)), content_type="application/json")

    async def aggregator_openapi(self, _: web.Request) -> web.Response:
        """The OpenAPI document of what peers ask."""
        return web.Response(text=json.dumps(public_document()), content_type="application/json")

    async def style(self, _: web.Request) -> web.Response:
        """The style sheet."""
        return web.Response(text=static("desk.css"), content_type="text/css")

    async def script(self, _: web.Request) -> web.Response:
        """The live parts."""
        return web.Response(text=static("desk.js"), content_type="text/javascript")

    @property
    def _serving(self) -> str:
        return self._aggregator.home.served_at()

    def _address(self, live: LiveStudy) -> str:
        """Where peers of a study go: where its home is served now, if they do, or else the address that it names."""
        serving, named = self._serving, live.manifest.address
        return serving if serving and (is_loopback(serving) or serving == named) else named

    @property
    def _home(self) -> Path:
        return self._aggregator.home.path

    def _live(self, request: web.Request) -> LiveStudy:
        try:
            return self._aggregator.study(bytes.fromhex(request.match_info["study"]))
        except Refused:
            raise web.HTTPNotFound(reason="no such study here") from None

    async def _judged(self, text: str) -> editing.Linted:
        """The text's faults, or what it would ask with its outlook."""
        linted = await asyncio.to_thread(editing.lint_text, text)
        return await self._workers.run(editing.with_outlook, linted)

    async def _edited(self, request: web.Request, text: str) -> web.Response:
        linted = await asyncio.to_thread(editing.lint_text, text)
        return self._html("editor.html", request, text=text, linted=linted)

    def _html(self, template: str, request: web.Request | None, status: int = 200, **known: Any) -> web.Response:
        token = "" if request is None else form_token(request, self._gate)
        body = self._templates.get_template(template).render(
            form_token=token, secret=partial(secret, token), now=time.time(), **known
        )
        return web.Response(text=body, status=status, content_type="text/html")

    def _explained(self) -> Middleware:
        @web.middleware
        async def explained(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                return await handler(request)
            except AnonmlError as fault:
                return self.refusal(400 if isinstance(fault, Malformed) else 409, str(fault))

        return explained


async def _field(request: web.Request, name: str) -> str:
    """A field of the form, or the text of an uploaded file. Raises `Malformed`."""
    value = (await request.post()).get(name)
    if isinstance(value, web.FileField):
        try:
            return value.file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Malformed(f"{name}: expected a text file in UTF-8") from None
    if not isinstance(value, str):
        raise Malformed(f"{name}: missing from the form; load the page again")
    return value.replace("\r\n", "\n")


def _document(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="text/html", charset="utf-8",
                        headers={"Content-Security-Policy": DOCUMENT_POLICY})


async def _body(live: LiveStudy, kind: str) -> bytes:
    head = find(live.chain, kind)
    if head is None:
        raise Refused(f"no {kind} yet; it is published by itself once collection has closed")
    return await live.body_of(head)


async def _bodies(live: LiveStudy) -> dict[int, bytes]:
    bodies = {signed.head.number: await live.document(signed.head.number) for signed in live.chain}
    return {number: body for number, body in bodies.items() if body is not None}


def _job(live: LiveStudy, name: str) -> str:
    return f"{name}-{live.study.hex()}"


async def _audit(live: LiveStudy, workers: Workers) -> tuple[str, ...]:
    chain, bodies = encode_chain(live.chain), await _bodies(live)
    key = live.tools.home.public_key
    return tuple((await workers.run(audit_documents, chain, bodies, key)).lines())


async def _forecast(live: LiveStudy, workers: Workers) -> Expected:
    people = facts.roster_length(live) or live.manifest.cohort.minimum
    return await workers.run(forecast, live.manifest_bytes, people)

