"""The shared parts of the protocols that ship."""

from __future__ import annotations

from typing import Final

from anon.protocols.histogram.shared import HistogramProtocol
from anon.protocols.registry import ProtocolParts, Protocols
from anon.protocols.sum.shared import SumProtocol

HISTOGRAM: Final = ProtocolParts(HistogramProtocol())
SUM: Final = ProtocolParts(SumProtocol())
PROTOCOLS: Final = Protocols((HISTOGRAM, SUM))

load_model = PROTOCOLS.load_model
