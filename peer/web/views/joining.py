"""From a link to a yes or a no: the wizard for a new home, and the consent screen."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from aiohttp import web
from attrs import evolve

from anon.accounting.statement import Batch, account, in_words
from anon.errors import Malformed, Refused
from anon.kit.page.gate import FORM_FIELD
from anon.ldp import nano
from anon.protocols.categories import label_category
from anon.protocols.charge import LOCAL
from anon.protocols.consent_words import among, consent_words
from anon.protocols.registry import protocol_of
from anon.study.features import USUAL_COHORT
from anon.study.manifest import Manifest
from anon.text.sentences import Sentence, attributed, say, say_many
from anon.transparency.fingerprint import study_code
from anon.wire.invite import Invite, parse_invite
from peer.data.evaluate import LOOK_SECONDS, evaluated, records_in
from peer.rules.consent import ConsentSheet, Policy, explain, is_short, time_to_send
from peer.rules.durations import seconds_of, text_of
from peer.rules.letters_words import about_letters
from peer.rules.lifecycle import LAST
from peer.rules.limits import fewer_demanded
from peer.rules.promise import too_few_records
from peer.rules.tellers import other_words
from peer.store.summaries import parts_of
from peer.web.forms import form_decimal, form_text, form_whole
from peer.web.languages import current
from peer.web.raising import steep_rises
from peer.web.site import SITE, Site
from peer.web.study_text import OwnAnswer, earlier_studies, meter, own_answers, own_label

routes = web.RouteTableDef()
STEPS = ("connect", "data", "budget", "finish")


@routes.get("/start")
async def start(request: web.Request) -> web.Response:
    """The wizard begins at what is missing; where nothing is, a waiting link is read."""
    site = request.app[SITE]
    if not site.invites and not site.reach.status():
        return site.onward(request, "/start/connect")
    if not site.tables():
        return site.onward(request, "/start/data")
    known = bool(site.reach.status())
    return site.onward(request, (newest_invite(site) if known else "") or "/start/budget")


@routes.get("/start/connect")
async def connect(request: web.Request) -> web.Response:
    """Step 1: paste a link."""
    return request.app[SITE].page(request, "connect.html", step=1, steps=STEPS)


@routes.post("/start/connect")
async def connected(request: web.Request) -> web.Response:
    """The link, to be looked at and nothing else."""
    site = request.app[SITE]
    invite = parse_invite(await form_text(request, "link"))
    site.invites[invite.study] = invite
    if site.tables() and site.reach.status():
        return site.onward(request, f"/invite/{invite.study.hex()}")
    return site.onward(request, "/start/data")


@routes.get("/start/data")
async def data(request: web.Request) -> web.StreamResponse:
    """Step 2: who asks and why, where the file comes from, and choosing it."""
    site = request.app[SITE]
    fetched = await _newest(site)
    if fetched is not None and not fetched.done():
        return site.waiting(request, say("Fetching the study, to see which data it reads"))
    manifest = fetched.result() if fetched is not None else None
    own = await site.own(manifest.tables) if manifest is not None else None
    address = _where(next(reversed([*site.invites.values()])), manifest) if manifest is not None else ""
    return site.page(
        request,
        "choose_data.html",
        step=2,
        steps=STEPS,
        manifest=manifest,
        address=address,
        own=own,
        tables=site.tables(),
    )


@routes.get("/start/budget")
async def budget(request: web.Request) -> web.Response:
    """Step 3: a lifetime budget."""
    site = request.app[SITE]
    return site.page(request, "choose_budget.html", step=3, steps=STEPS, policy=site.reach.policy())


@routes.post("/start/budget")
async def budgeted(request: web.Request) -> web.Response:
    """The owner's limits, as chosen."""
    site = request.app[SITE]
    limits = await policy_of(request, site.reach.policy())
    if (asked := await asked_again(request, limits)) is not None:
        return asked
    site.peer.set_policy(limits)
    return site.onward(request, newest_invite(site) or "/start/finish", say("Your limits are set."))


@routes.get("/start/finish")
async def finish(request: web.Request) -> web.Response:
    """Step 4: on to the consent screen, or home."""
    site = request.app[SITE]
    return site.page(request, "finish.html", step=4, steps=STEPS, invite=newest_invite(site))


def newest_invite(site: Site) -> str:
    """The consent screen of the newest link that waits for an answer; empty without one."""
    newest = next(reversed([*site.invites]), None)
    return f"/invite/{newest.hex()}" if newest else ""


async def _newest(site: Site) -> asyncio.Task[Manifest] | None:
    newest = next(reversed([*site.invites]), None)
    return await site.manifest(site.invites[newest]) if newest is not None else None


async def policy_of(request: web.Request, known: Policy) -> Policy:
    """The policy with the form's limits. Raises `Malformed` or `Refused` with what to correct."""
    try:
        lifetime, most = [nano(await form_decimal(request, name)) for name in ("lifetime", "per_study")]
    except Refused as fault:
        raise Malformed(say("budget: {fault}; go back and correct it", fault=attributed(str(fault)))) from None
    cohort = await form_whole(request, "minimum_cohort", "fewest people")
    window = seconds_of(await form_text(request, "minimum_window") or text_of(known.minimum_window))
    return evolve(known, lifetime=lifetime, max_epsilon=most, minimum_cohort=cohort, minimum_window=window)


async def asked_again(request: web.Request, limits: Policy) -> web.Response | None:
    """The question before limits that protect much less: a steep raise, or few people. It has the form's own fields.
    None without one, and for a yes."""
    site = request.app[SITE]
    known = site.reach.policy()
    rises, fewer = steep_rises(known, limits), fewer_demanded(known.minimum_cohort, limits.minimum_cohort)
    if not (rises or fewer) or await form_text(request, "sure"):
        return None
    sent = {name: value for name, value in (await request.post()).items() if name != FORM_FIELD}
    return site.page(request, "raise_budget.html", rises=rises, fewer=fewer, sent=sent, question=asking(site, sent))


def asking(site: Site, fields: Mapping[str, object]) -> str:
    """The consent screen of the study whose question led to the limits; empty where none did."""
    named = str(fields.get("question", ""))
    return f"/invite/{named}" if named in {study.hex() for study in site.invites} else ""


# Consent


@routes.get("/invite/{study}")
async def consent(request: web.Request) -> web.StreamResponse:
    """Everything to know before a yes."""
    site, study = request.app[SITE], request.app[SITE].study_of(request)
    if _joined(site, study) or (study not in site.invites and _known(site, study)):
        site.invites.pop(study, None)
        return site.onward(request, f"/study/{study.hex()}", say("You have answered this study already."))
    invite = site.invite_of(request)
    fetched = await site.manifest(invite)
    if not fetched.done():
        return site.waiting(request, say("Fetching the study from the aggregator"))
    manifest, ledger = fetched.result(), site.reach.budget()
    known = site.reach.known_tellers()
    answers, few = ((), ()) if site.paired else await site.threads.queried(_own_answers, manifest, site)
    policy, language = site.reach.policy(), current().code
    sheet = await site.threads.asked(explain, manifest, policy, ledger, site.now(), invite.address, known, language)
    kinds = await site.threads.asked(protocol_of(manifest).packet_kinds, manifest)
    return site.page(
        request,
        "consent.html",
        sheet=sheet,
        words=await site.threads.asked(consent_words, manifest),
        letters=about_letters(manifest),
        warning=other_words,
        manifest=manifest,
        address=_where(invite, manifest),
        kinds=kinds,
        own=await site.own(manifest.tables),
        answers=answers,
        few=few,
        earlier=earlier_studies(parts_of(ledger, site.reach.status()), invite.key, invite.study),
        local=sheet.charge.budget == LOCAL,
        cost=sheet.cost,
        meter=meter(ledger, sheet.charge.budget),
        qr_text=study_code(invite.study),
        central=await site.threads.asked(_central, sheet) if sheet.charge.budget == LOCAL else (),
        window=time_to_send(manifest),
        short=is_short(manifest),
        own_minimum=_own_minimum(site.reach.policy()),
        among=among(sheet.minimum_cohort, sheet.admission),
        place=f"/invite/{invite.study.hex()}",
    )


@routes.get("/study/{study}/agreed")
async def agreed(request: web.Request) -> web.Response:
    """The terms that the owner said yes to, from the stored manifest."""
    site = request.app[SITE]
    stored = site.reach.store.study(site.study_of(request))
    manifest, policy, ledger = stored.manifest, site.reach.policy(), site.reach.budget()
    sheet = await site.threads.asked(explain, manifest, policy, ledger, site.now(), "", None, current().code)
    return site.page(
        request,
        "agreed.html",
        study=stored,
        sheet=sheet,
        words=await site.threads.asked(consent_words, manifest),
        letters=about_letters(manifest),
        warning=other_words,
        kinds=await site.threads.asked(protocol_of(manifest).packet_kinds, manifest),
        local=sheet.charge.budget == LOCAL,
        place=f"/study/{stored.study.hex()}",
    )


@routes.post("/invite/{study}")
async def answered(request: web.Request) -> web.Response:
    """The owner's yes or no."""
    site = request.app[SITE]
    invite = site.invite_of(request)
    if await form_text(request, "answer") != "yes":
        site.invites.pop(invite.study, None)
        site.forget(f"invite-{invite.study.hex()}")
        return site.onward(request, "/", say("You declined. Nothing was sent, and the link is forgotten."))
    fetched = await site.manifest(invite)
    if not fetched.done():
        raise Refused(say("the study is still being fetched; nothing was stored or sent: read it first"))
    ticked = set((await request.post()).getall("unready", ()))
    if not (await site.own(fetched.result().tables)).lacks <= ticked:
        raise Refused(
            say(
                "your data lacks something that this study reads, and you did not tick all of it; nothing was "
                "stored or sent: go back, and tick each thing to go on all the same"
            )
        )
    await site.peer.join(invite, await form_whole(request, "epsilon", "epsilon"))
    site.invites.pop(invite.study, None)
    return site.onward(request, f"/study/{invite.study.hex()}", say(
        "You take part. Your enrolment leaves by itself.",
    ))


def _own_minimum(policy: Policy) -> str:
    """From whom the fewest people come that a study must have."""
    if policy.minimum_cohort == USUAL_COHORT:
        return say("{demanded} people, set by the program at the start", demanded=policy.minimum_cohort)
    return say_many("{count} person", "{count} people", policy.minimum_cohort)


def _where(invite: Invite, manifest: Manifest) -> str:
    """The addresses at which the study is served to everybody; those of this machine itself only where a link says so.
    """
    return ", ".join(manifest.addresses) if invite.address in manifest.addresses else invite.address


def _known(site: Site, study: bytes) -> bool:
    return any(status.study == study for status in site.reach.status())


def _joined(site: Site, study: bytes) -> bool:
    return any(status.study == study and status.state not in LAST for status in site.reach.status())


def _own_answers(manifest: Manifest, site: Site) -> tuple[tuple[OwnAnswer, ...], tuple[Sentence, ...]]:
    """The owner's values, and the note where they have few records."""
    record = evaluated(manifest, site.data_path, LOOK_SECONDS)
    label = own_label(manifest, record, label_category(manifest.label, record.label))
    return (*own_answers(manifest, record), label), too_few_records(manifest, records_in(record))


def _central(sheet: ConsentSheet) -> tuple[str, ...]:
    """The statement for the fewest members with whom the study goes on for its owner."""
    fewest = Batch((sheet.minimum_cohort,) * sheet.packets, say(
        "members, the fewest with whom this study goes on for you",
    ))
    return in_words(account(sheet.manifest, fewest))
