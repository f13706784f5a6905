"""The designs that a study can name, each with the form that its surveys and slots have. Every manifest is held to it
when it is built.

An owner's policy allows designs by name, so a name that said nothing of the slots could be lied to. The histogram's two
stand here; a further protocol enters its own by `anon.protocols.registry.register`. A name that is not known yet has
that module imported: a program that never asked for a protocol reads the same manifests as one that did.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from importlib import import_module
from typing import Protocol

from attrs import frozen

from anon.errors import InvalidValue
from anon.study.features import demand_features
from anon.study.parsing import kind_of


class AskedSurvey(Protocol):
    """The part of a survey that a design's form rests on."""

    @property
    def survey(self) -> int: ...

    @property
    def kind(self) -> str: ...

    @property
    def features(self) -> tuple[str, ...]: ...

    @property
    def cards(self) -> tuple[int, ...]: ...

    @property
    def m(self) -> int: ...

    @property
    def parameters(self) -> tuple[int, ...]: ...

    @property
    def window(self) -> Hashable: ...


class AskedRow(Protocol):
    """A row of a slot's table."""

    @property
    def survey(self) -> int: ...


class AskedSlot(Protocol):
    """A slot with its rows."""

    @property
    def rows(self) -> Sequence[AskedRow]: ...


Tables = Sequence[Sequence[AskedSurvey]]
"""For each slot the surveys of its rows."""

Form = Callable[[Mapping[str, int], Tables], None]
"""Raises `InvalidValue` for slots of another form. Given the cardinality of each feature of the study, by name."""


@frozen
class Design:
    """One `design.kind`: the class of its section of the study file (`anon.study.proposal.DesignSection`), and the form
    of its slots."""

    section: type
    form: Form


def demand_design(
    design: str, cards: Mapping[str, int], surveys: Sequence[AskedSurvey], slots: Sequence[AskedSlot]
) -> None:
    """Raises `InvalidValue` for a design that this program does not know, and for slots of another form than it has."""
    if design not in FORMS:
        enter_protocols()
    if design not in FORMS:
        raise InvalidValue(f"design: expected one of {', '.join(FORMS)}, got {kind_of(design)}; update this program")
    FORMS[design](cards, [[surveys[row.survey] for row in slot.rows] for slot in slots])


def most_in_a_window(surveys: Sequence[AskedSurvey], slots: Sequence[AskedSlot]) -> int:
    """The most packets that one peer can have in one window: of all slots, those with a row in it."""
    of_slots = [{surveys[row.survey].window for row in slot.rows} for slot in slots]
    return max((sum(window in some for some in of_slots) for window in set[Hashable]().union(*of_slots)), default=0)


def enter_protocols() -> None:
    """Have every protocol of this program enter its designs."""
    import_module("anon.protocols.registry").enter_all()  # late: it is built on this package


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


def _demand_levels(_: Mapping[str, int], survey: AskedSurvey) -> None:
    if len(survey.features) != 1 or survey.cards != (survey.m,):
        raise InvalidValue(f"survey {survey.survey}: a binning survey asks one feature of m levels")


_KINDS: dict[str, Callable[[Mapping[str, int], AskedSurvey], None]] = {
    "histogram": _demand_cells,
    "bit": _demand_bit,
    "quantile": _demand_levels,
    "threshold": _demand_levels,
}

FORMS: dict[str, Form] = {"one-packet": one_packet, "paper": paper}
"""The form of each design, by its name."""
