"""The protocol `groups` as one value. Its code is loaded late."""

from __future__ import annotations

from typing import Final

from anon.protocols.contract import CentralPart
from anon.protocols.late import LateDesigns, late

SHARED: Final = late(
    "anon.protocols.sum.groups.shared:GroupsShared",
    CentralPart,
    also=("circle",),  # of `LettersPart`, whose board is loaded late too
    name="groups",
    designs=LateDesigns("anon.protocols.sum.groups.designs:DESIGNS", "group-averaging"),
)
