"""The protocol `oblivious` as one value. Its code is loaded late."""

from __future__ import annotations

from typing import Final

from anon.protocols.contract import SharedPart
from anon.protocols.late import LateDesigns, late

SHARED: Final = late(
    "anon.protocols.sum.oblivious.shared:ObliviousShared",
    SharedPart,
    also=("circle",),  # of `LettersPart`, whose board is loaded late too
    name="oblivious",
    designs=LateDesigns("anon.protocols.sum.oblivious.designs:DESIGNS", "oblivious-averaging"),
)
