"""The forms of the histogram's designs: the slots that the name of each stands for. Every manifest is held to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from anon.errors import InvalidValue
from anon.ldp import SCALE
from anon.protocols.histogram.asked import MIDDLE, SCORE, SIDE
from anon.study.designs import AskedSurvey, Tables
from anon.study.features import demand_features
from anon.study.structuring import kind_of


def one_packet(cards: Mapping[str, int], tables: Tables) -> None:
    """One slot, whose rows share the whole budget. Rounds of thresholds would need a packet each."""
    _demand_histogram_surveys(cards, tables)
    if len(tables) != 1:
        raise InvalidValue(f"design: one-packet has one slot, got {len(tables)}")
    if any(survey.kind == "threshold" for survey in tables[0]):
        raise InvalidValue("design: one-packet finds cuts in one round, got a threshold survey")


def paper(cards: Mapping[str, int], tables: Tables) -> None:
    """Histogram slots over disjoint features, and one binning slot for each feature whose cuts are sought."""
    _demand_histogram_surveys(cards, tables)
    asked: list[str] = []
    binned: list[str] = []
    for number, surveys in enumerate(tables):
        kinds, features = {survey.kind for survey in surveys}, {name for survey in surveys for name in survey.features}
        if kinds == {"histogram"}:
            asked += features
        elif len(features) == 1 and kinds in ({"quantile"}, {"threshold"}):
            binned += features
        else:
            raise InvalidValue(
                f"design: a slot of paper asks histograms or finds cuts of one feature, unlike slot {number}"
            )
    if not asked or len(set(asked)) != len(asked) or len(set(binned)) != len(binned):
        raise InvalidValue("design: paper has histogram slots, and no feature in two of them or in two binning slots")


def _demand_histogram_surveys(cards: Mapping[str, int], tables: Tables) -> None:
    demand_features(tuple(cards))
    for survey in (survey for surveys in tables for survey in surveys):
        if survey.kind not in _KINDS:
            raise InvalidValue(
                f"survey {survey.survey}: kind: expected one of {', '.join(_KINDS)}, got {kind_of(survey.kind)}"
            )
        if not survey.features:
            raise InvalidValue(f"survey {survey.survey}: expected one cardinality per feature")
        _KINDS[survey.kind](cards, survey)
        if survey.parameters and survey.kind not in ("bit", SCORE):
            raise InvalidValue(f"survey {survey.survey}: parameters belong to a one-bit survey")


def _demand_cells(cards: Mapping[str, int], survey: AskedSurvey) -> None:
    expected = 2
    for name, card in zip(survey.features, survey.cards, strict=True):
        if cards[name] != card:
            raise InvalidValue(
                f"survey {survey.survey}: {name} has {cards[name]} categories, the survey says {card}"
            )
        expected *= card
    if survey.m != expected:
        raise InvalidValue(f"survey {survey.survey}: expected m = {expected}, got {survey.m}")


def _demand_bit(cards: Mapping[str, int], survey: AskedSurvey) -> None:
    if survey.cards != tuple(cards[name] for name in survey.features):
        raise InvalidValue(f"survey {survey.survey}: expected the cardinality of {', '.join(survey.features)}")
    if survey.m != 2 or survey.mechanism != "krr":
        raise InvalidValue(f"survey {survey.survey}: a one-bit survey is answered by binary random response")
    centre, *above = survey.parameters or (0,)
    if survey.cards != (len(above),) or not 1 in set(above) <= {0, 1}:
        raise InvalidValue(f"survey {survey.survey}: expected a sign for each category of one feature, some 1")
    if not 0 < centre < SCALE:
        raise InvalidValue(f"survey {survey.survey}: expected a centre above 0 and below 2**64")


def _demand_rule(cards: Mapping[str, int], survey: AskedSurvey) -> None:
    if survey.cards != tuple(cards[name] for name in survey.features) or len(survey.features) < 2:
        raise InvalidValue(f"survey {survey.survey}: expected the cardinalities of at least two features")
    if survey.m != 2 or survey.mechanism != "krr":
        raise InvalidValue(f"survey {survey.survey}: a one-bit survey is answered by binary random response")
    centred = survey.kind == SCORE
    if len(survey.parameters) != centred or (centred and not 0 < survey.parameters[0] < SCALE):
        raise InvalidValue(f"survey {survey.survey}: expected a centre above 0 and below 2**64 of a score alone")


def _demand_levels(_: Mapping[str, int], survey: AskedSurvey) -> None:
    if len(survey.features) != 1 or survey.cards != (survey.m,):
        raise InvalidValue(f"survey {survey.survey}: a binning survey asks one feature of m levels")


_KINDS: dict[str, Callable[[Mapping[str, int], AskedSurvey], None]] = {
    "histogram": _demand_cells,
    "bit": _demand_bit,
    "quantile": _demand_levels,
    "threshold": _demand_levels,
    MIDDLE: _demand_rule,
    SIDE: _demand_rule,
    SCORE: _demand_rule,
}
