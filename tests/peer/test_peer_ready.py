"""A route that cannot carry anything yet: packets and dummies are drawn again, no attempt is counted, none is
flushed."""

import os
import sqlite3
from contextlib import closing
from math import inf
from pathlib import Path

import pytest
from attrs import define

from anon.errors import Unreachable
from anon.route import Response
from anon.wire.replies import ACCEPTED
from peer.rules.packet_lifecycle import Status
from peer.rules.schedule import MAX_ATTEMPTS
from tests.support.fake_aggregator import DECLARED, FakeAggregator, advance, peer
from tests.support.routes import Ask, Exchanges, onward

COVERED = DECLARED + "\n[cover]\nconnections = 3\n"


@define
class Tor(Exchanges):
    """A route over the aggregator whose tor cannot start the first `fails` times that a packet needs it."""

    aggregator: FakeAggregator
    fails: float
    failed: int = 0

    async def ready(self, address: str) -> None:
        if self.failed < self.fails:
            self.failed += 1
            raise Unreachable("tor could not start")

    async def exchange(self, ask: Ask) -> Response:
        return await onward(self.aggregator, ask)


def early(count: int) -> bytes:
    """Random, and from 3/8 to 1/2 of what is left: 3,300 seconds hold 13 to 21 draws until 0.25 are left, for certain.

    Drawn over all that is left, fewer than seven fit in 9 of 100 runs.
    """
    drawn = os.urandom(count)
    return bytes([0x60 | drawn[0] >> 3]) + drawn[1:] if count == 8 else drawn


@pytest.mark.slow
@pytest.mark.parametrize(("text", "connections"), [(DECLARED, 1), (COVERED, 3)], ids=["packets", "with cover"])
@pytest.mark.parametrize("fails", [MAX_ATTEMPTS + 2, inf], ids=["comes back", "stays away"])
async def test_a_tor_that_is_down_costs_no_attempt(tmp_path: Path, text: str, connections: int, fails: float) -> None:
    aggregator = FakeAggregator.with_study(text)
    aggregator.says["packets"] = ACCEPTED
    app, tor = peer(tmp_path, aggregator), Tor(aggregator, fails)
    app._route_factory = lambda: tor
    object.__setattr__(app._tools, "random_bytes", early)
    aggregator.crowd(5)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await advance(app, aggregator, aggregator.manifest.timetable.enrol_closes - 1)
    aggregator.close()
    await advance(app, aggregator, aggregator.manifest.timetable.ends)
    (window,) = aggregator.manifest.windows
    times = [at for path, _, at in aggregator.posts if path == "packets"]
    tried, (status,) = attempts(app._home.store_path), app.status()
    assert tor.failed > MAX_ATTEMPTS, "more often than there are attempts"
    if fails == inf:
        assert times == [] and tried == [0] * connections
        assert [one.status for one in status.slots] == [Status.GIVEN_UP]
        return
    assert tried == [1] * connections
    assert [one.status for one in status.slots] == [Status.DELIVERED]
    assert len(set(times)) == connections, "flushed in a bunch"
    assert max(times) <= window.closes - aggregator.manifest.timetable.margin


def attempts(store: Path) -> list[int]:
    """How often each packet and dummy of the only study was tried."""
    with closing(sqlite3.connect(store)) as connection:
        return [count for (count,) in connection.execute("SELECT attempts FROM outbox")]
