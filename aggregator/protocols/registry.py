"""The aggregator's parts by the name of their protocol."""

from __future__ import annotations

from aggregator.protocols.contract import AggregatorPart
from aggregator.protocols.histogram.part import HistogramPart
from aggregator.protocols.sum.part import SumPart
from anon.errors import Malformed
from anon.protocols.registry import HISTOGRAM, SUM_NAME, protocol_of
from anon.study.manifest import Manifest

PARTS: dict[str, AggregatorPart] = {HISTOGRAM.name: HistogramPart(), SUM_NAME: SumPart()}


def part_of(manifest: Manifest) -> AggregatorPart:
    """The part of the study's protocol. Raises `Malformed` for an unknown one."""
    name = protocol_of(manifest).name
    if name not in PARTS:
        raise Malformed(f"manifest: protocol {name!r} cannot be run here; update this program")
    return PARTS[name]
