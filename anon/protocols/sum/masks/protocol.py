"""The protocol `masks` as one value. Its code is loaded late."""

from __future__ import annotations

from typing import Final

from anon.protocols.contract import GivenPart
from anon.protocols.late import LateDesigns, late

SHARED: Final = late(
    "anon.protocols.sum.masks.shared:MasksShared",
    GivenPart,
    also=("circle",),  # of `LettersPart`, whose board is loaded late too
    name="masks",
    designs=LateDesigns(
        "anon.protocols.sum.masks.designs:DESIGNS", "masked-moments", "masked-averaging", "masked-transfer"
    ),
)
