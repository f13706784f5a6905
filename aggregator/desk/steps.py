"""When an open survey's estimate may move.

It moves only when at least 50 more packets have come than it was made from, and none is shown for the first packets
that a restarted program finds: it cannot know which estimate was shown before. Once no packet of the survey is accepted
any more, the estimate is final and exact.
"""

from __future__ import annotations

from aggregator.rules.counters import STEP


class Steps:
    """Decides when an open survey's estimate may move."""

    def __init__(self) -> None:
        self._seen: dict[tuple[bytes, int], int] = {}

    def may_move(self, study: bytes, survey: int, accepted: int) -> bool:
        """True when at least 50 packets came since the last time it was, or since this program first looked."""
        before = self._seen.setdefault((study, survey), accepted)
        if accepted - before < STEP:
            return False
        self._seen[study, survey] = accepted
        return True
