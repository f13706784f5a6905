"""The protocol `oblivious` as one value. Its code is loaded late."""

from __future__ import annotations

from typing import Final

from anon.protocols.contract import SharedPart
from anon.protocols.late import LateFunction, late
from anon.protocols.sum.oblivious.sections import BOUNDS, DESIGN, WORDS, ObliviousAveraging
from anon.study.designs import Design

_FORM: Final = LateFunction("anon.protocols.sum.oblivious.layout:form")
SHARED: Final = late(
    "anon.protocols.sum.oblivious.shared:ObliviousShared",
    SharedPart,
    also=("circle",),  # of `LettersPart`, whose board is loaded late too
    name="oblivious",
    designs={DESIGN: Design(ObliviousAveraging, _FORM, WORDS, BOUNDS)},
)
