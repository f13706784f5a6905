"""The sections of a study file whose vectors are added up under masks: the designs of `sum` for parties, no tellers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from anon.errors import InvalidValue
from anon.protocols.sum.sections import BOUNDS as OF_SUMS
from anon.protocols.sum.sections import WORDS as OF_SECTIONS
from anon.protocols.sum.sections import Averaging, ExactSums, Moments, Transfer
from anon.study.features import Cohort
from anon.study.proposal import Proposal
from anon.values import frozen

FEWEST: Final = 3
"""Members for whom a sum opens: of two, each would know the other's vector but for its noise."""


def least_of(least: int, cohort: Cohort) -> int:
    """The fewest members for whom a sum opens: left out (0), more than half of the smallest roster."""
    return least or max(FEWEST, cohort.minimum // 2 + 1)


def honest_of(honest: int, least: int) -> int:
    """The fewest honest members among them, whose noise alone suffices: left out (0), half of them, rounded up."""
    return honest or -(-least // 2)


def _demand_members(least: int, honest: int, cohort: Cohort) -> None:
    fewest = least_of(least, cohort)
    if not FEWEST <= fewest <= cohort.minimum:
        raise InvalidValue(f"least: expected {FEWEST} to {cohort.minimum}, got {fewest}; or raise cohort.minimum")
    if not 1 <= honest_of(honest, fewest) <= fewest:
        raise InvalidValue(f"honest: expected 1 to {fewest}, got {honest}")


@frozen
class MaskedMoments(Moments):
    """As `Moments`. `least`: for fewer members nothing opens. `honest`: so many of them add noise enough."""

    has_tellers: ClassVar[bool] = False
    least: int = 0
    honest: int = 0

    def demand(self, proposal: Proposal) -> None:
        """See `DesignSection`."""
        super().demand(proposal)
        _demand_members(self.least, self.honest, proposal.cohort)


@frozen
class MaskedAveraging(Averaging):
    """As `Averaging`. `least` and `honest` as of `MaskedMoments`."""

    has_tellers: ClassVar[bool] = False
    least: int = 0
    honest: int = 0

    def demand(self, proposal: Proposal) -> None:
        """See `DesignSection`."""
        super().demand(proposal)
        _demand_members(self.least, self.honest, proposal.cohort)


@frozen
class MaskedTransfer(Transfer):
    """As `Transfer`. `least` and `honest` as of `MaskedMoments`."""

    has_tellers: ClassVar[bool] = False
    least: int = 0
    honest: int = 0

    def demand(self, proposal: Proposal) -> None:
        """See `DesignSection`."""
        super().demand(proposal)
        _demand_members(self.least, self.honest, proposal.cohort)


SECTIONS: Final[Mapping[str, type[ExactSums]]] = {
    "masked-moments": MaskedMoments,
    "masked-averaging": MaskedAveraging,
    "masked-transfer": MaskedTransfer,
}
_MEMBERS: Final = {
    "epsilon": "Central, at delta 1e-6, of all that is published: if enough members are honest.",
    "least": "The fewest members for whom the sum opens; left out, more than half of the cohort's minimum.",
    "honest": "So many honest members among them add noise enough; left out, half of them.",
}
WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    kind: {
        **OF_SECTIONS[kind.removeprefix("masked-")],
        "kind": OF_SECTIONS[kind.removeprefix("masked-")]["kind"][:-1] + ", added up under masks, without tellers.",
        **_MEMBERS,
    }
    for kind in SECTIONS
}
"""By design a sentence for every key of its section."""
_BOUNDS: Final = {"least": {"minimum": 0}, "honest": {"minimum": 0}}
BOUNDS: Final = {kind: {**OF_SUMS[kind.removeprefix("masked-")], **_BOUNDS} for kind in SECTIONS}
