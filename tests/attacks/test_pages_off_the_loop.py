"""No page of either side reads, verifies or counts on the event loop, which times the packets of every study. An
aggregator decides how long evidence and a model are, and the owner's tables how long their rows take to count."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import peer.app
import peer.predict
import peer.web.site
from aggregator.desk import study_view
from anon.protocols.histogram import describe
from anon.protocols.models import tables
from anon.wire.messages import RosterEntry, encode_roster
from peer.web.threads import PAGES
from peer.web.views import joining, results, taking_back
from tests.support.browsing_model import model_of
from tests.support.fake_aggregator import FakeAggregator
from tests.support.patience import PATIENCE, turns, until
from tests.support.protocols import PROTOCOLS
from tests.support.visiting import Visited, visited

STUDY = bytes(range(32))


class Watched:
    """Functions, and whether each was ever called on the thread of the loop."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch, self._loop = patch, threading.get_ident()
        self.calls: dict[str, list[bool]] = {}

    def watch(self, module: ModuleType, name: str, instead: Callable[..., Any] | None = None) -> None:
        rule = instead or getattr(module, name)

        def watched(*given: Any) -> Any:
            self.calls.setdefault(name, []).append(threading.get_ident() == self._loop)
            return rule(*given)

        self._patch.setattr(module, name, watched)

    def demand(self, name: str, times: int = 1) -> None:
        assert self.calls.pop(name) == [False] * times, f"{name} ran on the loop"


async def test_the_owners_page_counts_and_reads_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with visited(tmp_path) as page:
        watched = Watched(monkeypatch)
        watched.watch(peer.web.site, "own_data")
        watched.watch(describe, "packet_kinds")
        watched.watch(joining, "explain")  # a study of 5,900 surveys fits its length, and took 4 s to explain
        watched.watch(peer.app, "random_sizes")
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        for place in ("/data", "/start/data", page.invite):
            assert (await page.get(place)).status == 200
            watched.demand("own_data")
        watched.demand("packet_kinds", 2)
        watched.demand("explain")
        assert (await page.submit(page.invite, page.invite, answer="yes")).status == 200
        watched.demand("own_data", 2)
        watched.demand("random_sizes")
        assert (await page.get("/diagnosis")).status == 200
        watched.demand("own_data")
        watched.watch(taking_back, "rows_of")
        assert (await page.get("/data/delete/person")).status == 200
        watched.demand("rows_of")
        await _predicted(page, watched)


async def _predicted(page: Visited, watched: Watched) -> None:
    watched.watch(peer.predict, "unfit")
    page.aggregator.publish("model", model_of(page.aggregator.study.hex()))
    place = page.study + "/prediction"
    await page.submit(place, place)
    assert "score for you" in (await page.get(place)).words
    watched.demand("unfit", len(watched.calls["unfit"]))


@pytest.mark.slow
async def test_queries_that_take_all_of_their_time_leave_every_other_page_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four consent screens of a hostile study took all threads of the pages for five seconds, four predictions for
    60."""
    let_go, begun = threading.Event(), list[int]()

    def slow(*_given: Any) -> tuple[Any, ...]:
        begun.append(threading.get_ident())
        let_go.wait(2 * PATIENCE)
        return ()

    async def others_are_drawn(busy: str) -> list[int]:
        waiting = [asyncio.create_task(page.get(busy)) for _ in range(PAGES + 1)]
        await until(lambda: begun)
        await turns()  # as many as there are threads for
        try:
            assert (await asyncio.wait_for(page.get("/data"), PATIENCE)).status == 200
        finally:
            let_go.set()
        statuses = [got.status for got in await asyncio.gather(*waiting)]
        let_go.clear()
        begun.clear()
        return statuses

    async with visited(tmp_path) as page:
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        monkeypatch.setattr(joining, "_own_answers", lambda *given: (slow(*given), ()))
        assert await others_are_drawn(page.invite) == [200] * (PAGES + 1)
        let_go.set()
        await page.submit(page.invite, page.invite, answer="yes")
        page.aggregator.publish("model", model_of(page.aggregator.study.hex()))
        place = page.study + "/prediction"
        await page.submit(place, place)
        predicted = (await page.get(place)).words
        assert "score for you" in predicted
        let_go.clear()
        predict_own = peer.predict.predict_own
        monkeypatch.setattr(peer.predict, "predict_own", lambda *given: (slow(), predict_own(*given))[1])
        assert await others_are_drawn(place) == [200] * (PAGES + 1)


async def test_evidence_is_verified_beside_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with visited(tmp_path) as page:
        watched = Watched(monkeypatch)
        watched.watch(results, "proofs_of", lambda _stored: [])
        assert (await page.get("/evidence")).status == 200
        watched.demand("proofs_of")
        assert "no such proof" in (await page.get("/evidence/0")).words
        watched.demand("proofs_of")


async def test_the_desk_reads_documents_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    roster = encode_roster(STUDY, [RosterEntry(bytes([7]) * 32, bytes(32), bytes(48))])
    bodies = {"roster": roster, "model": model_of(STUDY.hex())}
    heads = [SimpleNamespace(head=SimpleNamespace(kind=kind, part=0)) for kind in bodies]

    async def body_of(head: Any) -> bytes:
        return bodies[head.kind]

    async def contents(_head: Any) -> AsyncIterator[tuple[int, bytes]]:
        yield 0, roster

    live: Any = SimpleNamespace(
        chain=heads, body_of=body_of, contents=contents, study=STUDY, manifest=FakeAggregator.with_study().manifest,
        tools=SimpleNamespace(protocols=PROTOCOLS),
    )
    watched = Watched(monkeypatch)
    watched.watch(study_view, "parse_roster")
    watched.watch(tables, "from_json")
    assert await study_view.roster_of(live) == ((bytes([7]) * 32).hex(),)
    assert await study_view.model_of(live) is not None
    watched.demand("parse_roster")
    watched.demand("from_json")
