"""The shared parts of the protocols that ship."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from anon.ldp import NanoEpsilon
from anon.protocols.cost_words import epsilon_of
from anon.protocols.histogram.shared import HistogramProtocol
from anon.protocols.models.published import PublishedModel
from anon.protocols.registry import ProtocolParts, Protocols
from anon.protocols.sum import protocol as exact_sums
from anon.protocols.sum.groups import protocol as groups
from anon.protocols.sum.masks import protocol as masks
from anon.protocols.sum.oblivious import protocol as oblivious
from anon.protocols.trees import protocol as trees
from anon.study.manifest import Manifest

HISTOGRAM: Final = ProtocolParts(HistogramProtocol())
SUM: Final = ProtocolParts(exact_sums.SHARED)
MASKS: Final = ProtocolParts(masks.SHARED)
OBLIVIOUS: Final = ProtocolParts(oblivious.SHARED)
GROUPS: Final = ProtocolParts(groups.SHARED)
TREES: Final = ProtocolParts(trees.SHARED)
PROTOCOLS: Final = Protocols((HISTOGRAM, SUM, MASKS, OBLIVIOUS, GROUPS, TREES))


def declared_epsilon(manifest: Manifest) -> NanoEpsilon:
    """The one epsilon (1e-9) that every text names, of a manifest as `parse_manifest` reads it. Raises `Malformed` for
    a study of another program's protocol."""
    return epsilon_of(PROTOCOLS.carried(manifest))


def load_model(path: Path | str) -> PublishedModel:
    """A published model from a file: `model.json` of an export. Raises `Malformed`.

    >>> from pathlib import Path
    >>> from anon.protocols.models.linear import LinearModel
    >>> from anon.study.features import Feature, Label
    >>> from anon.protocols.vectors.columns import Column
    >>> late = Label("late", "Late.", "SELECT late FROM diary", (1,), (0,), "negative")
    >>> cups = Feature("cups", "numeric", "Cups.", "SELECT cups FROM diary", missing=2, range=(0, 10), cuts=(3,))
    >>> coffee = LinearModel("", "Coffee", late, (cups,), (Column("cups", 2, 8),), weights=(4.0,), intercept=-1.0)
    >>> _ = Path("model.json").write_text(coffee.to_json())
    >>> round(load_model("model.json").predict({"cups": 6}).probability, 2)
    0.73
    """
    return PROTOCOLS.load_model(path)
