"""The pages of the form for a study: columns from a sample, what to expect while the slider moves, the study file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

from aiohttp import web

from aggregator.desk import editor as editing
from aggregator.desk import form, form_file
from aggregator.desk.drafts import Drafts
from aggregator.desk.form_faults import COLUMN_LABELS, LABELS, STEPS, form_faults
from aggregator.desk.form_file import TABLE, even_cuts, length_of, text_of
from aggregator.desk.student_page import reading_of
from aggregator.desk.timeline import in_words
from aggregator.desk.views.desk_page import field_of, optional_field
from aggregator.desk.views.drafts import DraftPages
from aggregator.lab.dry_round import DryRound, tried
from aggregator.lab.sample_file import SampleColumn, sample_columns
from aggregator.study.handout import TellerRequest, wheel
from anon.errors import InvalidValue, Malformed
from anon.protocols.tellers import tellers_can
from anon.study.features import USUAL_COHORT
from anon.study.proposal import TellerPlace
from anon.tables.columns import sanitised
from anon.wire.addresses import is_loopback

NOT_ASKED: Final = DryRound(())


class FormPages(DraftPages):
    """Each page keeps the form's fields as a draft."""

    async def form(self, request: web.Request) -> web.Response:
        """The form of a draft, one like that of a published study, or an empty one."""
        draft, like = request.query.get("draft", ""), request.query.get("like", "")
        fields = self._drafts.fields(Drafts.demand(draft)) if draft else None
        if not draft and like in {live.study.hex() for live in self._aggregator.studies()}:
            fields = self._drafts.of_study(like)
        if (draft or like) and fields is None:
            raise web.HTTPNotFound(reason="no such draft here")
        return await self._form(request, draft or Drafts.new(), form.fields_of(fields or {}))

    async def form_columns(self, request: web.Request) -> web.Response:
        """The form with the columns of a sample file, and one that was named."""
        fields, draft = await self._kept_fields(request)
        if named := (await optional_field(request, "new_column")).strip():
            column = SampleColumn(sanitised(named), False)
            fields = form.with_columns({**fields, "read": f"The column {column.name} was added."}, [column])
            self._drafts.keep_fields(draft, fields)
        return await self._form(request, draft, fields, answered=True)

    async def form_check(self, request: web.Request) -> web.Response:
        """The form with what to expect of the study."""
        fields, draft = await self._kept_fields(request)
        return await self._form(request, draft, fields, await self._expected(fields, draft), answered=True)

    async def form_tellers(self, request: web.Request) -> web.Response:
        """The form with the words of each teller that answers, or why it does not."""
        fields, draft = await self._kept_fields(request)
        asked = DryRound(await self._aggregator.ask_tellers(_places(fields)))
        return await self._form(request, draft, fields, answered=True, asked=asked)

    async def form_round(self, request: web.Request) -> web.Response:
        """The form with what became of a round of made-up people."""
        fields, draft = await self._kept_fields(request)
        places = _places(fields)
        asked = await tried(places, self._aggregator) if places else NOT_ASKED
        return await self._form(request, draft, fields, answered=True, asked=asked)

    async def form_outlook(self, request: web.Request) -> web.Response:
        """The same as a fragment, while the slider moves."""
        fields, draft = await self._kept_fields(request)
        linted = await self._expected(fields, draft)
        return self._html("outlook.html", request, **_told(fields, linted))

    async def form_reading(self, request: web.Request) -> web.Response:
        """The faults of each step and the student's page, as a fragment while somebody types."""
        fields, _ = await self._kept_fields(request)
        return self._html("reading.html", request, **await _read_draft(fields))

    async def form_mail(self, request: web.Request) -> web.Response:
        """The mail to those who are asked to be a teller."""
        fields, draft = await self._kept_fields(request)
        length, served_here = length_of(fields), bool(self._serving) and is_loopback(self._serving)
        asked = TellerRequest(
            fields["title"],
            fields["contact"],
            self._aggregator.home.public_key.hex(),
            [name for name, _ in form.tellers_in(fields)],
            "" if length is None or not form_file.asked_about(fields) else in_words(length),
            time.time() + (length or 0),
            form_file.RETENTION_DAYS // 2,
            fields["minimum"].strip(),
            fields["epsilon"],
            served_here or fields["pace"] == form.TRIAL,
        )
        lacks = [(name, LABELS[name]) for name in ("title", "contact") if not fields[name].strip()]
        return self._html("teller_mail.html", request, draft=draft, asked=asked, lacks=lacks, served_here=served_here,
                          wheel=wheel())

    async def form_text(self, request: web.Request) -> web.Response:
        """Write the study file, and open it in the editor."""
        fields, draft = await self._kept_fields(request)
        self._drafts.keep_written(draft, text_of(fields))
        raise web.HTTPSeeOther(f"/editor?draft={draft}")

    async def form_publish(self, request: web.Request) -> web.Response:
        """Write the study file, and show what publishing it would fix; or the form with its faults."""
        fields, draft = await self._kept_fields(request)
        text = text_of(fields)
        linted = await self._linted(text, draft)
        if linted.proposal is None or linted.manifest is None:
            return await self._form(request, draft, fields, linted, answered=True)
        self._drafts.keep_written(draft, text)
        return await self._confirmed(request, text, linted, linted.proposal, linted.manifest, draft)

    async def _kept_fields(self, request: web.Request) -> tuple[dict[str, str], str]:
        """The fields, with the columns of a sample file, whichever button sent it."""
        draft, fields = Drafts.demand(await field_of(request, "draft")), form.fields_of(await request.post())
        if (text := await _sample(request)).strip():
            found = await asyncio.to_thread(sample_columns, text)
            fields = form.with_columns({**fields, "read": _read(text, found)}, found)
            self._keep_sample(draft, text)
        self._drafts.keep_fields(draft, fields)
        return fields, draft

    async def _expected(self, fields: dict[str, str], draft: str) -> editing.LintResult:
        try:
            people = form.expected_people(fields)
        except ValueError:
            people = None
        return await self._judged(text_of(form.with_unnamed_tellers(fields)), draft, people)

    async def _form(
        self,
        request: web.Request,
        draft: str,
        fields: dict[str, str],
        linted: editing.LintResult | None = None,
        answered: bool = False,
        asked: DryRound = NOT_ASKED,
    ) -> web.Response:
        return self._html(
            "form.html",
            request,
            draft=draft,
            fields=fields,
            columns=form.columns_of(fields),
            labels=LABELS,
            steps=[head for head, _ in STEPS],
            column_labels=COLUMN_LABELS,
            yes_among=form.yes_among,
            trial=form.TRIAL_FIELDS,
            begun=form.BEGINNING,
            table=TABLE,
            tellers_can=tellers_can(spare=False),
            cuts_by_itself=lambda column: " ".join(f"{cut:g}" for cut in even_cuts(column)),
            share=form.share_in_sample(fields),
            usual_minimum=USUAL_COHORT,
            answered=answered,
            asked=asked,
            edited=self._drafts.edited(draft),
            **_told(fields, linted),
            **await _read_draft(fields),
        )


def _places(fields: dict[str, str]) -> list[TellerPlace]:
    try:
        return [TellerPlace(name, address) for name, address in form.tellers_in(fields)]
    except InvalidValue as fault:
        raise Malformed(f"tellers: {fault}") from None


async def _read_draft(fields: dict[str, str]) -> dict[str, Any]:
    """The part of the page that follows each change: what is missing in each step, and what a student reads."""
    reading = await asyncio.to_thread(reading_of, fields)
    return {"lacking": reading.lacking, "page": reading.page, "belief": reading.belief,
            "proposed": reading.proposed}


def _told(fields: dict[str, str], linted: editing.LintResult | None) -> dict[str, Any]:
    """The part of the page that a check changes."""
    faults = form_faults(form.with_unnamed_tellers(fields), linted.faults) if linted is not None else ()
    length = length_of(fields)
    at_field = {fault.field: fault.says for fault in faults if fault.field}
    try:
        form.expected_people(fields)
    except ValueError as fault:
        at_field["people"] = f"{LABELS['people']} {fault}"
    return {
        "linted": linted,
        "proposes_tellers": form.proposes_tellers(fields),
        "slow": linted is not None and linted.outlook is None,
        "faults": faults,
        "at_field": at_field,
        "lacking_tellers": form.lacking_tellers(fields),
        "length": length,
        "takes": None if length is None else in_words(length),
    }


def _read(text: str, found: Sequence[SampleColumn]) -> str:
    rows = max(len([line for line in text.splitlines() if line.strip()]) - 1, 0)
    people, columns = f"{rows} row{'s' * (rows != 1)}", f"{len(found)} column{'s' * (len(found) != 1)}"
    return f"{people}, {columns} read: {', '.join(column.name for column in found)}"[: form.LONGEST_FIELD]


async def _sample(request: web.Request) -> str:
    """The text of the uploaded file; empty where none was chosen."""
    given = (await request.post()).get("sample")
    return await field_of(request, "sample") if isinstance(given, web.FileField) and given.filename else ""
