"""Two processes that serve one home, each at a port of its own: packets that both get at once, and the freeze."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from aggregator.app import AggregatorApp
from aggregator.store.dialects import set_up
from aggregator.store.home import open_home
from anon.transparency.bucketed import published as transcripts
from tests.support.documents import contents_of
from tests.support.postgres import Server
from tests.support.protocols import parse_proposal
from tests.support.serving import Serving
from tests.support.shared_clock import SharedClock
from tests.support.world import FakePeer, sealed, study_text

pytestmark = [pytest.mark.postgres, pytest.mark.process]
LATE, AFTER, AT_ONCE = 12, 3, 96


async def sent_to_two_servers(postgres: Server, tmp_path: Path, count: int) -> None:
    """`count` packets go to both at once, each twice. Further ones go to the second, whose clock is slow, while the
    first freezes the window: each of these is refused, or accepted and in the transcript. Afterwards both refuse all
    others."""
    url, clock, slow = postgres.made(), SharedClock(tmp_path / "clock"), SharedClock(tmp_path / "slow")
    await set_up(open_home(tmp_path / "home", os.urandom), url)
    serving = Serving(tmp_path / "home", clock, postgres, url, tmp_path)
    async with AggregatorApp(tmp_path / "home", clock, os.urandom, processes=0) as app:
        manifest = await app.create_study(parse_proposal(study_text(maximum=5000, admission="open")))
        study, live = manifest.study_id, app.study(manifest.study_id)
        try:
            first = await serving.start()
            await serving.led_by(lambda leader: leader == first)
            second = await serving.start(clock=slow)
            both = (first, second)
            peers = [FakePeer(manifest) for _ in range(count + LATE + AFTER)]
            calls = [(both[n % 2], "enrol", peer.sealed_enrolment()) for n, peer in enumerate(peers)]
            assert await words(serving, study, calls) == {"accepted": len(peers)}
            for seconds, state in (
                (manifest.timetable.enrol_closes, "settling"),
                (manifest.surveys[0].window.opens, "collecting"),
            ):
                clock.seconds = slow.seconds = seconds
                await serving.reached(state)
            await app._load()
            for peer in peers:
                await peer.take_credential(live)
            posts = [sealed(live, peer.packet()) for peer in peers]
            calls = [(pid, "packets", post) for post in posts[:count] for pid in both]
            for _twice in range(2):
                assert await words(serving, study, calls) == {"accepted": 2 * count}

            closes = manifest.surveys[0].window.closes
            clock.seconds = slow.seconds = closes - 1
            late = asyncio.create_task(sent_over_time(serving, second, study, posts[count : count + LATE]))
            await asyncio.sleep(0.1)
            clock.seconds = closes
            await serving.reached("published")
            taken = (await late)["accepted"]
            assert late.result() == Counter(accepted=taken) + Counter({"window-closed": LATE - taken})
            assert slow() < closes
            for pid in both:
                after = [(pid, "packets", post) for post in posts[-AFTER:]]
                assert await words(serving, study, after) == {"window-closed": AFTER}
                again = [(pid, "packets", post) for post in posts[:AFTER]]
                assert await words(serving, study, again) == {"accepted": AFTER}
            await app._load()
            bodies = await contents_of(live, "transcript")
            assert sum(transcripts(manifest, bodies).accepted.values()) == count + taken
            for pid in both:
                await serving.shown(pid, study, live.chain)
            serving.demand_one_head_a_number()
        finally:
            serving.end()


async def words(serving: Serving, study: bytes, calls: Sequence[tuple[int, str, bytes]]) -> Counter[str]:
    """The words for these posts, each to a process, so many at once."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(pid: int, what: str, body: bytes) -> str:
        async with room:
            return await serving.post(pid, study, what, body)

    return Counter(await asyncio.gather(*(one(*call) for call in calls)))


async def sent_over_time(serving: Serving, pid: int, study: bytes, posts: Sequence[bytes]) -> Counter[str]:
    """The words for packets that leave one after the other, whatever becomes of those before."""
    sent = []
    for post in posts:
        sent.append(asyncio.create_task(serving.post(pid, study, "packets", post)))
        await asyncio.sleep(0.04)
    return Counter(await asyncio.gather(*sent))


async def test_packets_sent_to_two_servers_at_once_each_twice_are_kept_once(postgres: Server, tmp_path: Path) -> None:
    await sent_to_two_servers(postgres, tmp_path, 24)


@pytest.mark.soak
async def test_two_thousand_packets_sent_to_two_servers_at_once_are_kept_once(postgres: Server, tmp_path: Path) -> None:
    await sent_to_two_servers(postgres, tmp_path, 2000)
