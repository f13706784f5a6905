"""The peer's parts by the name of their protocol."""

from __future__ import annotations

from anon.errors import Malformed
from anon.protocols import registry
from anon.protocols.registry import HISTOGRAM, SUM_NAME, protocol_of
from anon.study.manifest import Manifest
from peer.protocols.contract import PeerPart
from peer.protocols.histogram import HistogramPart

PARTS: dict[str, PeerPart] = {HISTOGRAM.name: HistogramPart()}


def enter_all() -> None:
    """Load the parts of all protocols, for a process that cannot open files later."""
    registry.enter_all()
    _enter_sum()


def part_of(manifest: Manifest) -> PeerPart:
    """The part of the study's protocol. Raises `Malformed` for an unknown one."""
    name = protocol_of(manifest).name
    if name == SUM_NAME and name not in PARTS:
        _enter_sum()  # when such a study is there
    if name not in PARTS:
        raise Malformed(f"manifest: protocol {name!r} cannot be run here; update this program")
    return PARTS[name]


def _enter_sum() -> None:
    from peer.protocols.sum import SumPart

    PARTS[SUM_NAME] = SumPart()
