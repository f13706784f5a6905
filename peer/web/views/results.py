"""What comes back: the published model's prediction for the owner, and proofs of two stories."""

from __future__ import annotations

import asyncio

from aiohttp import web

from anon.cli_evidence import evidence_lines
from anon.errors import Refused
from peer import predict as local
from peer.cli.show import told_apart
from peer.evidence import kept
from peer.web.site import SITE

routes = web.RouteTableDef()
MOST_REASONS = 5


@routes.post("/study/{study}/prediction")
async def asked(request: web.Request) -> web.Response:
    """Fetch the model: because it was asked for, never by itself."""
    site = request.app[SITE]
    key = site.study_of(request)
    stored = site.peer.store.study(key)
    name = f"model-{key.hex()}"
    site.forget(name)
    fetching = await site.work(name, lambda: local.fetch_model(site.peer.client(stored.invite)))
    if fetching.done():
        fetching.result()
    return site.onward(request, f"/study/{key.hex()}/prediction")


@routes.get("/study/{study}/prediction")
async def prediction(request: web.Request) -> web.StreamResponse:
    """The model's word on the owner, computed here from the owner's tables as they are now."""
    site = request.app[SITE]
    key = site.study_of(request)
    stored = site.peer.store.study(key)
    place = f"/study/{key.hex()}"
    fetching = site.working(f"model-{key.hex()}")
    if fetching is None:
        return site.page(request, "prediction.html", manifest=stored.manifest, found=None, place=place)
    if not fetching.done():
        return site.waiting(request, "Fetching the published model")
    if fetching.exception() is not None:
        site.forget(f"model-{key.hex()}")
    model = fetching.result()
    found = await asyncio.to_thread(local.predict_own, model, site.data_path, int(site.now()))
    score, threshold = told_apart(found.probability, found.threshold)
    reasons = sorted(found.moved_by, key=lambda part: -abs(part.amount))[:MOST_REASONS]
    return site.page(
        request,
        "prediction.html",
        manifest=stored.manifest,
        model=model,
        found=found,
        score=score,
        threshold=threshold,
        reasons=reasons,
        largest=max((abs(one.amount) for one in reasons), default=0.0),
        unfit=local.unfit(model, site.data_path),
        caution=local.caution(model),
        place=place,
    )


@routes.get("/evidence")
async def evidence(request: web.Request) -> web.Response:
    """Proofs that an aggregator told two stories, if any were kept."""
    site = request.app[SITE]
    titles = {one.study: one.title for one in site.peer.status()}
    found = [(titles.get(one.study, ""), evidence_lines(one)) for one in kept(site.peer.store)]
    return site.page(request, "evidence.html", found=found)


@routes.get("/evidence/{number}")
async def proof(request: web.Request) -> web.Response:
    """One proof as a file that anyone can check."""
    site, number = request.app[SITE], request.match_info["number"]
    found = kept(site.peer.store)
    if not (number.isascii() and number.isdigit()) or len(number) > 9 or int(number) >= len(found):
        raise Refused("there is no such proof; choose one from the list")
    one = found[int(number)]
    name = f"{one.study.hex()[:16]}-{one.number}.evidence"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return web.Response(body=one.to_bytes(), content_type="application/octet-stream", headers=headers)
