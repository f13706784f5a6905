"""The protocols that a peer knows, each with its part on the owner's machine."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from anon.protocols import installed
from anon.protocols.registry import Protocols
from peer.protocols.histogram import HistogramPart
from peer.protocols.sum.late import LateSumPart

PROTOCOLS: Final = Protocols((
    evolve(installed.HISTOGRAM, peer=HistogramPart()),
    evolve(installed.SUM, peer=LateSumPart()),
))


def load_all() -> None:
    """Load what is loaded late elsewhere, for a process that cannot open files later."""
    import peer.protocols.sum.part  # noqa: F401  (loading them is all)
