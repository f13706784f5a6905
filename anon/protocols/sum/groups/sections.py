"""The section of a study file whose members average models in groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from anon.errors import InvalidValue
from anon.protocols.sum.sections import BOUNDS as OF_SUMS
from anon.protocols.sum.sections import WORDS as OF_SECTIONS
from anon.protocols.sum.sections import Averaging
from anon.study.proposal import Proposal
from anon.values import frozen

DESIGN: Final = "group-averaging"
MOST_AGGREGATIONS, FEWEST, MOST_IN_GROUP = 10, 2, 30


def demand_groups(aggregations: int, group: int, receivers: int) -> None:
    """Raises `InvalidValue`."""
    if not 1 <= aggregations <= MOST_AGGREGATIONS:
        raise InvalidValue(f"aggregations: expected 1 to {MOST_AGGREGATIONS}, got {aggregations}")
    if not FEWEST <= receivers <= group <= MOST_IN_GROUP:
        raise InvalidValue(
            f"group, receivers: expected {FEWEST} to {MOST_IN_GROUP} members, and {FEWEST} receivers up to all of them"
        )


@frozen
class GroupAveraging(Averaging):
    """As `Averaging`. `aggregations`: how often groups are drawn and average anew. `group`: the members of one.
    `receivers`: so many of a group add up its shares, each with all of the noise."""

    has_tellers: ClassVar[bool] = False
    aggregations: int = 1
    group: int = 10
    receivers: int = 3

    def demand(self, proposal: Proposal) -> None:
        """See `DesignSection`."""
        super().demand(proposal)
        demand_groups(self.aggregations, self.group, self.receivers)
        if proposal.cohort.minimum < self.group:
            raise InvalidValue(f"group: expected at most {proposal.cohort.minimum} members; or raise cohort.minimum")


WORDS: Final[Mapping[str, str]] = {
    **OF_SECTIONS["averaging"],
    "kind": "Models of groups of members, drawn anew in each aggregation, without tellers; they predict together.",
    "epsilon": "Central, at delta 1e-6, of all aggregations together: if one receiver of each group is honest.",
    "aggregations": "How often groups are drawn, each time with a window to open values, to share and to tell sums.",
    "group": "The members of a group. The last group has fewer than twice as many.",
    "receivers": "So many members of a group add up its shares, each with all of the noise.",
}
"""A sentence for every key."""
BOUNDS: Final = {
    **OF_SUMS["averaging"],
    "aggregations": {"minimum": 1, "maximum": MOST_AGGREGATIONS},
    "group": {"minimum": FEWEST, "maximum": MOST_IN_GROUP},
    "receivers": {"minimum": FEWEST, "maximum": MOST_IN_GROUP},
}
