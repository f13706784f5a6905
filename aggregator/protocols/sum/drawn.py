"""Rows drawn from a graphical model, by a stream that everybody can repeat: SHAKE-256 of what is published.

Rows are not independent draws. Among those with one label and one parent's category, each category is as often as its
chance says, up to one row: the draws decide which rows, and who gets the odd one. So few rows are near the model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
from attrs import field, fields, frozen
from numpy.typing import NDArray

from aggregator.protocols.additive.reconstruct import Counts, Floats
from aggregator.protocols.additive.results import LearnedStudy
from aggregator.protocols.sum.graphical import GraphicalModel, graphical_model
from aggregator.protocols.sum.published import NoisySum
from anon.crypto import labels
from anon.protocols.contract import ROWS, Place
from anon.protocols.models.rows import PublishedRows, category_texts
from anon.protocols.vectors.tables import TableSums
from anon.wire.cbor import encode

SHOWN = 10
"""Rows that the report shows."""
_WHOLE = 2**30
"""The weights of a distribution's categories sum up to about this: as integers they are the same on every machine."""
Keys = NDArray[np.uint64]


@frozen(eq=False)
class LearnedRows(LearnedStudy):
    """The additive model of the tables, the graphical model of the same tables, and the rows drawn from it."""

    graphical: GraphicalModel = field(kw_only=True)
    rows: PublishedRows = field(kw_only=True)

    @property
    def results(self) -> Mapping[Place, bytes]:
        """The model and the rows."""
        return {**super().results, ROWS: self.rows.to_json().encode()}


def with_rows(learned: LearnedStudy, design: TableSums, published: NoisySum, count: int) -> LearnedRows:
    """The model of these tables with so many rows: a column for each feature, and the label's last, which is 1 where it
    is positive."""
    model, graphical = learned.model, graphical_model(design, published, learned.base_rate)
    grounds = [labels.DRAWN_ROWS, bytes.fromhex(model.study), published.units, list(published.values)]
    categories = drawn_categories(graphical, count, encode(grounds))
    columns = [np.array(category_texts(feature), dtype=object)[categories[feature.name]] for feature in model.features]
    columns.append(np.array(["0", "1"], dtype=object)[categories[""]])
    names = (*(feature.name for feature in model.features), model.label.name)
    cells = tuple(zip(*(column.tolist() for column in columns), strict=True))
    known = {attribute.name: getattr(learned, attribute.name) for attribute in fields(LearnedStudy)}
    return LearnedRows(**known, graphical=graphical, rows=PublishedRows(model.study, model.title, names, cells))


def rows_told(learned: LearnedStudy) -> dict[str, object]:
    """The report's first rows, and the pairs that the tree has; nothing for a study without rows."""
    if not isinstance(learned, LearnedRows):
        return {}
    tree = [(leaning.parent, leaning.name) for leaning in learned.graphical.leanings if leaning.parent]
    return {"rows": learned.rows, "first": learned.rows.rows[:SHOWN], "tree": tree}


def drawn_categories(model: GraphicalModel, count: int, seed: bytes) -> dict[str, Counts]:
    """The category of each feature in each row; the label's under no name. Each shape (count,)."""
    stream = hashlib.shake_256(seed).digest(8 * count * (len(model.leanings) + 1))
    keys = np.frombuffer(stream, dtype=">u8").astype(np.uint64).reshape(-1, count)
    found = {"": _spread(keys[0], model.label)}
    for own, leaning in zip(keys[1:], model.leanings, strict=True):
        above = found[leaning.parent] if leaning.parent else np.zeros(count, dtype=np.int64)
        drawn = np.zeros(count, dtype=np.int64)
        for label, parent in np.ndindex(*leaning.chances.shape[:2]):
            there = np.flatnonzero((found[""] == label) & (above == parent))
            drawn[there] = _spread(own[there], leaning.chances[label, parent])
        found[leaning.name] = drawn
    return found


def _spread(keys: Keys, chances: Floats) -> Counts:
    """Categories by their chances: the keys' order decides who gets which, the first key where the odd rows fall."""
    if not len(keys):
        return np.zeros(0, dtype=np.int64)
    ends = np.cumsum(np.rint(chances * _WHOLE).astype(np.int64))
    whole = int(ends[-1])
    start = (int(keys[0]) & 0xFFFFFFFF) * whole >> 32
    places = np.empty(len(keys), dtype=np.int64)
    places[np.argsort(keys >> np.uint64(32), kind="stable")] = (np.arange(len(keys)) * whole + start) // len(keys)
    return np.searchsorted(ends, places, side="right").astype(np.int64)
