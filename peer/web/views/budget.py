"""The lifetime budget: the ledger as it stands, and the owner's limits."""

from __future__ import annotations

from aiohttp import web

from anon.protocols.charge import Measure
from peer.web.site import SITE
from peer.web.study_text import meter, meters_by_data_set
from peer.web.views.joining import policy_of

routes = web.RouteTableDef()


@routes.get("/budget")
async def budget(request: web.Request) -> web.Response:
    """The meters, every entry, the limits."""
    site = request.app[SITE]
    ledger = site.peer.budget()
    return site.page(
        request,
        "budget.html",
        ledger=ledger,
        meter=meter(ledger),
        by_data_set=meters_by_data_set(ledger),
        entries=[entry for entry in ledger.entries if entry.kind == Measure.LOCAL],
        others=[entry for entry in ledger.entries if entry.kind != Measure.LOCAL],
        policy=site.peer.policy(),
    )


@routes.post("/budget")
async def changed(request: web.Request) -> web.Response:
    """Other limits."""
    site = request.app[SITE]
    site.peer.set_policy(await policy_of(request, site.peer.policy()))
    return site.onward(request, "/budget", "Your limits are changed.")
