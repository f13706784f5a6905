"""The protocol `trees` as one value. Its code is loaded late."""

from __future__ import annotations

from typing import Final

from anon.protocols.contract import SharedPart
from anon.protocols.late import LateFunction, late
from anon.protocols.trees.sections import BOUNDS, DESIGN, WORDS, Trees
from anon.study.designs import Design

_FORM: Final = LateFunction("anon.protocols.trees.layout:form")
SHARED: Final = late(
    "anon.protocols.trees.shared:TreesShared",
    SharedPart,
    name="trees",
    designs={DESIGN: Design(Trees, _FORM, WORDS, BOUNDS)},
)
