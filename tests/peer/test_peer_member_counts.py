"""A peer holds the packets of each slot, and the list of each sum, to the signed roster. Buckets:
`test_bucket_liars`."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from anon.protocols.signed_counts import members_signed, packets_signed
from anon.transparency.transcript import transcript_body
from anon.wire.lists import list_length, most_items
from peer.app import PeerApp
from peer.network.client import AggregatorClient
from peer.network.seen_chains import unheld
from peer.predict import fetch_model
from peer.rules.distrust import Distrust
from peer.rules.lifecycle import State
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
    """True if the peer asked for a document of this kind."""
    places = {place for place, one in enumerate(aggregator.chain) if one.head.kind == kind}
    asked = {what.removeprefix("documents/") for what, _at in aggregator.gets if what.startswith("documents/")}
    return any(set(range(int(one.split("-")[0]), int(one.split("-")[-1]) + 1)) & places for one in asked)


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
    assert members_signed(aggregator.manifest, aggregator.chain) == MEMBERS
    assert packets_signed(aggregator.manifest, aggregator.chain) == {slot: packets}
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert (status.state, fetched(aggregator, "transcript")) == (ends, ends is State.FINISHED)
    assert ends is State.FINISHED or f"{packets} packets" in status.reason or "can have at most" in status.reason


@pytest.mark.parametrize(("packets", "ends"), CROWD)
async def test_packets_that_are_spelled_short_are_counted_in_the_list(
    tmp_path: Path, packets: int, ends: State
) -> None:
    aggregator, app = await closed(tmp_path, DECLARED)
    await advance(app, aggregator, aggregator.manifest.surveys[-1].window.closes + 1)
    for survey in aggregator.manifest.surveys:
        listed = [b"\0"] * (packets if survey.survey == 0 else 0)
        aggregator.publish("transcript", transcript_body(aggregator.study, survey.survey, listed), survey.survey)
    assert packets_signed(aggregator.manifest, aggregator.chain)[0] < MEMBERS
    assert await advance(app, aggregator) is None
    assert app.status()[0].state is ends


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


@pytest.mark.parametrize("each", [50, 114, 545])
def test_a_length_holds_the_number_of_items_that_it_was_made_of(each: int) -> None:
    for count in (0, 1, 23, 24, 25, 255, 256, 257, 65535, 65536, 10**6):
        length = 36 + list_length(count, each)
        assert most_items(length, 37, each) == count
        assert most_items(length + each - 1, 37, each) in {
            count,
            count + (list_length(count + 1, each) < list_length(count, each) + each),
        }
        assert most_items(length - 1, 37, each) == max(0, count - 1)
