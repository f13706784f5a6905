"""The protocols that an aggregator knows, each with its part there and in the audit."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from aggregator.protocols.contract import EndingPart, SeatedPart
from aggregator.protocols.histogram.part import HistogramPart
from aggregator.protocols.sum.part import SumPart
from anon.protocols import installed
from anon.protocols.late import late
from anon.protocols.registry import Protocols

PROTOCOLS: Final = Protocols((
    evolve(installed.HISTOGRAM, aggregator=HistogramPart()),
    evolve(installed.SUM, aggregator=SumPart()),
    evolve(installed.MASKS, aggregator=late("aggregator.protocols.sum.masks:OpeningPart", EndingPart)),
    evolve(
        installed.OBLIVIOUS,
        aggregator=late("aggregator.protocols.sum.oblivious:CharliePart", EndingPart, SeatedPart),
    ),
    evolve(installed.GROUPS, aggregator=late("aggregator.protocols.sum.groups:EnsemblePart", EndingPart)),
    evolve(installed.TREES, aggregator=late("aggregator.protocols.trees:DrawingPart", EndingPart)),
))
