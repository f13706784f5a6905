"""A peer's whole study in memory, with the canaries in its table, and an owner who may do something meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attrs import evolve

from peer.app import PeerApp
from peer.data.importing import import_rows
from tests.support.canaries import NUMBER, TEXT, WHOLE
from tests.support.fake_aggregator import FakeAggregator, advance, peer

COLUMNS = ("age", "cups", "tired")
ROW = (NUMBER, TEXT, WHOLE)
Hook = Callable[[PeerApp], None]


def owner(folder: Path, aggregator: FakeAggregator) -> PeerApp:
    """A peer with a budget for several studies, and the canaries in its table."""
    app = peer(folder, aggregator)
    app.set_policy(evolve(app.policy(), lifetime=10**12, max_epsilon=10**11))
    import_rows(folder / "data.sqlite", "person", COLUMNS, [ROW])
    return app


def nothing(_app: PeerApp) -> None:
    """The owner who deletes nothing."""


async def life(app: PeerApp, aggregator: FakeAggregator, enrolled: Hook = nothing, checked: Hook = nothing) -> None:
    """A whole study; `enrolled` is called before the features are evaluated, `checked` when the first window opens."""
    times = aggregator.manifest.timetable
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await advance(app, aggregator, times.enrol_closes - 1)
    enrolled(app)
    aggregator.crowd(5)
    aggregator.clock.seconds = times.enrol_closes
    aggregator.close()
    await advance(app, aggregator, aggregator.manifest.windows[0].opens)
    checked(app)
    for closes, number in aggregator.rounds:
        await advance(app, aggregator, closes)
        aggregator.publish_counts(number)
    await advance(app, aggregator, max(survey.window.closes for survey in aggregator.manifest.surveys))
    aggregator.transcribe()
    await advance(app, aggregator)
