"""The results for the owner: the published model's prediction for the owner, and proofs against aggregators."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from aiohttp import web

from anon.errors import Refused
from anon.protocols.models.chart import chart_of
from anon.text.sentences import say
from anon.transparency.proof_text import evidence_lines
from peer import predict as local
from peer.network.client import AggregatorClient, Hold
from peer.network.seen_chains import held_to
from peer.predict import distinct_digits
from peer.published_report import POLICY, as_page
from peer.run.equivocations import proofs_of, stored_proofs
from peer.store.records import Study
from peer.web.languages import current, localised
from peer.web.site import SITE

routes = web.RouteTableDef()
Fetch = Callable[[AggregatorClient, Hold], Coroutine[Any, Any, object]]
MOST_REASONS = 5
ABOVE = say("The report as staff published it. Your browser's Back button leads back to your study.")


async def _fetched(request: web.Request, what: str, fetch: Fetch, page: str) -> web.Response:
    """Fetch what was published of a study: because it was asked for, never by itself. Then on to its page."""
    site = request.app[SITE]
    key = site.study_of(request)
    stored = site.peer.store.study(key)
    name = f"{what}-{key.hex()}"
    site.forget(name)
    hold = held_to(site.peer.store, stored.invite)
    fetching = await site.work(name, lambda: fetch(site.peer.client_of(stored), hold))
    if fetching.done():
        fetching.result()
    return site.onward(request, f"/study/{key.hex()}/{page}")


@routes.post("/study/{study}/prediction")
async def asked(request: web.Request) -> web.Response:
    """Fetch the model, and show its prediction."""
    return await _fetched(request, "model", local.fetch_model, "prediction")


@routes.get("/study/{study}/prediction")
async def prediction(request: web.Request) -> web.StreamResponse:
    """The model's word on the owner, computed here from the owner's tables as they are now."""
    site = request.app[SITE]
    key = site.study_of(request)
    stored = site.peer.store.study(key)
    path = f"/study/{key.hex()}"
    fetching = site.jobs.get(f"model-{key.hex()}")
    if fetching is None:
        return site.page(request, "prediction.html", manifest=stored.manifest, found=None, place=path)
    if not fetching.done():
        return site.waiting(request, say("Fetching the published model"))
    if fetching.exception() is not None:
        site.forget(f"model-{key.hex()}")
    model = fetching.result()
    predicted = await site.threads.queried(local.predict_own, model, site.data_path, int(site.now()))
    score, threshold = distinct_digits(predicted.probability, predicted.threshold)
    reasons = sorted(predicted.moved_by, key=lambda part: -abs(part.amount))[:MOST_REASONS]
    return site.page(
        request,
        "prediction.html",
        manifest=stored.manifest,
        model=model,
        found=predicted,
        predicted=local.predicted_name(model),
        score=score,
        threshold=threshold,
        reasons=reasons,
        largest=max((abs(reason.amount) for reason in reasons), default=0.0),
        unfit=await site.threads.asked(local.unfit, model, site.data_path),
        caution=local.caution(model),
        belief=local.belief(model),
        chart=await site.threads.asked(chart_of, model, predicted.values),
        place=path,
    )


@routes.post("/study/{study}/report")
async def report_asked(request: web.Request) -> web.Response:
    """Fetch the report, and show it."""
    return await _fetched(request, "report", local.fetch_report, "report")


@routes.get("/study/{study}/report")
async def report(request: web.Request) -> web.StreamResponse:
    """The report as staff published it, kept apart from everything of the owner's."""
    site = request.app[SITE]
    key = site.study_of(request)
    fetching = site.jobs.get(f"report-{key.hex()}")
    if fetching is None:
        return site.onward(request, f"/study/{key.hex()}", say("The report is not fetched yet."))
    if not fetching.done():
        return site.waiting(request, say("Fetching the published report"))
    if fetching.exception() is not None:
        site.forget(f"report-{key.hex()}")
    title = site.peer.store.study(key).manifest.title
    whole = await site.threads.asked(as_page, fetching.result(), title, str(localised(ABOVE)), current().code)
    return web.Response(
        body=whole, content_type="text/html", charset="utf-8", headers={"Content-Security-Policy": POLICY}
    )


@routes.get("/evidence")
async def evidence(request: web.Request) -> web.Response:
    """Proofs against aggregators, if any were kept."""
    site = request.app[SITE]
    titles = {status.study: status.title for status in site.peer.status()}
    proofs = await site.threads.asked(_told, stored_proofs(site.peer.store))
    found = [(titles.get(study, ""), lines) for study, lines in proofs]
    return site.page(request, "evidence.html", found=found)


def _told(stored: Sequence[tuple[Study, bytes]]) -> list[tuple[bytes, list[str]]]:
    return [(file.study, evidence_lines(file)) for file in proofs_of(stored)]


@routes.get("/evidence/{number}")
async def proof(request: web.Request) -> web.Response:
    """One proof as a file that anyone can check."""
    site, number = request.app[SITE], request.match_info["number"]
    proofs = await site.threads.asked(proofs_of, stored_proofs(site.peer.store))
    if not (number.isascii() and number.isdigit()) or len(number) > 9 or int(number) >= len(proofs):
        raise Refused(say("there is no such proof; choose one from the list"))
    proof = proofs[int(number)]
    name = f"{proof.study.hex()[:16]}-{proof.number}.evidence"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    body = await site.threads.asked(proof.to_bytes)
    return web.Response(body=body, content_type="application/octet-stream", headers=headers)
