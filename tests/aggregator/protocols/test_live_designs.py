"""Every design once with real peers: consent, credential, release, HTTP, model, inclusion, audit. Nothing is simulated.

The claim is about the machinery, not about the AUC: a handful of people teach nobody anything.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from aggregator.app import AggregatorApp
from aggregator.audit import audit_documents
from anon.ldp import nano
from anon.protocols.histogram.asked import asks_label
from anon.protocols.models.tables import Model, from_json
from anon.route import DirectRoute
from anon.study.manifest import Manifest
from anon.transparency.documents import encode_chain
from examples.testing import all_contents
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.data.importing import import_rows
from peer.rules.consent import Policy
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.store.home import PeerHome
from tests.support.clock import Clock
from tests.support.course import live_on
from tests.support.protocols import parse_proposal
from tests.support.studies import categorical, head_of, label_of, numeric, study

pytestmark = pytest.mark.slow

PEOPLE = 5
STUDY = study(
    head_of(
        "Sleep and coffee",
        "To try every design with real peers.",
        ["age", "cups", "tired"],
        label_of("tired", 1, 0),
        [
            numeric("age", (0, 100), "bins = 3", 40),
            categorical("cups", ["none", "some", "many"], description="How much coffee you drink."),
        ],
        "nobody@example.org",
    ),
    'kind = "one-packet"\nepsilon = 2.0\nbinning_share = 0.3\n{design}',
    {"enrol": "1h", "settle": "10m", "binning": "30m", "collect": "1h"},
    "minimum = 3",
    'classifier = "additive"\nscore_share = 0\nbase_rate = 0.4',
)
DESIGNS = {
    "bits": ('asks = "bits"', {"krr", "subset"}),
    "bits around one half": ('asks = "bits"\ncentre = 0.5', {"krr", "subset"}),
    **{name: (f'mechanism = "{name}"', {name}) for name in ("krr", "subset", "pq", "rappor")},
    "pairs": ("subset_size = 2", {"krr", "subset"}),
    "rule": ('asks = "rule"', {"krr"}),
}
RULED = STUDY.replace("bins = 3", "cuts = [30]\nexpects = 1").replace(
    'categories = ["none", "some", "many"]', 'categories = ["none", "some", "many"]\nexpects = [-1, 0, 1]'
)
KINDS = {"rule": {"bit", "side", "score"}, "bits": {"bit"}, "bits around one half": {"bit"}}


@asynccontextmanager
async def serving_study(
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
    return PeerApp(
        home, DirectRoute, clock, os.urandom, policy=Policy(lifetime=nano(2), minimum_cohort=3), evaluate=at_once
    )


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
    text = RULED if name == "rule" else STUDY
    async with serving_study(tmp_path, text.format(design=design)) as (clock, aggregator, manifest, peers):
        asking = [one for one in manifest.surveys if asks_label(one)]
        assert {one.mechanism for one in asking} <= mechanisms
        assert {one.kind for one in asking} == KINDS.get(name, {"histogram"})
        await live_through(clock, aggregator, manifest, peers)
        for one in peers:
            (status,) = one.status()
            assert (status.state, [slot.status for slot in status.slots]) == (State.FINISHED, [Status.INCLUDED])
            assert status.spent == manifest.epsilon == nano(2)
        (told,) = await aggregator.status()
        assert (str(told.phase), told.enrolled.number, told.accepted.number) == ("published", PEOPLE, PEOPLE)
        await _audited(aggregator, manifest)


async def _audited(aggregator: AggregatorApp, manifest: Manifest) -> None:
    """A stranger recomputes the model from what is published."""
    live = aggregator.study(manifest.study_id)
    bodies = {one.head.number: await live.body_of(one.head) for one in live.chain}
    result = audit_documents(
        encode_chain(live.chain), bodies, aggregator.home.public_key, contents=await all_contents(live)
    )
    assert result.ok and result.model_checked and result.packets == PEOPLE
    model = _model(next(bodies[one.head.number] for one in live.chain if one.head.kind == "model"))
    report = next(bodies[one.head.number] for one in live.chain if one.head.kind == "report").decode()
    assert ("follow from what staff declared beforehand of 2 features" in report) is (model.belief is not None)
    assert (model.belief is not None) is any(one.kind == "score" for one in manifest.surveys)
    assert [table.features for table in model.tables] == [("age",), ("cups",)]
    assert 0 < model.base_rate < 1


def _model(body: bytes) -> Model:
    return from_json(body.decode())
