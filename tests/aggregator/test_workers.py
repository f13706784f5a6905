"""Worker processes: results, errors, a worker that dies, and a parent that dies."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from aggregator.intake.batcher import Batcher
from aggregator.intake.workers import Workers
from aggregator.rules.refusal import PacketRefused

pytestmark = pytest.mark.process


@pytest.fixture
def workers() -> Iterator[Workers]:
    pool = Workers(1)
    yield pool
    pool.close()


async def test_a_worker_that_dies_is_replaced(workers: Workers, tmp_path: Path) -> None:
    assert await workers.run(pow, 2, 10) == 1024
    with pytest.raises(ZeroDivisionError):
        await workers.run(divmod, 1, 0)
    os.kill(await workers.run(os.getpid), signal.SIGKILL)
    assert await workers.run(pow, 2, 11) == 2048


async def test_work_that_kills_every_worker_is_given_up(workers: Workers) -> None:
    with pytest.raises(BrokenProcessPool):
        await workers.run(os._exit, 1)
    assert await workers.run(pow, 2, 12) == 4096


PARENT = """
import asyncio, os
from aggregator.intake.workers import Workers
async def main():
    print(await Workers(1).run(os.getpid), flush=True)
    await asyncio.sleep(60)
if __name__ == "__main__":
    asyncio.run(main())
"""


def test_no_worker_outlives_a_killed_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(root)},
    ) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.kill()
    for _ in range(100):
        if not _runs(worker):
            return
        time.sleep(0.1)
    raise AssertionError("the worker still runs")


def _runs(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


async def test_a_batch_holds_what_came_together_and_no_more() -> None:
    batches: list[int] = []

    async def handle(items: object) -> list[int]:
        assert isinstance(items, list)
        batches.append(len(items))
        await asyncio.sleep(0.01)
        return [item * 2 for item in items]

    batcher: Batcher[int, int] = Batcher(handle, at_most=8, delay=0.02)
    assert await asyncio.gather(*(batcher.submit(number) for number in range(20))) == [2 * n for n in range(20)]
    assert max(batches) == 8 and sum(batches) == 20
    await batcher.close()


async def test_a_failing_batch_fails_alone() -> None:
    async def handle(items: object) -> list[int]:
        assert isinstance(items, list)
        if 0 in items:
            raise RuntimeError("a bug")
        return items

    batcher: Batcher[int, int] = Batcher(handle, delay=0.001)
    with pytest.raises(RuntimeError):
        await batcher.submit(0)
    assert await batcher.submit(1) == 1
    await batcher.close()


async def test_drain_waits_for_what_was_submitted() -> None:
    answered: list[int] = []

    async def handle(items: object) -> list[int]:
        assert isinstance(items, list)
        await asyncio.sleep(0.05)
        answered.extend(items)
        return items

    batcher: Batcher[int, int] = Batcher(handle, delay=0.001)
    tasks = [asyncio.create_task(batcher.submit(number)) for number in range(3)]
    await asyncio.sleep(0)
    await batcher.drain()
    assert answered == [0, 1, 2]
    await asyncio.gather(*tasks)
    await batcher.close()
    batcher = Batcher(handle, most_waiting=0)
    with pytest.raises(PacketRefused, match="busy"):
        await batcher.submit(1)
