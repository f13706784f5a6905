"""A route that cannot carry anything yet: packets and dummies are drawn again, no attempt is counted, none is flushed."""

import sqlite3
from contextlib import closing
from math import inf
from pathlib import Path

import pytest
from attrs import define
from village import DECLARED, Village, advance, peer

from anon.answers import ACCEPTED
from anon.errors import Unreachable
from anon.route import Answer
from peer.records import Status
from peer.schedule import MAX_ATTEMPTS

COVERED = DECLARED + "\n[cover]\nconnections = 3\n"


@define
class Tor:
    """A route over the village whose tor cannot start the first `fails` times that a packet needs it."""

    village: Village
    fails: float
    failed: int = 0

    async def ready(self, address: str) -> None:
        if self.failed < self.fails:
            self.failed += 1
            raise Unreachable("tor could not start")

    async def get(self, address: str, path: str, limit: int) -> Answer:
        return await self.village.get(address, path, limit)

    async def post(self, address: str, path: str, body: bytes, limit: int) -> Answer:
        return await self.village.post(address, path, body, limit)


@pytest.mark.parametrize(("text", "connections"), [(DECLARED, 1), (COVERED, 3)], ids=["packets", "with cover"])
@pytest.mark.parametrize("fails", [MAX_ATTEMPTS + 2, inf], ids=["comes back", "stays away"])
async def test_a_tor_that_is_down_costs_no_attempt(tmp_path: Path, text: str, connections: int, fails: float) -> None:
    village = Village.found(text)
    village.says["packets"] = ACCEPTED
    app, tor = peer(tmp_path, village), Tor(village, fails)
    app._route_factory = lambda: tor
    village.crowd(5)
    await app.join(village.invite, village.manifest.epsilon)
    await advance(app, village, village.manifest.timetable.enrol_closes - 1)
    village.close()
    await advance(app, village, village.manifest.timetable.ends)
    (window,) = village.manifest.windows
    times = [at for path, _, at in village.posts if path == "packets"]
    tried, (status,) = attempts(app._home.store_path), app.status()
    assert tor.failed > MAX_ATTEMPTS, "more often than there are attempts"
    if fails == inf:
        assert times == [] and tried == [0] * connections
        assert [one.status for one in status.slots] == [Status.GIVEN_UP]
        return
    assert tried == [1] * connections
    assert [one.status for one in status.slots] == [Status.DELIVERED]
    assert len(set(times)) == connections, "flushed in a bunch"
    assert max(times) <= window.closes - village.manifest.timetable.margin


def attempts(store: Path) -> list[int]:
    """How often each packet and dummy of the only study was tried."""
    with closing(sqlite3.connect(store)) as connection:
        return [count for (count,) in connection.execute("SELECT attempts FROM outbox")]
