"""The lifetime budgets: the ledger as it stands, and the owner's limits."""

from __future__ import annotations

from aiohttp import web
from attrs import evolve

from anon.errors import Malformed, Refused
from anon.protocols.charge import LOCAL, Budget, Measure, Unit
from anon.protocols.cost_words import in_budget
from anon.text.sentences import attributed, say
from peer.rules.consent import Policy
from peer.rules.limits import BudgetLimit, amount_of, limits_shown, with_limit
from peer.store.summaries import parts_of
from peer.web.forms import form_decimal, form_text
from peer.web.site import SITE
from peer.web.study_text import meter, meters_by_data_set, other_budgets
from peer.web.views.joining import asked_again, asking, policy_of

routes = web.RouteTableDef()


@routes.get("/budget")
async def budget(request: web.Request) -> web.Response:
    """The meters, every entry, the limits. A measure and unit in the query are shown even where nothing is held."""
    site = request.app[SITE]
    ledger, policy, held = site.peer.budget(), site.peer.policy(), parts_of(site.peer.budget(), site.peer.status())
    shown = {limit.budget: limit for limit in limits_shown(ledger, policy.limits)}
    if "measure" in request.query:
        asked = _budget(request.query["measure"], request.query.get("unit", ""))
        shown[asked] = policy.limit(asked)
    return site.page(
        request,
        "budget.html",
        ledger=ledger,
        meter=meter(ledger) if ledger.held or not ledger.entries else None,
        by_data_set=meters_by_data_set(ledger),
        parts=[part for part in held if part.entry.budget == LOCAL],
        others=other_budgets(ledger, tuple(shown.values()), held),
        policy=policy,
        question=asking(site, request.query),
    )


@routes.post("/budget")
async def changed(request: web.Request) -> web.Response:
    """Other limits."""
    site = request.app[SITE]
    limits = await policy_of(request, site.peer.policy())
    if (asked := await asked_again(request, limits)) is not None:
        return asked
    return await _set(request, limits)


@routes.post("/budget/other")
async def changed_other(request: web.Request) -> web.Response:
    """Other limits of a budget beside the local one."""
    site = request.app[SITE]
    asked = _budget(await form_text(request, "measure"), await form_text(request, "unit"))
    known = site.peer.policy().limit(asked)
    try:
        wanted = [amount_of(await form_decimal(request, name)) for name in ("lifetime", "per_study")]
    except Refused as fault:
        raise Malformed(say("budget: {fault}; go back and correct it", fault=attributed(str(fault)))) from None
    policy = site.peer.policy()
    held = zip((known.lifetime, known.per_study), wanted, strict=True)
    limit = BudgetLimit(asked.measure, asked.unit, *(in_budget(asked, before, epsilon) for before, epsilon in held))
    limits = evolve(policy, limits=with_limit(policy.limits, limit))
    if (question := await asked_again(request, limits)) is not None:
        return question
    return await _set(request, limits)


async def _set(request: web.Request, limits: Policy) -> web.Response:
    """Store the limits, and go back to the question that led to them."""
    site = request.app[SITE]
    site.peer.set_policy(limits)
    question = asking(site, await request.post())
    return site.onward(request, question or "/budget", say("Your limits are changed. They hold for all studies."))


def _budget(measure: str, unit: str) -> Budget:
    try:
        asked = Budget(Measure(measure), Unit(unit))
    except ValueError:
        raise Malformed(say("budget: no such measure and unit; go back to the page Budget")) from None
    if asked == LOCAL:
        raise Malformed(say("budget: the limits of this one have a form of their own; go back to the page Budget"))
    return asked
