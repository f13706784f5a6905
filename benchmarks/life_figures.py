"""The figures of `benchmarks.life`: of each stage, and of the whole."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable

from attrs import define, field, frozen

from benchmarks.figures import Figure
from benchmarks.life_running import Done, Memory, Program, used_by_children

MOST_MIB = 1000
"""Of the aggregator's memory."""
MOST_DOWNLOADED = 400_000
"""Bytes of a peer, after it joined."""


@frozen
class Stage:
    """One row: seconds, processor time of aggregator and driver, the aggregator's memory at its peak."""

    name: str
    seconds: float
    serving: float
    driving: float
    memory: Memory

    def row(self, members: int) -> Figure:
        """For the table."""
        return {
            "stage": self.name,
            "seconds": round(self.seconds, 1),
            "aggregator_cpu_s": round(self.serving, 1),
            "aggregator_ms_each": round(1e3 * self.serving / members, 3),
            "driver_cpu_s": round(self.driving, 1),
            "own_peak_mib": round(self.memory.own),
            "whole_peak_mib": round(self.memory.whole),
        }


@frozen
class Outcome:
    """The facts that such a study is judged by."""

    members: int
    stages: tuple[Stage, ...]
    words: dict[str, Counter[str]]
    downloaded: tuple[int, ...]
    """Bytes that each real peer got after it joined."""
    included: int
    """Real peers that found their packet."""
    lost: int
    """Packets that were sent and are not in the transcript."""
    strange: int
    """Entries of the transcript that neither the driver nor a real peer sent."""
    doubled: int
    audit: dict[str, object]

    @property
    def peak(self) -> float:
        """MiB, with worker processes."""
        return max(stage.memory.whole for stage in self.stages)

    @property
    def ok(self) -> bool:
        """True if nothing is lost or doubled, the audit finds nothing, and memory and downloads are in their limits."""
        accepted = all(set(words) == {"accepted"} for words in self.words.values())
        here = (self.audit["verdict"], self.audit["enrolled"], self.audit["packets"], self.audit["model_checked"])
        whole = (self.lost, self.doubled, self.strange, self.included) == (0, 0, 0, len(self.downloaded))
        small = self.peak <= MOST_MIB and max(self.downloaded, default=0) <= MOST_DOWNLOADED
        return accepted and whole and small and here == ("all-checked", self.members, self.members, True)


@define
class Watch:
    """Takes the figures of one stage after the other."""

    program: Program
    stages: list[Stage] = field(factory=list)
    _since: tuple[float, float, float] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._since = self._now()

    def note(self, name: str, beside: float = 0.0) -> None:
        """The stage of this name has ended. `beside`: processor time of the driver's other processes."""
        now = self._now()
        seconds, serving, driving = (after - before for after, before in zip(now, self._since, strict=True))
        self._take(Stage(name, seconds, serving, driving + beside, self.program.peak()))
        self._since = now

    def note_command(self, name: str, done: Done) -> None:
        """A command of the aggregator has ended. Its processor time counts as the aggregator's."""
        seconds = time.perf_counter() - self._since[0]
        self._take(Stage(name, seconds, done.cpu, 0.0, done.memory))
        self._since = time.perf_counter(), 0.0, 0.0

    def _take(self, stage: Stage) -> None:
        self.stages.append(stage)
        print(f"{stage.name}: {stage.seconds:.0f} s, peak {stage.memory.whole:.0f} MiB", file=sys.stderr, flush=True)

    def _now(self) -> tuple[float, float, float]:
        return time.perf_counter(), self.program.cpu(), driving_seconds()


def compared(sent: Iterable[bytes], transcribed: Iterable[bytes]) -> tuple[int, int, int]:
    """How many packets were sent and are not there, are there and were not sent, and are there once more."""
    asked, there = set(sent), Counter(transcribed)
    return len(asked - there.keys()), len(there.keys() - asked), there.total() - len(there)


def driving_seconds() -> float:
    """Processor time of this process and of all that it saw end."""
    return time.process_time() + used_by_children()
