"""The protocol `trees` as both sides know it: Fioretto and Van Hentenryck 2019, repaired (docs/errata.md).

In one round each member posts a private tree of its records. Everybody can draw the rows of all trees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from anon.errors import Malformed
from anon.ldp import NanoEpsilon, format_epsilon, nano
from anon.protocols.board import longest_page, page_of
from anon.protocols.charge import Charge, Measure, Unit
from anon.protocols.contract import MOST_BOARD, ROWS, Layout, Place, Result, Round
from anon.protocols.models.rows import longest_rows
from anon.protocols.trees import layout
from anon.protocols.trees.sections import Trees
from anon.protocols.words import ChanceLine, PacketKind
from anon.study.manifest import Manifest, Survey, Window
from anon.study.proposal import Proposal
from anon.text.foreign import Quoted
from anon.text.sentences import Figure, Sentence, say

MOST_DRAWN = 100_000
"""Rows of all trees of a study."""


class TreesShared:
    """See `anon.protocols.contract`."""

    def share_sizes(self, study: Manifest) -> tuple[int, ...]:
        """None: trees are open texts."""
        return ()

    def windows(self, proposal: Proposal, settled: int) -> tuple[Window, ...]:
        """One."""
        return (Window(settled, settled + proposal.schedule.collect),)

    def lay_out(self, proposal: Proposal, windows: tuple[Window, ...], randbelow: Callable[[int], int]) -> Layout:
        """See `contract`. Nothing is drawn."""
        design = proposal.design
        if not isinstance(design, Trees):
            raise TypeError(f"no design of trees: {design.kind}")
        epsilon = nano(str(design.epsilon))
        survey = layout.survey_of(
            proposal.features, design.target, design.depth, design.rows, epsilon, windows[0]
        )
        return Layout((survey,), layout.SLOTS)

    def check(self, study: Manifest) -> None:
        """See `contract`."""
        layout.check(study)
        rows = study.surveys[0].parameters[1]
        if not 1 <= rows * study.cohort.maximum <= MOST_DRAWN or self.results(study)[ROWS] > MOST_BOARD:
            raise Malformed("manifest: its rows are too many for a result; lower design.rows or cohort.maximum")

    def exposure(self, design: Layout) -> Charge:
        """The epsilon of the one tree, for a record replaced: all that leaves is published, so it is central too."""
        if len(design.surveys) != 1:
            raise Malformed("manifest: its surveys are not those of trees; do not take part")
        condition = say("your own machine draws the noise as this program does; nobody else needs to be honest")
        return Charge(Measure.CENTRAL, design.surveys[0].epsilon, Unit.RECORD, condition=condition)

    def per_attribute(self, design: Layout) -> NanoEpsilon:
        """There is no such figure: the whole amount."""
        return NanoEpsilon(self.exposure(design).amount)

    def rounds(self, study: Manifest) -> tuple[Round, ...]:
        """One."""
        return (Round(study.surveys[0].window, "collecting", "posting trees", (0,), page_of(0)),)

    def documents(self, study: Manifest) -> Mapping[Place, int]:
        """The page of all trees."""
        return {page_of(0): longest_page(study, (0,))}

    def results(self, study: Manifest) -> Mapping[Place, int]:
        """The rows."""
        many = study.surveys[0].parameters[1] * study.cohort.maximum
        return {ROWS: longest_rows(study.features, len(study.to_bytes()), many)}

    def summary(self, study: Manifest) -> Sentence:
        """See `contract`."""
        return say(
            "Each member publishes a noisy tree of its records once. Rows that stand for nobody are drawn from all "
            "trees, and published."
        )

    def title(self, study: Manifest, survey: Survey) -> Sentence:
        """See `contract`."""
        target = layout.target_of(study)
        return say("a noisy tree of {label}", label=Quoted(target.name if target else study.label.name))

    def odds(self, study: Manifest) -> tuple[Sentence, ...]:
        """No odds: what leaves, what hides it, and what is promised."""
        survey = study.surveys[0]
        return (
            say(
                "Your machine grows a tree: it splits your records in two, again and again, at most {depth} times on a "
                "path. It chooses each split and counts each part with noise. The records do not leave.",
                depth=survey.parameters[0],
            ),
            say(
                "The tree takes {most} of your records at most. If you have more, a random draw on your machine "
                "decides which ones count.",
                most=study.records.most if study.records else 1,
            ),
            say(
                "It keeps to epsilon {epsilon} for each of your records by itself, whoever sees it. It does not tell "
                "how many records you have, and has the same size with none.",
                epsilon=Figure(format_epsilon(survey.epsilon)),
            ),
            say(
                "Your tree is public as it is, not only a sum over members. Of many records alike it shows what they "
                "have in common."
            ),
            say(
                "From all trees everybody can make up the same rows, at most {rows} of each tree. They stand for "
                "nobody, and tell nothing about you that the trees do not.",
                rows=survey.parameters[1],
            ),
        )

    def packet_kinds(self, study: Manifest) -> tuple[PacketKind, ...]:
        """The one kind of packet, which has neither odds nor a picture."""
        survey = study.surveys[0]
        lines = tuple(ChanceLine(line, ()) for line in self.odds(study))
        drawn, asks = say("your one packet"), say("a noisy tree")
        return (PacketKind(survey, (self.title(study, survey),), drawn, asks, lines, None),)

    def read_result(self, text_untrusted: str) -> Result:
        """None: rows have a form of their own."""
        raise Malformed("model: a study of trees has rows alone; fetch it again")
