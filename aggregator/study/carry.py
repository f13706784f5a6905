"""Carries one study on as far as it goes now, and keeps what stops it to that study."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from time import monotonic

from aggregator.rules.faults import Fault, Superseded, repeated, tell, tell_end
from aggregator.store.studies import Progress
from aggregator.study.effects import advance, erase_stuck, erase_unread
from aggregator.study.live import LiveStudy, Tools
from aggregator.study.sums import finish_tellers


async def carry(live: LiveStudy) -> None:
    """Perform every due transition of a study. Raises nothing: a failure becomes its `fault`.

    A study that cannot go on is still erased when its retention has passed.
    """
    if live.fault is None or live.fault.is_due(live.tools.now(), monotonic()):
        await _trying(live, advance)
    if live.fault is not None:
        await _trying(live, erase_stuck)
    await finish_tellers(live)


async def erase_due(tools: Tools, unread: Mapping[bytes, tuple[Progress, Fault]]) -> list[bytes]:
    """The studies that could not be read, and were erased all the same: their retention has passed. Raises nothing:
    where a study is read next, whatever keeps it from that is told."""
    now, steady, erased = tools.now(), monotonic(), list[bytes]()
    for study, (progress, fault) in unread.items():
        if fault.is_due(now, steady):
            with suppress(Exception):
                erased += [study] if await erase_unread(tools, progress) else []
    return erased


async def _look_again(live: LiveStudy) -> bool:
    """Another process was faster: the next tick goes on from what it published."""
    await live.refresh()
    return False


async def _trying(live: LiveStudy, move: Callable[[LiveStudy], Awaitable[bool]]) -> None:
    try:
        moved = False
        while await move(live):
            moved = True
        if (moved or move is advance) and not live.waits:  # what tellers are asked again for is not over yet
            if live.fault is not None and move is advance:
                tell_end(f"study {live.study.hex()[:8]}")
            live.fault = None
    except Superseded:
        await _trying(live, _look_again)
    except Exception as error:
        live.fault = repeated(live.fault, error, live.tools.now(), monotonic())
        tell(f"study {live.study.hex()[:8]}", live.fault, error)
