"""The pages of a study that is not published yet: the editor, what it would ask, and the question before publishing."""

from __future__ import annotations

import asyncio
import os
import shlex
from contextlib import suppress
from hashlib import sha256

from aiohttp import web
from attrs import evolve

from aggregator.app import AggregatorApp
from aggregator.desk import editor as editing
from aggregator.desk.drafts import Drafts
from aggregator.desk.form import BEGINNING, expected_people, fields_of, rehearsed
from aggregator.desk.student_page import page_of
from aggregator.desk.views.desk_page import DeskPage, field_of, optional_field
from aggregator.lab.planning.outlook import BeliefOutlook, Outlook
from aggregator.network.onion_address import onion_addresses
from aggregator.study.handout import limits_to_change
from anon.errors import Malformed
from anon.kit.page.gate import Gate
from anon.protocols.tellers import PresentedTeller
from anon.study.manifest import Manifest
from anon.study.proposal import Proposal
from anon.wire.addresses import is_loopback

LONGEST_TRY = 90.0
"""Seconds."""
MOST_SAMPLES = 4
"""Sample files that are kept in memory at once."""
ONION, LOOPBACK = "onion", "loopback"


class DraftPages(DeskPage):
    """From the first line to the published study."""

    def __init__(self, aggregator: AggregatorApp, gate: Gate, processes: int) -> None:
        super().__init__(aggregator, gate, processes)
        self._outlooks: dict[tuple[Proposal, int | None, str], Outlook | BeliefOutlook | None] = {}
        self._samples: dict[str, str] = {}
        """The text of each draft's newest sample file, in memory alone."""
        self._newest = 0
        self._trying = asyncio.Lock()

    @property
    def _drafts(self) -> Drafts:
        return Drafts(self._home)

    async def editor(self, request: web.Request) -> web.Response:
        """The study editor with a draft, or with the commented example."""
        draft = request.query.get("draft", "")
        text = self._drafts.text(Drafts.demand(draft)) if draft else None
        if draft and text is None:
            raise web.HTTPNotFound(reason="no such draft here")
        text = editing.example() if text is None else text
        linted = await asyncio.to_thread(editing.lint_text, text)
        return self._editor(request, text, linted, draft or Drafts.new())

    async def check(self, request: web.Request) -> web.Response:
        """Check a study file with scripts off; the text is kept."""
        text, draft = await self._kept(request)
        return self._editor(request, text, await self._judged(text, draft, self._people(draft)), draft)

    async def lint(self, request: web.Request) -> web.Response:
        """The same as a fragment, while somebody types."""
        text, draft = await self._kept(request)
        return self._html("linted.html", request, linted=await self._linted(text, draft))

    async def confirm(self, request: web.Request) -> web.Response:
        """Show what publishing would fix for good, and ask. A forecast that is not there yet comes by itself."""
        text, draft = await self._kept(request)
        linted = await self._linted(text, draft)
        if linted.manifest is None or linted.proposal is None:
            return self._editor(request, text, linted, draft)
        return await self._confirmed(request, text, linted, linted.proposal, linted.manifest, draft)

    async def outlook(self, request: web.Request) -> web.Response:
        """The forecast of a study file as a fragment, for the page before publishing."""
        text, draft = await self._kept(request)
        return self._html("forecast.html", request, linted=await self._judged(text, draft, self._people(draft)))

    async def _confirmed(
        self,
        request: web.Request,
        text: str,
        linted: editing.LintResult,
        proposal: Proposal,
        manifest: Manifest,
        draft: str,
    ) -> web.Response:
        places = proposal.tellers
        answers = await self._aggregator.ask_tellers(places)
        asked = [(answer, place.address) for answer, place in zip(answers, places, strict=True)]
        tellers = tuple(PresentedTeller(answer.name, answer.words, address) for answer, address in asked)
        return self._html(
            "confirm.html", request, text=text, linted=linted, manifest=manifest, draft=draft,
            onion=not is_loopback(self._serving), lower=limits_to_change(manifest),
            page=evolve(await asyncio.to_thread(page_of, manifest), tellers=tellers),
            has_form=self._drafts.fields(draft) is not None, rehearse=self._rehearsal(draft, manifest),
            asked=asked,
        )

    def _rehearsal(self, draft: str, manifest: Manifest) -> str:
        """The command that lets made-up people take part, as it is typed in any folder; empty where it would refuse."""
        if manifest.cohort.admission == "allow-list":
            return ""
        people = rehearsed(self._drafts.fields(draft) or BEGINNING)
        file, home = (shlex.quote(str(path.absolute())) for path in (self._drafts.text_path(draft), self._home))
        return f"anonml study rehearse {file} --home {home} --people {max(people, manifest.cohort.minimum)}"

    async def publish(self, request: web.Request) -> web.Response:
        """Publish; the clock of the study starts."""
        text, draft = await field_of(request, "text"), await self._draft(request)
        linted = await asyncio.to_thread(editing.lint_text, text)
        if linted.proposal is None:
            return self._editor(request, text, linted, draft)
        reach = await field_of(request, "reach")
        if reach not in (ONION, LOOPBACK):
            raise Malformed(f"reach: expected {ONION} or {LOOPBACK}")
        named = onion_addresses(self._aggregator.home, os.urandom) if reach == ONION else ""
        manifest = await self._aggregator.create_study(linted.proposal, named)
        self._drafts.published(draft, manifest.study_id.hex())
        self._samples.pop(draft, None)
        raise web.HTTPSeeOther(f"/studies/{manifest.study_id.hex()}")

    async def discard(self, request: web.Request) -> web.Response:
        """Throw a draft away."""
        self._drafts.forget(draft := Drafts.demand(await field_of(request, "draft")))
        self._samples.pop(draft, None)
        raise web.HTTPSeeOther("/")

    def _editor(self, request: web.Request, text: str, linted: editing.LintResult, draft: str) -> web.Response:
        has_form = self._drafts.fields(draft) is not None
        return self._html("editor.html", request, text=text, linted=linted, draft=draft, has_form=has_form)

    async def _draft(self, request: web.Request) -> str:
        given = await optional_field(request, "draft")
        return Drafts.demand(given) if given else Drafts.new()

    async def _kept(self, request: web.Request) -> tuple[str, str]:
        """The form's text, kept under the id of its draft unless it is the untouched example, and the id."""
        text, draft = await field_of(request, "text"), await self._draft(request)
        if text.strip() != editing.example().strip():
            self._drafts.keep_text(draft, text)  # here, so that texts are kept in the order in which they came
        return text, draft

    def _keep_sample(self, draft: str, text: str) -> None:
        """Keep the file of a draft for its forecasts, and those of the few drafts before it."""
        self._samples.pop(draft, None)
        self._samples[draft] = text
        while len(self._samples) > MOST_SAMPLES:
            del self._samples[next(iter(self._samples))]

    def _people(self, draft: str) -> int | None:
        """How many people the form of a draft expects."""
        with suppress(ValueError):
            return expected_people(fields_of(self._drafts.fields(draft) or {}))
        return None

    async def _judged(self, text: str, draft: str, people: int | None = None) -> editing.LintResult:
        """The text's faults, or what it would ask with its outlook, of the draft's sample file where there is one.

        One study is tried at a time, and of those that wait the newest alone: a slider asks more often than a study
        can be tried. Without an outlook for one that was overtaken, or takes longer than `LONGEST_TRY`.
        """
        linted = await self._without_outlook(text, draft, people)
        if linted.proposal is None or (key := self._key(linted, linted.proposal)) in self._outlooks:
            return self._known(linted)
        self._newest += 1
        mine = self._newest
        async with self._trying:
            if mine == self._newest and key not in self._outlooks:
                with suppress(TimeoutError):
                    judged = await asyncio.wait_for(self._workers.run(editing.with_outlook, linted), LONGEST_TRY)
                    self._outlooks[key] = judged.outlook
        return self._known(linted)

    async def _linted(self, text: str, draft: str) -> editing.LintResult:
        """The same at once, with an outlook that is known already."""
        return self._known(await self._without_outlook(text, draft, self._people(draft)))

    async def _without_outlook(self, text: str, draft: str, people: int | None) -> editing.LintResult:
        linted = await asyncio.to_thread(editing.lint_text, text)
        return evolve(linted, people=people, sample=self._samples.get(draft, ""))

    @staticmethod
    def _key(linted: editing.LintResult, proposal: Proposal) -> tuple[Proposal, int | None, str]:
        return proposal, linted.people, sha256(linted.sample.encode()).hexdigest()

    def _known(self, linted: editing.LintResult) -> editing.LintResult:
        if linted.proposal is None:
            return linted
        return evolve(linted, outlook=self._outlooks.get(self._key(linted, linted.proposal)))
