"""The protocol `masks` as both sides know it: exact vectors under masks, of which members open the sum together.

No teller is needed. Each member adds a share of the noise, which suffices if enough members are honest. All rounds are
letters (`anon.protocols.board`), and all arithmetic is in `anon.protocols.sum.masks.masking`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from anon.accounting.zcdp import epsilon_of_rho
from anon.errors import Malformed
from anon.protocols.board import Pages
from anon.protocols.charge import Charge, Measure, Unit
from anon.protocols.contract import Layout, Place
from anon.protocols.sum.arranged import DELTA
from anon.protocols.sum.describe import leaves, taken, title
from anon.protocols.sum.design import is_of_declared, summed_of, unit_of
from anon.protocols.sum.masks import layout
from anon.protocols.sum.masks.layout import ROUNDS, masking_of, vector_survey
from anon.protocols.sum.masks.masking import SHARES, VECTOR, neighbours
from anon.protocols.sum.parties import GIVEN
from anon.protocols.sum.written import WrittenSum
from anon.protocols.vectors.transfer import TransferredVotes, public_rows
from anon.protocols.words import ChanceLine, PacketKind
from anon.study.manifest import Manifest, Survey, Window
from anon.study.proposal import Proposal
from anon.study.records import RECORD
from anon.text.sentences import Figure, Sentence, say


class MasksShared(WrittenSum):
    """See `anon.protocols.contract` and `anon.protocols.board.LettersPart`."""

    names = ROUNDS

    def lay_out(self, proposal: Proposal, windows: tuple[Window, ...], randbelow: Callable[[int], int]) -> Layout:
        """See `contract`. Nothing is drawn."""
        return layout.lay_out(proposal, windows)

    def check(self, study: Manifest) -> None:
        """See `contract`."""
        layout.check(study)
        if not is_of_declared(vector_survey(study), study.records):
            raise Malformed("manifest: it takes other records of a member than the study says; do not take part")

    def check_given(self, study: Manifest, given: Mapping[Place, bytes]) -> None:
        """See `contract`: public rows are as many as the study says, with a number for each feature."""
        votes = summed_of(study, vector_survey(study))
        if isinstance(votes, TransferredVotes):
            public_rows(votes, given.get(GIVEN, b""))

    def exposure(self, design: Layout) -> Charge:
        """The rho of the one sum, with the noise of as many honest members as the manifest says."""
        masking, survey = masking_of(design.part), design.surveys[VECTOR]
        if len(design.surveys) != len(ROUNDS):
            raise Malformed("manifest: its surveys are not those of masks; do not take part")
        condition = say(
            "at least {honest} of the members who send are honest, at most a third of each member's neighbours work "
            "against it, and the aggregator neither invents members nor leaves many out",
            honest=masking.honest,
        )
        rho = layout.rho_of(survey, masking)
        return Charge(Measure.ZCDP, rho, Unit(unit_of(survey)), condition=condition)

    def circle(self, study: Manifest, survey: Survey, writer: bytes, pages: Pages) -> tuple[bytes, ...]:
        """The neighbours, of shares alone."""
        return tuple(neighbours(pages, writer)) if survey.survey == SHARES and 0 in pages else ()

    def summary(self, study: Manifest) -> Sentence:
        """See `contract`."""
        return say(
            "Each member sends exact numbers once, under masks; members open the sum together, in five rounds, and it "
            "has noise of each."
        )

    def title(self, study: Manifest, survey: Survey) -> str:
        """See `contract`."""
        return title(study, survey) if survey.survey == VECTOR else ROUNDS[survey.survey]

    def odds(self, study: Manifest) -> tuple[Sentence, ...]:
        """No odds, for every packet is exact: what leaves, what hides it, what is promised, and what it rests on."""
        survey, masking = vector_survey(study), masking_of(study.part)
        return (
            leaves(study, survey),
            *((taken(survey, study.records),) if study.records else ()),
            say(
                "They leave under a mask of your own and one with each of at most {most} other members. Only the sum "
                "of all who came is opened, and only if at least {least} members, and more than two thirds of all, "
                "signed who came.",
                most=study.survey(SHARES).m,
                least=masking.least,
            ),
            _promise(study, masking.honest),
            say(
                "If the aggregator invents members, leaves many out or works with many of them, it can read your "
                "numbers under the noise of your own machine alone. Nothing shows that to you."
            ),
        )

    def packet_kinds(self, study: Manifest) -> tuple[PacketKind, ...]:
        """The one kind that holds anything of the data. It is true always, so it has no odds and no picture."""
        survey = vector_survey(study)
        lines = tuple(ChanceLine(line, ()) for line in self.odds(study))
        drawn, asks = say("one of your packets"), say("exact numbers under masks")
        return (PacketKind(survey, (title(study, survey),), drawn, asks, lines, None),)


def _promise(study: Manifest, honest: int) -> Sentence:
    epsilon = Figure(f"{-(-epsilon_of_rho(vector_survey(study).epsilon, DELTA) // 10**7) / 100:g}")
    if study.records is not None and study.records.unit == RECORD:
        return say(
            "Each member adds noise. What is published keeps to epsilon {epsilon} for each of your records by itself, "
            "plus a chance of one in a million, if at least {honest} of the members who send are honest.",
            epsilon=epsilon,
            honest=honest,
        )
    return say(
        "Each member adds noise. What is published keeps to epsilon {epsilon}, plus a chance of one in a million, if "
        "at least {honest} of the members who send are honest.",
        epsilon=epsilon,
        honest=honest,
    )
