"""The protocol `masks` as one value. Its code is loaded late."""

from __future__ import annotations

from typing import Final

from anon.protocols.contract import GivenPart
from anon.protocols.late import LateFunction, late
from anon.protocols.sum.masks.sections import BOUNDS, SECTIONS, WORDS
from anon.study.designs import Design

_FORMS: Final = "anon.protocols.sum.masks.layout:"
SHARED: Final = late(
    "anon.protocols.sum.masks.shared:MasksShared",
    GivenPart,
    also=("circle",),  # of `LettersPart`, whose board is loaded late too
    name="masks",
    designs={
        kind: Design(section, LateFunction(_FORMS + kind.removeprefix("masked-") + "_form"), WORDS[kind], BOUNDS[kind])
        for kind, section in SECTIONS.items()
    },
)
