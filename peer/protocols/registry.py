"""The peer's parts by the name of their protocol."""

from __future__ import annotations

from anon.errors import Malformed
from anon.protocols.registry import HISTOGRAM, SUM_NAME, protocol_of
from anon.study.manifest import Manifest
from peer.protocols.contract import PeerPart
from peer.protocols.histogram import HistogramPart

PARTS: dict[str, PeerPart] = {HISTOGRAM.name: HistogramPart()}


def part_of(manifest: Manifest) -> PeerPart:
    """The part of the study's protocol. Raises `Malformed` for an unknown one."""
    name = protocol_of(manifest).name
    if name == SUM_NAME and name not in PARTS:
        from peer.protocols.sum import SumPart  # when such a study is there

        PARTS[name] = SumPart()
    if name not in PARTS:
        raise Malformed(f"manifest: protocol {name!r} cannot be run here; update this program")
    return PARTS[name]
