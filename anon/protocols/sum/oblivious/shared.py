"""The protocol `oblivious` as both sides know it: Pathak, Rane and Raj 2010, among a few parties who keep to it.

The mean of the parties' models is published with one noise vector: that of the party with the fewest records, which
nobody learns to be the smallest. All rounds are letters (`anon.protocols.board`). The messages are in
`anon.protocols.sum.oblivious.messages`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from anon.errors import Malformed
from anon.ldp import format_epsilon
from anon.protocols.board import Pages
from anon.protocols.charge import Charge, Measure, Unit
from anon.protocols.contract import Layout, Place, documents_of
from anon.protocols.sum.describe import taken, title
from anon.protocols.sum.oblivious import layout
from anon.protocols.sum.oblivious.messages import (
    AGREED,
    NOISE,
    ROUND_OF,
    SEATS,
    SHARES,
    epsilon_of,
    frame_of,
    parties,
    weights_of,
    weights_survey,
)
from anon.protocols.sum.written import WrittenSum
from anon.protocols.words import ChanceLine, PacketKind
from anon.study.manifest import Manifest, Survey, Window
from anon.study.proposal import Proposal
from anon.text.sentences import Sentence, say
from anon.wire.letters import AGGREGATOR


class ObliviousShared(WrittenSum):
    """See `anon.protocols.contract` and `anon.protocols.board.LettersPart`."""

    names = layout.ROUNDS
    seats = SEATS

    def lay_out(self, proposal: Proposal, windows: tuple[Window, ...], randbelow: Callable[[int], int]) -> Layout:
        """See `contract`. Nothing is drawn."""
        return layout.lay_out(proposal, windows)

    def check(self, study: Manifest) -> None:
        """See `contract`."""
        layout.check(study)

    def exposure(self, design: Layout) -> Charge:
        """The epsilon of the published mean."""
        if len(design.surveys) != len(ROUND_OF):
            raise Malformed("manifest: its surveys are not those of oblivious averaging; do not take part")
        condition = say(
            "the aggregator and all parties keep to the protocol, no party tells the aggregator what it learns, and "
            "the party with the fewest records publishes nothing of its noise"
        )
        return Charge(Measure.CENTRAL, epsilon_of(design.surveys), Unit.RECORD, condition=condition)

    def documents(self, study: Manifest) -> Mapping[Place, int]:
        """The pages, and what the seat says after some of them."""
        frame, most = frame_of(study), study.cohort.maximum
        seats = {place: frame.seat(number, most) for number, place in self.seats.items()}
        longest = {**super().documents(study), **seats}
        return {place: longest[place] for place in documents_of(self.rounds(study))}

    def circle(self, study: Manifest, survey: Survey, writer: bytes, pages: Pages) -> tuple[bytes, ...]:
        """All parties, the writer too; of shares the seat besides. Of noise the first party alone."""
        everybody = tuple(parties(pages))
        return {AGREED: everybody, SHARES: (*everybody, AGGREGATOR), NOISE: everybody[:1]}.get(survey.survey, ())

    def summary(self, study: Manifest) -> Sentence:
        """See `contract`."""
        return say(
            "Each party fits a model to its own records. The mean of all models is published with the noise of the "
            "party that has the fewest, and nobody learns which it is. It takes seven rounds, and whoever misses one "
            "ends the study for all."
        )

    def title(self, study: Manifest, survey: Survey) -> str:
        """See `contract`."""
        return title(study, survey) if survey.survey == SHARES else layout.ROUNDS[survey.round]

    def odds(self, study: Manifest) -> tuple[Sentence, ...]:
        """No odds, for every packet is exact: what leaves, what hides it, what is promised, and what it rests on."""
        survey, epsilon = weights_survey(study), epsilon_of(study.surveys)
        return (
            say(
                "Your machine fits a model to your records. Its {count} exact weights, and the number of your records, "
                "leave once, in shares. The records do not.",
                count=weights_of(survey).length,
            ),
            *((taken(survey, study.records),) if study.records else ()),
            say(
                "One share shows nothing. Only the sum of all parties' weights is opened, and only if every party "
                "writes in each round."
            ),
            say(
                "The party with the fewest records adds noise. It keeps the published mean to epsilon {epsilon} for "
                "each of your records by itself. Numbers of records count as known here: a smaller smallest number "
                "gives wider noise, so the mean tells something of it.",
                epsilon=format_epsilon(epsilon),
            ),
            say(
                "The party with the fewest records knows its own noise. If it guesses that it is the one, it can take "
                "the noise off, and then knows the exact sum of all others' weights."
            ),
            say(
                "If any party works with the aggregator, the two learn every party's number of records. With the first "
                "party it learns the exact sum of all weights too. Nothing shows that to you."
            ),
            say("The aggregator learns in which order the numbers of records stand, and not whose each of them is."),
            say(
                "Numbers are hidden under Paillier keys of {bits} bits, and under seals.",
                bits=8 * frame_of(study).modulus,
            ),
        )

    def packet_kinds(self, study: Manifest) -> tuple[PacketKind, ...]:
        """The kind that holds anything of the data. It is true always, so it has no odds and no picture."""
        survey = study.survey(SHARES)
        lines = tuple(ChanceLine(line, ()) for line in self.odds(study))
        drawn, asks = say("two of your packets"), say("exact numbers in shares")
        return (PacketKind(survey, (title(study, weights_survey(study)),), drawn, asks, lines, None),)
