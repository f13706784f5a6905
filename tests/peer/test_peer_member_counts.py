"""A peer holds the packets of each slot, and the list of each sum, to the signed roster. Buckets:
`test_bucket_liars`."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from anon.transparency.bucketed import members_signed, packets_signed
from anon.transparency.buckets import document_over
from anon.transparency.merkle import leaf_hash
from anon.transparency.transcript import digest_list
from peer.app import PeerApp
from peer.network.client import AggregatorClient
from peer.network.seen_chains import unheld
from peer.predict import fetch_model
from peer.rules.distrust import Distrust
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.run.equivocations import kept
from tests.support.fake_aggregator import DECLARED, FakeAggregator, advance, peer, until_closed
from tests.support.sums import GRADIENT, TABLES, countersigned, document, sum_study

MEMBERS = 6
CROWD = [(MEMBERS, State.FINISHED), (MEMBERS + 1, State.STOPPED), (70, State.STOPPED)]


async def closed(folder: Path, text: str) -> tuple[FakeAggregator, PeerApp]:
    """A peer that has joined with five others."""
    aggregator = FakeAggregator.with_study(text)
    if "tellers" in text:
        aggregator.publish("tellers", countersigned(aggregator.manifest))
    app = peer(folder, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator, MEMBERS - 1)
    return aggregator, app


def fetched(aggregator: FakeAggregator, kind: str) -> bool:
    """True if the peer asked for a document of this kind by its number."""
    asked = {f"documents/{place}" for place, one in enumerate(aggregator.chain) if one.head.kind == kind}
    return any(what in asked for what, _at in aggregator.gets)


@pytest.mark.parametrize(("packets", "ends"), CROWD)
async def test_a_slot_of_more_packets_than_members_is_not_looked_into(
    tmp_path: Path, packets: int, ends: State
) -> None:
    """Over all surveys of the slot together: each of them alone may have as many as there are members."""
    aggregator, app = await closed(tmp_path, DECLARED)
    await advance(app, aggregator, aggregator.manifest.surveys[-1].window.closes + 1)
    (((slot, _tag), packet),) = aggregator.accepted.items()
    surveys = aggregator.manifest.surveys
    for number in range(packets - 1):
        survey = surveys[number % len(surveys)]
        token = bytes([number]) + packet.token[1:]
        ghost = evolve(packet, survey=survey.survey, report=bytes(survey.report_size), token=token)
        aggregator.accepted[slot, token[:48]] = ghost
    aggregator.transcribe()
    assert members_signed(aggregator.chain) == MEMBERS
    assert packets_signed(aggregator.chain) == {slot: packets}
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert (status.state, len(status.slots)) == (ends, aggregator.manifest.packets)
    assert {one.status is Status.INCLUDED for one in status.slots} == {ends is State.FINISHED}
    assert ends is State.FINISHED or f"{packets} packets" in status.reason or "can have at most" in status.reason


@pytest.mark.parametrize(("packets", "listed"), [(MEMBERS + 1, 1), (70, MEMBERS), (MEMBERS, 1), (1, MEMBERS)])
async def test_a_document_that_says_another_number_than_it_lists_stops_the_peer(
    tmp_path: Path, packets: int, listed: int
) -> None:
    """Its length is that of no more than the members. Too many are refused, and a list of fewer or more is evidence."""
    aggregator, app = await closed(tmp_path, DECLARED)
    await advance(app, aggregator, aggregator.manifest.surveys[-1].window.closes + 1)
    body = digest_list(aggregator.study, 0, [bytes([number]) * 32 for number in range(listed)])
    made = document_over(aggregator.study, "transcript", 0, packets, [leaf_hash(body)], body)
    aggregator.publish("transcript", made.to_bytes(), 0)
    assert packets_signed(aggregator.chain)[0] <= MEMBERS
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert status.state is State.STOPPED and len(kept(app.store)) == (packets <= MEMBERS)


@pytest.mark.parametrize(("vectors", "ends"), CROWD)
async def test_a_sum_over_more_than_the_members_ends_the_study(tmp_path: Path, vectors: int, ends: State) -> None:
    """The sum of a study's only round, which no peer ever fetches."""
    aggregator, app = await closed(tmp_path, sum_study(TABLES))
    study = aggregator.manifest
    await advance(app, aggregator, study.surveys[-1].window.closes + 1)
    aggregator.publish("sums", document(study, 0, [1] * study.surveys[0].m, vectors))
    aggregator.transcribe()
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert (status.state, fetched(aggregator, "sums")) == (ends, False)
    assert ends is State.FINISHED or "can have at most" in status.reason


@pytest.mark.parametrize(("vectors", "sent"), [(MEMBERS, 2), (MEMBERS + 1, 1)])
async def test_no_further_round_is_answered_after_a_sum_over_more_than_the_members(
    tmp_path: Path, vectors: int, sent: int
) -> None:
    aggregator, app = await closed(tmp_path, sum_study(GRADIENT))
    first, second = aggregator.manifest.surveys[:2]
    await advance(app, aggregator, first.window.closes)
    aggregator.clock.seconds = max(aggregator.clock(), first.window.closes)
    aggregator.publish("sums", document(aggregator.manifest, 0, [0] * first.m, vectors), 0)
    await advance(app, aggregator, second.window.closes)
    assert len(aggregator.accepted) == sent
    assert (app.status()[0].state is State.STOPPED) is (sent == 1)


async def test_no_model_is_taken_that_was_learnt_from_more_than_the_members(tmp_path: Path) -> None:
    """By somebody who has the link, and need not have joined."""
    aggregator, _app = await closed(tmp_path, sum_study(TABLES))
    study = aggregator.manifest
    aggregator.publish("sums", document(study, 0, [1] * study.surveys[0].m, MEMBERS + 1))
    aggregator.publish("model", b"{}")
    with pytest.raises(Distrust, match="can have at most"):
        await fetch_model(AggregatorClient(aggregator.invite, aggregator), unheld)
