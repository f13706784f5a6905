"""The protocol `trees` as one value. Its code is loaded late."""

from __future__ import annotations

from typing import Final

from anon.protocols.contract import SharedPart
from anon.protocols.late import LateDesigns, late

SHARED: Final = late(
    "anon.protocols.trees.shared:TreesShared",
    SharedPart,
    name="trees",
    designs=LateDesigns("anon.protocols.trees.designs:DESIGNS", "trees"),
)
