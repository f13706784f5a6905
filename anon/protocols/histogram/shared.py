"""The histogram protocol as both sides know it: what a study of it must satisfy, exposes and says of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import ClassVar

from anon.errors import Malformed
from anon.ldp import NanoEpsilon
from anon.protocols.charge import Charge, local
from anon.protocols.contract import MODEL, Layout, Place, Result, Round
from anon.protocols.histogram import describe, ruled
from anon.protocols.histogram import thresholds as cuts
from anon.protocols.histogram.asked import asks_label
from anon.protocols.histogram.design import Windows, binning_rounds, lay_out
from anon.protocols.histogram.forms import one_packet, paper
from anon.protocols.histogram.sections import BOUNDS, WORDS, OnePacket, Paper
from anon.protocols.words import PacketKind
from anon.study.cost import attribute_epsilon, total_epsilon
from anon.study.designs import Design
from anon.study.manifest import Manifest, Survey, Window
from anon.study.proposal import Proposal
from anon.text.sentences import Sentence
from anon.values import frozen

_NUMBER, _TEXT = 32, 6
"""Characters of the longest float in JSON with its comma; bytes that JSON may make of one byte of a text."""


@frozen
class HistogramProtocol:
    """Packets of perturbed histogram cells (Cyphers & Veeramachaneni 2017, section VII). See `contract`."""

    name = "histogram"
    designs: ClassVar[Mapping[str, Design]] = {
        "one-packet": Design(OnePacket, one_packet, WORDS["one-packet"], BOUNDS["one-packet"]),
        "paper": Design(Paper, paper, WORDS["paper"], BOUNDS["paper"]),
    }

    def share_sizes(self, study: Manifest) -> tuple[int, ...]:
        """None: every answer is perturbed."""
        return ()

    def windows(self, proposal: Proposal, settled: int) -> tuple[Window, ...]:
        """One window for each binning round, then collection."""
        schedule = proposal.schedule
        rounds = binning_rounds(proposal)
        binning = _rounds(settled, schedule.binning, schedule.settle, rounds)
        opens = settled + (schedule.binning + schedule.settle if rounds else 0)
        return (*binning, Window(opens, opens + schedule.collect))

    def lay_out(self, proposal: Proposal, windows: tuple[Window, ...], randbelow: Callable[[int], int]) -> Layout:
        """See `contract`."""
        return lay_out(proposal, Windows(windows[:-1], windows[-1]), randbelow)

    def check(self, study: Manifest) -> None:
        """Every answer is perturbed, every cut can be found, and a rule is about the declared directions."""
        if study.part or any(survey.exact for survey in study.surveys):
            raise Malformed("manifest: the histogram has no exact survey, and no part of its own; do not take part")
        cuts.check(study)
        ruled.check(study)

    def exposure(self, design: Layout) -> Charge:
        """The record-level epsilon by the surveys' actual probabilities; delta is 0 (pure)."""
        return local(total_epsilon(design.surveys, design.slots))

    def per_attribute(self, design: Layout) -> NanoEpsilon:
        """See `contract`."""
        return NanoEpsilon(attribute_epsilon(design.surveys, design.slots, asks_label))

    def enough(self, study: Manifest) -> int | None:
        """See `DeclaredPart`."""
        return ruled.enough_for(study) if ruled.has_rule(study) else None

    def rounds(self, study: Manifest) -> tuple[Round, ...]:
        """The rounds that find cuts, then collection."""
        turns = sorted({survey.round for survey in study.surveys if not asks_label(survey)})
        finding = [_finding_round(study, turn, number) for number, turn in enumerate(turns, 1)]
        asked = [survey for survey in study.surveys if asks_label(survey)]
        collection = [Round(asked[0].window, "collecting", "collection", _numbers(asked))] if asked else []
        return (*finding, *collection)

    def documents(self, study: Manifest) -> Mapping[Place, int]:
        """The thresholds of every round and the edges; see `contract`."""
        return cuts.longest_documents(study)

    def results(self, study: Manifest) -> Mapping[Place, int]:
        """One model of tables, whose texts are the manifest's. A table belongs to features of a survey or to one
        feature, and holds three numbers a cell; a feature has at most as many cuts as categories."""
        asked = [survey for survey in study.surveys if asks_label(survey)]
        names = sum(len(name) + _NUMBER for survey in asked for name in survey.features)
        cells = sum(prod(survey.cards) for survey in asked)
        cells += 2 * sum(feature.cardinality for feature in study.features)
        tables = len(asked) + len(study.features)
        return {MODEL: _TEXT * len(study.to_bytes()) + names + _NUMBER * (3 * cells + 16 * tables)}

    def summary(self, study: Manifest) -> Sentence:
        """See `contract`."""
        return describe.summary(study)

    def title(self, study: Manifest, survey: Survey) -> str:
        """See `contract`."""
        return describe.survey_title(study, survey)

    def odds(self, study: Manifest) -> tuple[Sentence, ...]:
        """See `contract`."""
        return describe.odds(study)

    def packet_kinds(self, study: Manifest) -> tuple[PacketKind, ...]:
        """See `contract`."""
        return describe.packet_kinds(study)

    def read_result(self, text_untrusted: str) -> Result:
        """None: tables name no protocol."""
        raise Malformed("model: tables name no protocol; fetch it again")


def _finding_round(study: Manifest, turn: int, number: int) -> Round:
    surveys = cuts.surveys_of_round(study, turn)
    name = f"finding cuts, round {number}"
    return Round(surveys[0].window, "binning", name, _numbers(surveys), cuts.place_of(study, turn))


def _numbers(surveys: Sequence[Survey]) -> tuple[int, ...]:
    return tuple(survey.survey for survey in surveys)


def _rounds(start: int, length: int, settle: int, rounds: int) -> tuple[Window, ...]:
    if rounds == 0:
        return ()
    if rounds == 1:
        return (Window(start, start + length),)
    turn = length // rounds
    gap = min(settle, turn // 4)
    if gap < 1:
        raise Malformed(f"schedule.binning: expected at least 4 seconds for each of {rounds} rounds, got {length} s")
    return tuple(Window(start + k * turn, start + (k + 1) * turn - gap) for k in range(rounds))
