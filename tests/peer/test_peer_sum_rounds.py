"""A peer in several rounds of sums: the sums of earlier rounds are fetched once each, whatever was drawn or answered."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from peer.app import PeerApp
from peer.data.importing import import_rows
from peer.run import exchanges
from tests.support.fake_aggregator import FakeAggregator, advance, peer, until_closed
from tests.support.sums import GRADIENT, countersigned, document, sum_study


async def collecting(folder: Path) -> tuple[FakeAggregator, PeerApp]:
    """A peer whose enrolment is closed, in a study of four rounds."""
    aggregator = FakeAggregator.with_study(sum_study(GRADIENT.replace("rounds = 3", "rounds = 4")))
    aggregator.publish("tellers", countersigned(aggregator.manifest))
    app = peer(folder, aggregator)
    import_rows(folder / "data.sqlite", "person", ("age", "sleep", "cups", "tired"), [(30, 8, "many", 1)])
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator)
    return aggregator, app


async def fetched(aggregator: FakeAggregator, app: PeerApp) -> list[int]:
    """How often the sums of each round were fetched until the last window closed."""
    study = aggregator.manifest
    for survey in study.surveys:
        await advance(app, aggregator, survey.window.closes)
        aggregator.clock.seconds = max(aggregator.clock(), survey.window.closes)
        aggregator.publish("sums", document(study, survey.round, [survey.round] * survey.m, 5), survey.round)
    assert len(aggregator.accepted_v2) == len(study.surveys)
    asked, kinds = Counter(what for what, _at in aggregator.gets), [one.head.kind for one in aggregator.chain]
    return [asked[f"documents/{place}"] for place, kind in enumerate(kinds) if kind == "sums"]


async def test_the_sums_of_each_round_are_fetched_once(tmp_path: Path) -> None:
    assert await fetched(*await collecting(tmp_path)) == [1, 1, 1, 0]


async def test_documents_beyond_what_is_kept_are_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanges, "MOST_KEPT", 100)
    assert await fetched(*await collecting(tmp_path)) == [3, 2, 1, 0]
