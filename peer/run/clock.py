"""The time where the wall clock jumps or is wrong. Reads two clocks and nothing else.

`SteadyClock` is the wall clock, but it follows no jump at once: the seconds that passed since its start are counted by
a second clock, which nobody sets. A wall clock that went another way is believed when it has stood so for half an hour.
Until then every window keeps its place, so that a clock that is put right again has cost nothing.

Asleep. The second clock must count the time that a machine sleeps, or waking would look like a jump.
`anon.machine.clock.elapsed_seconds` does on Linux, macOS and Windows. Where it cannot, a machine that wakes acts by the
time before its sleep for half an hour. A packet that it sends in this time may come too late, and none is given up for
it.

`StudyClock` has the other evidence: a signed document that exists only after an instant proves that it has passed.
That is as wrong as the aggregator's own clock, which is the one that judges when a packet arrives. An aggregator can
show such a document too early, and to one peer alone. So a packet leaves only while its window is open by the home's
clock too (`peer.run.plan.earliest`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anon.protocols.kinds import Stage, row_of
from anon.study.manifest import Manifest
from anon.transparency.documents import SignedHead

JUMP = 2.0
"""Seconds between two readings by which the clocks may part without a doubt."""
BELIEVED_AFTER = 1800.0
"""Seconds that a wall clock which jumped must stand by its word."""
LATE = 1.0
"""Seconds that a document may come before its instant: clocks differ by so much."""


class SteadyClock:
    """Unix seconds. `elapsed` counts seconds from anywhere and is never set; without it the wall clock is believed."""

    def __init__(self, wall: Callable[[], float], elapsed: Callable[[], float] | None = None) -> None:
        self._wall, self._elapsed = wall, elapsed
        self._believed: float | None = None
        self._other = 0.0
        self._since: float | None = None
        self.corrected = 0.0
        """Seconds by which all jumps that were believed moved this clock."""

    def __call__(self) -> float:
        """The time that is believed."""
        if self._elapsed is None:
            return self._wall()
        elapsed = self._elapsed()
        shown = self._wall() - elapsed
        if self._believed is None or abs(shown - self._believed) <= JUMP:  # slow drift is followed
            self._believed, self._since = shown, None
        elif self._since is None or abs(shown - self._other) > JUMP:
            self._other, self._since = shown, elapsed
        elif elapsed - self._since >= BELIEVED_AFTER:
            self.corrected += shown - self._believed
            self._believed, self._since = shown, None
        return elapsed + self._believed

    @property
    def doubt(self) -> float:
        """By how many seconds the wall clock is ahead of what is believed (below 0: behind); 0.0 without a doubt."""
        if self._since is None or self._believed is None:
            return 0.0
        return self._other - self._believed


class StudyClock:
    """Unix seconds as one study has them: the home's, and by how much its documents prove that to be behind."""

    def __init__(self, now: Callable[[], float], corrected: Callable[[], float]) -> None:
        self._now, self._corrected = now, corrected
        self._behind, self._corrected_then = 0.0, 0.0

    def __call__(self) -> float:
        """The time of this study."""
        return self._now() + self.behind

    @property
    def behind(self) -> float:
        """Seconds that the home's clock is behind: what was proven, less what it was corrected by since."""
        return max(0.0, self._behind - (self._corrected() - self._corrected_then))

    def compare(self, manifest: Manifest, chain: Sequence[SignedHead], told: float | None = None) -> None:
        """Take what a verified chain proves. How far a clock is behind that is proven to be so, the aggregator tells.
        A time that is told with no such proof counts for nothing."""
        now, proven = self(), proven_time(manifest, chain)
        if proven - now > LATE:
            self._behind, self._corrected_then = self.behind + max(proven, told or 0.0) - now, self._corrected()


def proven_time(manifest: Manifest, chain: Sequence[SignedHead]) -> float:
    """The latest instant that must have passed, because a document is signed that exists only afterwards."""
    return float(max((_exists_after(manifest, signed.head.kind, signed.head.part) for signed in chain), default=0))


def _exists_after(manifest: Manifest, kind: str, part: int) -> int:
    closes = [survey.window.closes for survey in manifest.surveys]
    if kind == "transcript":
        return closes[part] if part < len(closes) else 0
    row = row_of(manifest, kind, part)
    if row is not None and row.stage is Stage.FIRST:
        return manifest.timetable.published
    if kind == "unsummed":
        return min(closes)  # after any round
    return max(closes) if row is not None and row.stage is Stage.AFTER else manifest.timetable.enrol_closes


