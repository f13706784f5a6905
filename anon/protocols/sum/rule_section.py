"""The section of a study file for the calibrated rule: what staff declare is where its model starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from anon.errors import InvalidValue
from anon.protocols.sum.sections import ExactSums
from anon.study.proposal import MAX_EPSILON, Proposal
from anon.values import frozen

MOST_CORRECTIONS: Final = 10


@frozen
class CalibratedRule(ExactSums):
    """The rule of what staff expect: a table of its score by label, then `rounds` of residuals that correct it."""

    rounds: int = 2

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.rounds <= MOST_CORRECTIONS:
            raise InvalidValue(f"rounds: expected 1 to {MOST_CORRECTIONS}")

    def demand(self, proposal: Proposal) -> None:
        """See `DesignSection`."""
        super().demand(proposal)
        if proposal.binned:
            raise InvalidValue(
                f"features: rule finds no cuts; write cuts in place of bins of {', '.join(proposal.binned)}"
            )
        if sum(bool(feature.expects) for feature in proposal.features) < 2:
            raise InvalidValue("features: rule needs at least two features that say what they expect")


WORDS: Final[Mapping[str, str]] = {
    "kind": "The rule of what staff expect, calibrated by a table of its score, then corrected by residuals.",
    "epsilon": "Central, at delta 1e-6, of all rounds together: if one teller is honest (spare: two).",
    "rounds": "Rounds of corrections after the first one, each with a packet and a window of its own.",
}
BOUNDS: Final[Mapping[str, Mapping[str, object]]] = {
    "epsilon": {"exclusiveMinimum": 0, "maximum": MAX_EPSILON},
    "rounds": {"minimum": 1, "maximum": MOST_CORRECTIONS},
}
