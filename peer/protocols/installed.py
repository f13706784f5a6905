"""The protocols that a peer knows, each with its part on the owner's machine."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from anon.protocols import installed
from anon.protocols.late import late
from anon.protocols.registry import Protocols
from peer.protocols.contract import CorrespondingPart, SharingPart
from peer.protocols.histogram import HistogramPart

PROTOCOLS: Final = Protocols((
    evolve(installed.HISTOGRAM, peer=HistogramPart()),
    evolve(installed.SUM, peer=late("peer.protocols.sum.part:SumPart", SharingPart)),
    evolve(installed.MASKS, peer=late("peer.protocols.sum.masks:MasksPart", CorrespondingPart)),
    evolve(installed.OBLIVIOUS, peer=late("peer.protocols.sum.oblivious:ObliviousPart", CorrespondingPart)),
    evolve(installed.GROUPS, peer=late("peer.protocols.sum.groups:GroupsPart", CorrespondingPart)),
    evolve(installed.TREES, peer=late("peer.protocols.trees:TreesPart", CorrespondingPart)),
))


def load_all() -> None:
    """Load what is loaded late elsewhere, for a process that cannot open files later."""
    import anon.protocols.sum.groups.shared
    import anon.protocols.sum.oblivious.shared
    import anon.protocols.trees.shared  # noqa: F401
    import peer.protocols.sum.groups
    import peer.protocols.sum.masks
    import peer.protocols.sum.oblivious
    import peer.protocols.sum.part
    import peer.protocols.trees  # noqa: F401  (loading them is all)

    tuple(PROTOCOLS.designs.values())  # the code of each comes when it is asked for
