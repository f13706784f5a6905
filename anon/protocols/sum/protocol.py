"""The protocol `sum` as one value. Its code is loaded when a study of sums asks it: proofs, noise and shares come with
it, and no command about another study waits for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from attrs import frozen

from anon.ldp import NanoEpsilon
from anon.protocols.charge import Charge
from anon.protocols.contract import Layout, Place, Result, Round
from anon.protocols.sum.sections import BOUNDS, WORDS, Averaging, Gradient, Moments, TablesSum, Transfer
from anon.protocols.words import PacketKind
from anon.study.designs import Design, Tables
from anon.study.manifest import Manifest, Survey, Window
from anon.study.proposal import Proposal
from anon.text.sentences import Sentence

if TYPE_CHECKING:
    from anon.protocols.sum.shared import SumShared
    from anon.sharing.arrangement import Arrangement


def _shared() -> SumShared:
    from anon.protocols.sum.shared import SumShared

    return SumShared()


def _tables_form(cards: Mapping[str, int], asked: Tables) -> None:
    from anon.protocols.sum.design import tables_form

    tables_form(cards, asked)


def _moments_form(cards: Mapping[str, int], asked: Tables) -> None:
    from anon.protocols.sum.design import moments_form

    moments_form(cards, asked)


def _gradient_form(cards: Mapping[str, int], asked: Tables) -> None:
    from anon.protocols.sum.design import gradient_form

    gradient_form(cards, asked)


def _averaging_form(cards: Mapping[str, int], asked: Tables) -> None:
    from anon.protocols.sum.design import averaging_form

    averaging_form(cards, asked)


def _transfer_form(cards: Mapping[str, int], asked: Tables) -> None:
    from anon.protocols.sum.design import transfer_form

    transfer_form(cards, asked)


@frozen
class SumProtocol:
    """See `anon.protocols.contract`; each member is that of `anon.protocols.sum.shared`."""

    name = "sum"
    designs: ClassVar[Mapping[str, Design]] = {
        "tables-sum": Design(TablesSum, _tables_form, WORDS["tables-sum"], BOUNDS["tables-sum"]),
        "moments": Design(Moments, _moments_form, WORDS["moments"], BOUNDS["moments"]),
        "gradient": Design(Gradient, _gradient_form, WORDS["gradient"], BOUNDS["gradient"]),
        "averaging": Design(Averaging, _averaging_form, WORDS["averaging"], BOUNDS["averaging"]),
        "transfer": Design(Transfer, _transfer_form, WORDS["transfer"], BOUNDS["transfer"]),
    }

    def share_sizes(self, study: Manifest) -> tuple[int, ...]:
        """See `SharedPart`."""
        return _shared().share_sizes(study)

    def windows(self, proposal: Proposal, settled: int) -> tuple[Window, ...]:
        """See `SharedPart`."""
        return _shared().windows(proposal, settled)

    def lay_out(self, proposal: Proposal, windows: tuple[Window, ...], randbelow: Callable[[int], int]) -> Layout:
        """See `SharedPart`."""
        return _shared().lay_out(proposal, windows, randbelow)

    def check(self, study: Manifest) -> None:
        """See `SharedPart`."""
        _shared().check(study)

    def exposure(self, design: Layout) -> Charge:
        """See `SharedPart`."""
        return _shared().exposure(design)

    def per_attribute(self, design: Layout) -> NanoEpsilon:
        """See `SharedPart`."""
        return _shared().per_attribute(design)

    def rounds(self, study: Manifest) -> tuple[Round, ...]:
        """See `SharedPart`."""
        return _shared().rounds(study)

    def documents(self, study: Manifest) -> Mapping[Place, int]:
        """See `SharedPart`."""
        return _shared().documents(study)

    def results(self, study: Manifest) -> Mapping[Place, int]:
        """See `SharedPart`."""
        return _shared().results(study)

    def summary(self, study: Manifest) -> Sentence:
        """See `SharedPart`."""
        return _shared().summary(study)

    def title(self, study: Manifest, survey: Survey) -> str:
        """See `SharedPart`."""
        return _shared().title(study, survey)

    def odds(self, study: Manifest) -> tuple[Sentence, ...]:
        """See `SharedPart`."""
        return _shared().odds(study)

    def packet_kinds(self, study: Manifest) -> tuple[PacketKind, ...]:
        """See `SharedPart`."""
        return _shared().packet_kinds(study)

    def read_result(self, text_untrusted: str) -> Result:
        """See `SharedPart`."""
        return _shared().read_result(text_untrusted)

    def arrangement(self, study: Manifest) -> Arrangement:
        """See `SummedPart`."""
        return _shared().arrangement(study)

    def check_given(self, study: Manifest, given: Mapping[Place, bytes]) -> None:
        """See `GivenPart`."""
        _shared().check_given(study, given)
