"""The protocol `groups` as one value. Its code is loaded late."""

from __future__ import annotations

from typing import Final

from anon.protocols.contract import CentralPart
from anon.protocols.late import LateFunction, late
from anon.protocols.sum.groups.sections import BOUNDS, DESIGN, WORDS, GroupAveraging
from anon.study.designs import Design

_FORM: Final = LateFunction("anon.protocols.sum.groups.layout:form")
SHARED: Final = late(
    "anon.protocols.sum.groups.shared:GroupsShared",
    CentralPart,
    also=("circle",),  # of `LettersPart`, whose board is loaded late too
    name="groups",
    designs={DESIGN: Design(GroupAveraging, _FORM, WORDS, BOUNDS)},
)
