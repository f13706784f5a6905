"""A packet's arrival is the instant at which its bytes were there, not the one at which its batch is judged."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.world import World, sealed


@pytest.mark.slow
async def test_a_packet_that_came_in_time_is_accepted_though_its_batch_is_judged_late(running: World) -> None:
    first, second = await running.enrol(2)
    await running.close_enrolment([first, second])
    running.clock.seconds = running.closes - 0.001
    in_time = asyncio.create_task(running.live.submit(sealed(running.live, first.packet())))
    await asyncio.sleep(0)  # it has arrived and waits for its batch
    running.clock.seconds = running.closes + 0.001
    late = asyncio.create_task(running.live.submit(sealed(running.live, second.packet())))
    assert (await in_time, await late) == ("accepted", "window-closed")
