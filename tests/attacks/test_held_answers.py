"""An aggregator that keeps an answer back until a fetch has fallen due, to see whose fetch begins when it lets go.

Packets and looks at the heads were drawn again then; the first fetches after a closing and between windows were not.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from anon.protocols.histogram import thresholds as cuts
from peer.app import PeerApp
from peer.run.jobs import Answer, ChooseTranscripts, DueJob, Look, Send, Verify
from peer.run.plan import planned
from tests.support.fake_aggregator import BINNED, FakeAggregator, advance, peer

JOBS = (Look, Verify, Answer, ChooseTranscripts)


async def until(app: PeerApp, aggregator: FakeAggregator, job: type) -> None:
    """A life up to where this job waits for its time."""
    table = aggregator.manifest.timetable
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await app.step(aggregator.study)
    if job is Look:
        return
    aggregator.crowd(4)
    await advance(app, aggregator, table.enrol_closes)
    aggregator.clock.seconds = max(aggregator.clock.seconds, float(table.enrol_closes))
    aggregator.close()
    if job is Verify:
        return
    surveys = cuts.surveys_of_round(aggregator.manifest, 0)
    middle = surveys[0].window.closes
    await advance(app, aggregator, middle)
    aggregator.clock.seconds = max(aggregator.clock.seconds, float(middle))
    answers = {one.survey: cuts.RoundCounts(9, (1,) * one.m) for one in surveys}
    kind, part = cuts.place_of(aggregator.manifest, 0)
    aggregator.publish(kind, cuts.body(aggregator.manifest, 0, answers), part)
    if job is ChooseTranscripts:
        last = max(one.window.closes for one in aggregator.manifest.surveys)
        await advance(app, aggregator, last)
        aggregator.clock.seconds = max(aggregator.clock.seconds, float(last))
        aggregator.transcribe()


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS)
async def test_no_fetch_begins_because_an_answer_came(tmp_path: Path, job: type) -> None:
    aggregator = FakeAggregator.with_study(BINNED)
    app = peer(tmp_path, aggregator)
    await until(app, aggregator, job)
    await app.step(aggregator.study)  # its time is drawn
    runner, study = app._following.runner(aggregator.study), app.store.study(aggregator.study)
    inputs = runner._run.inputs(app.store.outbox_entries(aggregator.study))
    (waiting,) = [found for found in planned(study, inputs) if isinstance(found, DueJob) and isinstance(found.job, job)]
    assert waiting.due > aggregator.clock()
    aggregator.clock.seconds = waiting.due + 5.0
    # The packet that was held is answered at last.
    runner._run.memory = runner._run.memory.with_end(Send(0, 0.0), aggregator.clock())
    aggregator.gets.clear()
    due = await app.step(aggregator.study)
    assert aggregator.gets == []
    assert due is not None
    await advance(app, aggregator, waiting.due + 400.0)
    assert aggregator.gets, "it comes at a time of its own"
    app.close()
