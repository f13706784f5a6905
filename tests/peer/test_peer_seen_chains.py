"""One story for everything that a home fetches: a look, a second yes, a prediction and a report are held to the chain
that was seen before, and what they bring is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from nacl.signing import SigningKey

from anon.errors import Malformed, Refused
from anon.transparency.documents import encode_chain, sign_head
from anon.transparency.equivocation import parse_kept_evidence
from peer.app import PeerApp
from peer.cli.home import _named
from peer.network.client import AggregatorClient
from peer.network.seen_chains import held_to, unheld
from peer.predict import fetch_model, fetch_report
from peer.rules.checks import Equivocation, check_continued, extend_chain
from peer.rules.distrust import Distrust
from peer.rules.lifecycle import State
from tests.support.fake_aggregator import FakeAggregator, peer, reopened, stored

REPORT = b"<!doctype html><html><body><main><p>text</p></main></body></html>"


async def joined(tmp_path: Path) -> tuple[FakeAggregator, PeerApp]:
    """A peer that joined, and was shown one document after that."""
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path / "home", aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    aggregator.publish("report", REPORT)
    await fetch_report(client(aggregator), held_to(app.store, aggregator.invite))
    return aggregator, app


def client(aggregator: FakeAggregator) -> AggregatorClient:
    return AggregatorClient(aggregator.invite, aggregator)


def tells_another_story(aggregator: FakeAggregator, *kinds: str) -> None:
    """From its second document on, to whoever asks now."""
    del aggregator.chain[1:], aggregator.bodies[1:]
    for kind in kinds:
        aggregator.publish(kind, b"another story")


FETCHED: dict[str, Any] = {
    "a model": lambda app, aggregator: fetch_model(client(aggregator), held_to(app.store, aggregator.invite)),
    "a report": lambda app, aggregator: fetch_report(client(aggregator), held_to(app.store, aggregator.invite)),
    "a look": lambda app, aggregator: app.look(aggregator.invite),
    "a second yes": lambda app, aggregator: app.join(aggregator.invite, aggregator.manifest.epsilon),
}


@pytest.mark.parametrize("what", FETCHED)
async def test_another_story_is_told_stops_the_study_and_leaves_a_proof(tmp_path: Path, what: str) -> None:
    aggregator, app = await joined(tmp_path)
    app = reopened(app._home, aggregator)
    tells_another_story(aggregator, "model", "report")
    with pytest.raises(Equivocation, match="two different documents number 1"):
        await FETCHED[what](app, aggregator)
    (status,) = app.status()
    assert status.state is State.STOPPED and status.reserved == 0 and "two different documents" in status.reason
    ((study, _what, proof),) = app.evidence()
    assert study == aggregator.study and parse_kept_evidence(proof, aggregator.manifest).number == 1
    assert [signed.head.kind for signed in app.store.study(study).chain] == ["manifest", "report"], (
        "the first story stays"
    )


async def test_a_study_that_is_over_stays_so_and_the_proof_is_kept(tmp_path: Path) -> None:
    aggregator, app = await joined(tmp_path)
    await app.leave(aggregator.study)
    before = app.store.state(aggregator.study)
    tells_another_story(aggregator, "report")
    with pytest.raises(Equivocation):
        await FETCHED["a report"](app, aggregator)
    assert app.store.state(aggregator.study) is before and len(app.evidence()) == 1


async def test_what_a_prediction_was_shown_is_what_every_later_answer_continues(tmp_path: Path) -> None:
    aggregator, app = await joined(tmp_path)
    assert stored(app, aggregator.study, "chain") == encode_chain(aggregator.chain)
    tells_another_story(aggregator, "roster")
    aggregator.clock.seconds = float(aggregator.manifest.timetable.enrol_closes)
    for _ in range(50):
        due = await app.step(aggregator.study)
        if due is None:
            break
        aggregator.clock.seconds = max(aggregator.clock(), due)
    assert app.store.state(aggregator.study) is State.STOPPED and len(app.evidence()) == 1


async def test_a_document_that_no_study_has_stops_it_too_and_is_not_kept(tmp_path: Path) -> None:
    """Else the next answer, which looks at new heads alone, would pass over it."""
    aggregator, app = await joined(tmp_path)
    aggregator.publish("sums", b"not of this study")
    with pytest.raises(Distrust, match="has no such document"):
        await FETCHED["a report"](app, aggregator)
    assert app.store.state(aggregator.study) is State.STOPPED and len(app.store.study(aggregator.study).chain) == 2


async def test_a_shorter_story_is_no_news(tmp_path: Path) -> None:
    """The document of the seen head is asked for, whatever heads came."""
    aggregator, app = await joined(tmp_path)
    whole = list(aggregator.chain)
    del aggregator.chain[1:]
    assert await FETCHED["a report"](app, aggregator) == REPORT
    assert app.store.study(aggregator.study).chain == tuple(whole)


async def test_who_joins_again_keeps_what_was_seen(tmp_path: Path) -> None:
    aggregator, app = await joined(tmp_path)
    seen = stored(app, aggregator.study, "chain")
    await app.leave(aggregator.study)
    assert await app.deliver_withdrawal(aggregator.study) is State.WITHDRAWN
    for again in (app, reopened(app._home, aggregator)):
        del aggregator.chain[1:]
        if again.store.state(aggregator.study) is State.WITHDRAWN:
            await again.join(aggregator.invite, aggregator.manifest.epsilon)
        assert stored(again, aggregator.study, "chain") == seen


async def test_two_processes_cannot_keep_two_stories(tmp_path: Path) -> None:
    """Each compared its own with what was stored before the other's was."""
    aggregator, app = await joined(tmp_path)
    seen, first = app.store.study(aggregator.study).chain, list(aggregator.chain)
    aggregator.publish("roster", b"one")
    app.store.see_chain(aggregator.study, aggregator.chain, extend_chain)
    other = sign_head(aggregator.key, aggregator.study, first, "roster", 0, b"another")
    with pytest.raises(Equivocation):
        app.store.see_chain(aggregator.study, check_continued(aggregator.manifest, seen, [*first, other]), extend_chain)
    assert stored(app, aggregator.study, "chain") == encode_chain(aggregator.chain)
    app.store.see_chain(aggregator.study, first, extend_chain)
    assert stored(app, aggregator.study, "chain") == encode_chain(aggregator.chain), "the longer one stays"


async def test_a_link_with_another_key_proves_nothing_against_the_aggregator(tmp_path: Path) -> None:
    aggregator, app = await joined(tmp_path)
    forger = evolve(aggregator, key=SigningKey.generate(), chain=[], bodies=[])
    forger.publish("manifest", aggregator.manifest.to_bytes())
    forger.publish("report", b"forged")
    with pytest.raises(Malformed, match="another key than the manifest names"):
        await fetch_report(client(forger), held_to(app.store, forger.invite))
    assert app.evidence() == [] and app.store.state(aggregator.study) is State.CONSENTED


def test_the_command_holds_a_link_too_and_makes_no_home_for_it(tmp_path: Path) -> None:
    async def first() -> tuple[FakeAggregator, PeerApp]:
        return await joined(tmp_path)

    aggregator, app = asyncio.run(first())
    tells_another_story(aggregator, "report")
    for source in (aggregator.invite.link(), aggregator.study.hex()[:12]):
        invite, hold = _named(source, app._home.path)
        assert (invite.key, invite.study) == (aggregator.invite.key, aggregator.study)
        with pytest.raises(Equivocation):
            asyncio.run(client(aggregator).opening(hold))
    assert app.store.state(aggregator.study) is State.STOPPED
    assert _named(aggregator.invite.link(), tmp_path / "none")[1] is unheld and not (tmp_path / "none").exists()


async def test_a_stranger_is_shown_what_there_is(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    aggregator.publish("report", REPORT)
    app = peer(tmp_path, aggregator)
    for hold in (unheld, held_to(app.store, aggregator.invite)):
        assert await fetch_report(client(aggregator), hold) == REPORT
    with pytest.raises(Refused, match="no model is published yet"):
        await fetch_model(client(aggregator), unheld)
    assert app.store.studies() == []
