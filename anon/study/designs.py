"""A design that a study can name: its section of the study file, and the form that its surveys and slots have.

An owner's policy allows designs by name, so a name that said nothing of the slots could be lied to. Each protocol holds
its own designs (`SharedPart.designs`). `anon.protocols.registry` holds a manifest to the form of its design.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol

from attrs import field

from anon.values import frozen


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
    def mechanism(self) -> str: ...

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
    of its slots.

    `words`: a sentence for each key of the section, as editors show it. `bounds`: of each key its part of the JSON
    Schema beside type and default (`anon.study.schema`).
    """

    section: type
    form: Form
    words: Mapping[str, str]
    bounds: Mapping[str, Mapping[str, object]] = field(factory=dict)


def most_in_a_window(surveys: Sequence[AskedSurvey], slots: Sequence[AskedSlot]) -> int:
    """The most packets that one peer can have in one window: of all slots, those with a row in it."""
    of_slots = [{surveys[row.survey].window for row in slot.rows} for slot in slots]
    return max((sum(window in some for some in of_slots) for window in set[Hashable]().union(*of_slots)), default=0)
