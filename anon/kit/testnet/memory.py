"""How much memory processes hold, as Linux accounts it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from anon.values import frozen

FIELDS = ("Pss", "Rss", "VmHWM")


@frozen
class Memory:
    """Bytes over several processes. `pss` counts a page that k share as 1/k each, `rss` counts it k times. `peak` adds
    up the most that each held resident since its start, as if all had at once."""

    pss: int
    rss: int
    peak: int


def memory_of(pids: Iterable[int]) -> Memory | None:
    """The sum over those that still run, from /proc/PID/smaps_rollup and status; None where the system has none."""
    rollups = [rollup for pid in pids if (rollup := _rollup(pid))]
    if not rollups:
        return None
    pss, rss, peak = (sum(process[key] for process in rollups) for key in FIELDS)
    return Memory(pss, rss, peak)


def _rollup(pid: int) -> dict[str, int]:
    try:
        texts = [Path(f"/proc/{pid}/{name}").read_text("utf-8", "replace") for name in ("smaps_rollup", "status")]
    except OSError:
        return {}
    fields = (line.split() for line in "\n".join(texts).splitlines())
    sizes = {words[0].rstrip(":"): int(words[1]) * 1024 for words in fields if words and words[0].rstrip(":") in FIELDS}
    return sizes if sizes.keys() >= set(FIELDS) else {}
