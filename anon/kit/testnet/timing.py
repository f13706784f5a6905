"""The time of the first vote, and the content of the first consensus. Pure: decides on numbers and text.

The first vote must fall after the relays' descriptors have arrived. They arrive about 1.5 s after launch, later on a
busy machine. A vote that misses a relay is not repeated for half an hour. So the network is started again with a longer
lead.
"""

from __future__ import annotations

from collections.abc import Collection

from anon.values import frozen

VOTING = 4
"""Seconds between the start of voting and the consensus's valid-after: vote delay and distribution delay."""


@frozen
class Votes:
    """The authority's clockwork: votes at every wall-clock second that is `offset` modulo `interval`."""

    interval: int
    lead: int
    now: float

    @property
    def offset(self) -> int:
        """TestingV3AuthVotingStartOffset, so that the first consensus is valid `lead` seconds from now."""
        return int(self.now + self.lead) % self.interval

    @property
    def patience(self) -> float:
        """Seconds from launch after which a consensus that has not come will not come."""
        return self.lead + 6.0


LEADS = ((10, 8), (20, 16), (30, 26))
"""(interval, lead) of one attempt after the other; tor demands that the interval divides half an hour."""


def votes(attempt: int, now: float) -> Votes:
    """The clockwork of attempt 0, 1, 2; later ones are like the last."""
    interval, lead = LEADS[min(attempt, len(LEADS) - 1)]
    return Votes(interval, lead, now)


def missing(consensus: str, expected: Collection[str]) -> set[str]:
    """The nicknames that a consensus does not list as running hidden-service directories."""
    listed: set[str] = set()
    name = ""
    for line in consensus.splitlines():
        word, _, rest = line.partition(" ")
        if word == "r":
            name = rest.partition(" ")[0]
        elif word == "s" and {"Running", "HSDir"} <= set(rest.split()):
            listed.add(name)
    return set(expected) - listed
