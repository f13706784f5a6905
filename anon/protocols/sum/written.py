"""A sum whose vectors members write to each other: the part that does not depend on how they hide them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from anon.errors import Malformed
from anon.ldp import NanoEpsilon
from anon.protocols.board import longest_page, page_of
from anon.protocols.charge import Charge
from anon.protocols.contract import Layout, Place, Result, Round
from anon.protocols.sum.shared import longest_linear
from anon.study.manifest import Manifest, Window
from anon.study.proposal import Proposal


class WrittenSum(ABC):
    """See `anon.protocols.contract`. `names`: of its rounds, for people. `seats`: after which of them the aggregator's
    own seat answers."""

    names: ClassVar[Sequence[str]] = ()
    seats: ClassVar[Mapping[int, Place]] = {}

    @abstractmethod
    def exposure(self, design: Layout) -> Charge:
        """See `contract`: each protocol has its own."""

    def share_sizes(self, study: Manifest) -> tuple[int, ...]:
        """None: there are no tellers."""
        return ()

    def how_many(self, proposal: Proposal) -> int:
        """How many rounds a study has."""
        return len(self.names)

    def windows(self, proposal: Proposal, settled: int) -> tuple[Window, ...]:
        """One for each round, as long as `schedule.collect` and `schedule.settle` apart."""
        length, turn = proposal.schedule.collect, proposal.schedule.collect + proposal.schedule.settle
        starts = [settled + number * turn for number in range(self.how_many(proposal))]
        return tuple(Window(start, start + length) for start in starts)

    def per_attribute(self, design: Layout) -> NanoEpsilon:
        """There is no such figure: the whole amount."""
        return NanoEpsilon(self.exposure(design).amount)

    def rounds(self, study: Manifest) -> tuple[Round, ...]:
        """As the surveys say. All are one session."""
        asked = [[survey for survey in study.surveys if survey.round == number] for number in range(len(self.names))]
        if not all(asked):
            raise Malformed("manifest: it has another number of rounds than its protocol; do not take part")
        return tuple(
            Round(
                surveys[0].window, "collecting", name, tuple(survey.survey for survey in surveys), page_of(number),
                self.seats.get(number),
            )
            for number, (surveys, name) in enumerate(zip(asked, self.names, strict=True))
        )  # fmt: skip

    def documents(self, study: Manifest) -> Mapping[Place, int]:
        """The pages."""
        return {
            page_of(number): longest_page(study, one.surveys) for number, one in enumerate(self.rounds(study))
        }

    def results(self, study: Manifest) -> Mapping[Place, int]:
        """One linear model."""
        return longest_linear(study)

    def read_result(self, text_untrusted: str) -> Result:
        """None: the linear form names no protocol."""
        raise Malformed("model: the linear form names no protocol; fetch it again")
