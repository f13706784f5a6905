"""A graphical model of published noisy tables: a tree of features, each of which leans on the label and its parent.

The form is the tree-augmented one of Friedman, Geiger and Goldszmidt (1997); a star has no parents. All steps are
closed forms, so that an audit repeats them. All tables are of the same n people, and the variance of their noise is
known:

1. Margins are means over all tables that have them, by precision.
2. Each table is moved onto its margins, by least squares.
3. The rest of a table, beyond independence, is shrunk by the noise that it has on average (James and Stein 1961).
4. The nearest distribution takes its place: no share is negative (Duchi and others 2008).
5. Of all pairs the tree of largest mutual information given the label is taken (Chow and Liu 1968).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from attrs import field, frozen

from aggregator.protocols.additive.reconstruct import Floats
from aggregator.protocols.sum.published import NoisySum
from anon.protocols.vectors.tables import TableSums

_DIGITS = 9
"""Of an information that is compared: the last bits of a logarithm differ between machines."""
Pair = tuple[str, str]


@frozen(eq=False)
class Leaning:
    """One feature's chances, shape (2, categories of the parent, or 1 without one, own categories)."""

    name: str
    parent: str
    chances: Floats = field(repr=False)


@frozen(eq=False)
class GraphicalModel:
    """The label's two chances, and the features, each after its parent. `information`: of each pair that was asked,
    given the label, in nats."""

    label: Floats
    leanings: tuple[Leaning, ...]
    information: Mapping[Pair, float]


def graphical_model(design: TableSums, published: NoisySum, rate: float) -> GraphicalModel:
    """The model of a sum of labelled tables, of one feature or two each, and of the label's share. Raises `Malformed`
    for another length."""
    tables, label = _tables(design, published), np.array([1 - rate, rate])
    variance = float(published.variance) / published.units**2
    margins = {name: _margin(name, tables, label, variance) for name in _names(design)}
    pairs = {
        pair: _joint(cells, margins[pair[0]], margins[pair[1]], label, variance)
        for pair, cells in tables.items()
        if len(pair) == 2
    }
    information = {pair: _information(cells) for pair, cells in pairs.items()}
    parents = _parents(list(margins), information)
    leanings = [_leaning(name, parent, margins, pairs) for name, parent in parents.items()]
    return GraphicalModel(label, tuple(leanings), information)


def _names(design: TableSums) -> list[str]:
    return list(dict.fromkeys(name for block in design.blocks for name in block.features))


def _tables(design: TableSums, published: NoisySum) -> dict[tuple[str, ...], Floats]:
    """Shares that sum to 1, the label on the last axis."""
    found = {}
    for block, cells in zip(design.blocks, design.split(published.values), strict=True):
        shares = np.array([float(cell) for cell in cells]) / published.units
        found[block.features] = (shares + (1 - shares.sum()) / len(shares)).reshape(block.shape)
    return found


def _margin(name: str, tables: Mapping[tuple[str, ...], Floats], label: Floats, variance: float) -> Floats:
    """Shares of a feature with the label, shape (categories, 2), by all tables that have it."""
    total, precision = np.zeros(2), 0.0
    for names, cells in tables.items():
        if name in names:
            others = tuple(at for at, other in enumerate(names) if other != name)
            weight = 1 / prod(cells.shape[at] for at in others)
            total, precision = total + weight * cells.sum(axis=others), precision + weight
    shares, merged = total / precision, 1 / precision
    shares = shares + (label - shares.sum(axis=0)) / len(shares)
    alone = np.outer(_nearest(_shrunk(shares.sum(axis=1), variance * merged * 2)), label)
    noise = variance * merged * 2 * float((label**2).sum()) * (len(shares) - 1)
    return _nearest_given(alone + _kept(shares - alone, noise) * (shares - alone), label)


def _shrunk(shares: Floats, variance: float) -> Floats:
    """Shares nearer to being alike, by as much as noise of this variance makes them differ."""
    alike = 1 / len(shares)
    found: Floats = alike + _kept(shares - alike, variance * (len(shares) - 1)) * (shares - alike)
    return found


def _joint(cells: Floats, first: Floats, second: Floats, label: Floats, variance: float) -> Floats:
    """Shares of two features with the label, shape (first, second, 2), moved onto their margins and shrunk: by itself
    the part that both labels have alike, and the rest."""
    rows, columns, _ = cells.shape
    cells = cells + (first - cells.sum(axis=1))[:, None] / columns
    cells = cells + (second - cells.sum(axis=0))[None] / rows
    apart = first[:, None] * second[None] / np.maximum(label, 1e-300)
    noise = variance * 2 * float((label**2).sum()) * (rows - 1) * (columns - 1)
    alike = (cells - apart).sum(axis=-1, keepdims=True) * label
    shrunk = sum((_kept(part, noise) * part for part in (alike, cells - apart - alike)), apart)
    return _nearest_given(shrunk, label)


def _kept(beyond: Floats, noise: float) -> float:
    """The part of a deviation that stays, given the sum of squares that noise has on average."""
    squares = float((beyond**2).sum())
    return max(0.0, 1 - noise / squares) if squares > 0 else 0.0


def _nearest_given(cells: Floats, label: Floats) -> Floats:
    """The nearest distribution whose shares of each label are these."""
    each = [_nearest(cells[..., sign].ravel(), float(label[sign])).reshape(cells.shape[:-1]) for sign in (0, 1)]
    return np.stack(each, axis=-1)


def _nearest(shares: Floats, total: float = 1.0) -> Floats:
    """The nearest vector without a negative entry that has this sum."""
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(shares) + 1)
    last = int(np.flatnonzero(falling - excess >= 0)[-1]) if total > 0 else 0
    found: Floats = np.maximum(shares - excess[last], 0.0)
    return found


def _information(cells: Floats) -> float:
    """The mutual information of two features given the label, in nats."""
    apart = cells.sum(axis=1)[:, None] * cells.sum(axis=0)[None]
    label = np.broadcast_to(cells.sum(axis=(0, 1)), cells.shape)
    there = cells > 0
    ratio = np.log(cells[there] * label[there] / apart[there])
    return max(0.0, round(float((cells[there] * ratio).sum()), _DIGITS))


def _parents(names: Sequence[str], information: Mapping[Pair, float]) -> dict[str, str]:
    """Each feature's parent in the tree of largest information, parents first; none where pairs tell nothing."""
    near, root = {name: list[str]() for name in names}, {name: name for name in names}
    for pair in sorted(information, key=lambda pair: (-information[pair], names.index(pair[0]), names.index(pair[1]))):
        first, second = root[pair[0]], root[pair[1]]
        if information[pair] > 0 and first != second:
            near[pair[0]].append(pair[1])
            near[pair[1]].append(pair[0])
            root = {name: first if end == second else end for name, end in root.items()}
    found = dict[str, str]()
    for start in names:
        waiting = [] if start in found else [(start, "")]
        while waiting:
            name, parent = waiting.pop(0)
            found[name] = parent
            waiting += [(other, name) for other in near[name] if other != parent]
    return found


def _leaning(name: str, parent: str, margins: Mapping[str, Floats], pairs: Mapping[Pair, Floats]) -> Leaning:
    alone = _given(margins[name].T[:, None], np.full((2, 1, len(margins[name])), 1 / len(margins[name])))
    if not parent:
        return Leaning(name, "", alone)
    cells = pairs[parent, name] if (parent, name) in pairs else pairs[name, parent].swapaxes(0, 1)
    return Leaning(name, parent, _given(np.moveaxis(cells, -1, 0), alone))


def _given(joint: Floats, otherwise: Floats) -> Floats:
    """Chances along the last axis, and others where nobody is."""
    total = joint.sum(axis=-1, keepdims=True)
    found: Floats = np.where(total > 0, joint / np.where(total > 0, total, 1.0), otherwise)
    return found
