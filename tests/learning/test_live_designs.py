"""Every design once with real peers: consent, credential, release, HTTP, model, inclusion, audit. Nothing is simulated.

The claim is about the machinery, not about the AUC: a dozen people teach nobody anything.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from course import live_on
from village import Clock

from aggregator.app import AggregatorApp
from aggregator.audit import audit_documents
from anon.documents import encode_chain
from anon.ldp import nano
from anon.model import Model, from_json
from anon.route import DirectRoute
from anon.study import parse_proposal
from anon.study.manifest import Manifest
from peer.app import PeerApp
from peer.consent import Policy
from peer.data.importing import import_rows
from peer.home import PeerHome
from peer.records import Status
from peer.session import State

PEOPLE = 9
STUDY = """
version = 1
title = "Sleep and coffee"
purpose = "To try every design with real peers."
contact = "nobody@example.org"
[tables]
person = ["age", "cups", "tired"]
[label]
name = "tired"
description = "You are tired."
query = "SELECT tired FROM person"
positive = [1]
negative = [0]
missing = "negative"
[[features]]
name = "age"
kind = "numeric"
description = "Your age."
query = "SELECT age FROM person"
range = [0, 100]
bins = 3
missing = 40
[[features]]
name = "cups"
kind = "categorical"
description = "How much coffee you drink."
query = "SELECT cups FROM person"
categories = ["none", "some", "many"]
missing = "own"
[design]
kind = "one-packet"
epsilon = 2.0
binning_share = 0.3
{design}
[learning]
classifier = "additive"
score_share = 0
base_rate = 0.4
[schedule]
enrol = "1h"
settle = "10m"
binning = "30m"
collect = "1h"
[cohort]
minimum = 3
"""
DESIGNS = {
    "bits": ('asks = "bits"', {"krr", "subset"}),
    "bits around one half": ('asks = "bits"\ncentre = 0.5', {"krr", "subset"}),
    **{name: (f'mechanism = "{name}"', {name}) for name in ("krr", "subset", "pq", "rappor")},
    "pairs": ("subset_size = 2", {"krr", "subset"}),
}


@asynccontextmanager
async def village_of(
    folder: Path, text: str
) -> AsyncIterator[tuple[Clock, AggregatorApp, Manifest, list[PeerApp]]]:
    """A published study, served over loopback, and people with data, an invite and a yes."""
    clock = Clock()
    async with AsyncExitStack() as stack:
        aggregator = await stack.enter_async_context(AggregatorApp(folder / "agg", clock, os.urandom, processes=0))
        manifest = await aggregator.create_study(parse_proposal(text))
        bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(aggregator.serve("127.0.0.1", 0, bound.set_result))
        try:
            invites = await aggregator.create_invites(manifest.study_id, PEOPLE, f"127.0.0.1:{await bound}")
            peers = [settled_in(folder / f"peer-{number}", number, clock) for number in range(PEOPLE)]
            for one in peers:
                stack.callback(one.close)
            for one, invite in zip(peers, invites, strict=True):
                await one.join(invite, manifest.epsilon)
            yield clock, aggregator, manifest, peers
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


def settled_in(path: Path, number: int, clock: Clock) -> PeerApp:
    home = PeerHome(path)
    home.prepare()
    row = (20 + 7 * number, ("none", "some", "many", None)[number % 4], number % 2)
    import_rows(home.data_path, "person", ["age", "cups", "tired"], [row], durable=False)
    return PeerApp(home, DirectRoute, clock, os.urandom, policy=Policy(lifetime=nano(2), minimum_cohort=3))


async def live_through(clock: Clock, aggregator: AggregatorApp, manifest: Manifest, peers: list[PeerApp]) -> None:
    """Everybody does what is due, in the order of time, until the study is over for all."""
    people: Any = [Person(aggregator, one) for one in peers]
    await live_on(clock, people, manifest.timetable.ends + 8 * 86400.0)


class Person:
    """A peer of one aggregator that all share, as `course.live_on` walks through them."""

    def __init__(self, aggregator: AggregatorApp, peer: PeerApp) -> None:
        self.aggregator = aggregator
        self.peer = peer


@pytest.mark.parametrize("name", DESIGNS)
async def test_real_peers_carry_a_design_to_its_audited_model(tmp_path: Path, name: str) -> None:
    design, mechanisms = DESIGNS[name]
    async with village_of(tmp_path, STUDY.format(design=design)) as (clock, aggregator, manifest, peers):
        asking = [one for one in manifest.surveys if one.asks_label]
        assert {one.mechanism for one in asking} <= mechanisms
        assert {one.kind for one in asking} == ({"bit"} if "bits" in name else {"histogram"})
        await live_through(clock, aggregator, manifest, peers)
        for one in peers:
            (status,) = one.status()
            assert (status.state, [slot.status for slot in status.slots]) == (State.FINISHED, [Status.INCLUDED])
            assert status.spent == manifest.epsilon == nano(2)
        (told,) = await aggregator.status()
        assert (str(told.phase), told.enrolled, told.accepted) == ("published", PEOPLE, PEOPLE)
        await _audited(aggregator, manifest)


async def _audited(aggregator: AggregatorApp, manifest: Manifest) -> None:
    """A stranger recomputes the model from what is published."""
    live = aggregator.study(manifest.study_id)
    bodies = {one.head.number: await live.body_of(one.head) for one in live.chain}
    result = audit_documents(encode_chain(live.chain), bodies, aggregator.home.public_key)
    assert result.ok and result.model_checked and result.packets == PEOPLE
    model = _model(next(bodies[one.head.number] for one in live.chain if one.head.kind == "model"))
    assert [table.features for table in model.tables] == [("age",), ("cups",)]
    assert 0 < model.base_rate < 1


def _model(body: bytes) -> Model:
    return from_json(body.decode())
