"""How much memory processes hold, as Linux accounts it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from attrs import frozen


@frozen
class Memory:
    """Bytes over several processes. `pss` counts a page shared by k of them as 1/k each, `rss` counts it k times."""

    pss: int
    rss: int


def memory_of(pids: Iterable[int]) -> Memory | None:
    """The sum over those that still run, from /proc/PID/smaps_rollup; None where the system has none."""
    rollups = [rollup for pid in pids if (rollup := _rollup(pid))]
    if not rollups:
        return None
    return Memory(sum(one["Pss"] for one in rollups), sum(one["Rss"] for one in rollups))


def _rollup(pid: int) -> dict[str, int]:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    except OSError:
        return {}
    fields = (line.split() for line in text.splitlines()[1:])
    found = {words[0].rstrip(":"): int(words[1]) * 1024 for words in fields}
    return found if found.keys() >= {"Pss", "Rss"} else {}
