"""The protocol `sum` as one value. Its code is loaded late: proofs, noise and shares come with it."""

from __future__ import annotations

from typing import Final

from anon.protocols.contract import CentralPart, DeclaredPart, GivenPart, SummedPart
from anon.protocols.late import LateDesigns, late

SHARED: Final = late(
    "anon.protocols.sum.shared:SumShared",
    SummedPart,
    CentralPart,
    DeclaredPart,
    GivenPart,
    name="sum",
    designs=LateDesigns(
        "anon.protocols.sum.designs:DESIGNS",
        "tables-sum", "marginals", "moments", "gradient", "averaging", "transfer", "rule",
    ),
)
