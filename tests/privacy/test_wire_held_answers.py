"""An aggregator that keeps its answers back: nothing of a peer begins because one came at last.

An aggregator chooses the time of its answers. Suppose that packets which fell due meanwhile left when the answer came.
Then each held answer would tie the next arrival to the held one. So it would link a peer's packets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random

import pytest
from attrs import define, field

from anon.route import Response
from tests.support.many_peers import Habit, Origin, SimulatedPeer, Weather, common_journal

pytestmark = pytest.mark.slow

HELD = 45.0
AT_ONCE = 0.5
PEERS = 200
PACKET = "packet"
HEADS = "heads"


@define
class Held:
    """Every exchange of one peer: what, when it began, when it was answered."""

    exchanges: list[tuple[str, float, float]] = field(factory=list)

    def reactions(self) -> int:
        """How many began at the end of another one. A packet may follow a look at the heads: its own, as a rule."""
        pairs = zip(self.exchanges, self.exchanges[1:], strict=False)
        return sum(
            began - answered < AT_ONCE and (before, what) != (HEADS, PACKET)
            for (before, _, answered), (what, began, _) in pairs
        )


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    with common_journal() as origin:
        yield origin


def lives(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Exchanges of all peers, and how many of them began at another's end."""
    held = [Held()]
    get, post = SimulatedPeer.get, SimulatedPeer.post

    def kept_back(self: SimulatedPeer) -> bool:
        self.clock.seconds += HELD
        return True

    async def looking(self: SimulatedPeer, address: str, path: str, limit: int) -> Response:
        began = self.clock()
        answer = await get(self, address, path, limit)
        held[-1].exchanges.append((HEADS, began, self.clock()))
        return answer

    async def sending(self: SimulatedPeer, address: str, path: str, body: bytes, limit: int) -> Response:
        began = self.clock()
        answer = await post(self, address, path, body, limit)
        held[-1].exchanges.append((PACKET, began, self.clock()))
        return answer

    monkeypatch.setattr(SimulatedPeer, "_travel", kept_back)
    monkeypatch.setattr(SimulatedPeer, "get", looking)
    monkeypatch.setattr(SimulatedPeer, "post", sending)

    async def all_of_them() -> None:
        for number in range(PEERS):
            held.append(Held())
            await origin.live(Habit(), Weather(unanswered=0.0), Random(f"held-{number}"))

    asyncio.run(all_of_them())
    return sum(len(one.exchanges) for one in held), sum(one.reactions() for one in held)


def test_nothing_begins_because_an_answer_came(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    """By chance half a second in the hour of some ten exchanges: one in fifty at most, most of them at a window's
    end."""
    exchanges, reactions = lives(origin, monkeypatch)
    assert exchanges > 5 * PEERS
    assert reactions < exchanges / 50


def test_the_test_finds_what_waits_for_an_answer(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Power: a runner that does at once what fell due meanwhile."""
    monkeypatch.setattr("peer.run.plan.held_up", lambda _times, _job, _due, _now: False)
    exchanges, reactions = lives(origin, monkeypatch)
    assert reactions > exchanges / 20


def test_no_retry_waits_for_the_windows_closing(origin: Origin) -> None:
    """A packet that fails at the window's end is given up: else all such packets would come at its closing."""
    weather = Weather(lost=0.3, unanswered=0.3)
    last = origin.closes - origin.aggregator.manifest.timetable.margin

    async def lives_of_all() -> list[float]:
        seen = [await origin.live(Habit(((900, 3000),)), weather, Random(f"late-{number}")) for number in range(PEERS)]
        return [at for one in seen for times in one.times.values() for at in times]

    arrivals = asyncio.run(lives_of_all())
    assert len(arrivals) > PEERS
    assert max(arrivals) < last + 60.0
