"""The shared parts of the protocols that ship."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from anon.protocols.histogram.shared import HistogramProtocol
from anon.protocols.models.published import PublishedModel
from anon.protocols.registry import ProtocolParts, Protocols
from anon.protocols.sum.shared import SumProtocol

HISTOGRAM: Final = ProtocolParts(HistogramProtocol())
SUM: Final = ProtocolParts(SumProtocol())
PROTOCOLS: Final = Protocols((HISTOGRAM, SUM))


def load_model(path: Path | str) -> PublishedModel:
    """A published model from a file: `model.json` of an export. Raises `Malformed`."""
    return PROTOCOLS.load_model(path)
