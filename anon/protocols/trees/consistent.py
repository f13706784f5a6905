"""Counts of a tree made consistent: weighted least squares in two passes, then counts that are not negative.

Source: Hay, Rastogi, Miklau and Suciu 2010, "Boosting the Accuracy of Differentially Private Histograms Through
Consistency", section 4, with weights. One pass goes up and one goes down. Noisy counts alone enter, so it costs no
epsilon. The paper asks for both in one program (its O1 to O3). Here negatives go afterwards, level by level.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from attrs import evolve

from anon.ldp.simplex import nearest_shares
from anon.protocols.trees.growing import TreeNode

Numbers = tuple[float, ...]


def least_squares(root: TreeNode, total: int | None = None) -> TreeNode:
    """Return the tree whose children's counts add up to their parent's, and which is nearest to the noisy counts.

    Distances are squared and divided by `spread`. `total`: of all classes at the root, exact.
    """
    return _downwards(root, total, negative=True)


def consistent(root: TreeNode, total: int | None = None) -> TreeNode:
    """Return the same without negative counts: each node's children are the nearest that add up to it."""
    return _downwards(root, total, negative=False)


def _downwards(root: TreeNode, total: int | None, negative: bool) -> TreeNode:
    upwards = _upwards(root)
    counts = upwards.counts
    if total is not None:
        missing = (total - fsum(counts)) / len(counts)
        counts = tuple(count + missing for count in counts)
    if not negative:
        counts = _parts(counts, total) if total is not None else tuple(max(count, 0.0) for count in counts)
    return _settled(upwards, counts, negative)


def _upwards(node: TreeNode) -> TreeNode:
    """The best estimates from each node and those below it; `spread` becomes their variance."""
    if not node.children:
        return node
    children = tuple(map(_upwards, node.children))
    sums = _sums(children)
    below = fsum(child.spread for child in children)
    if not node.counts:
        return evolve(node, counts=sums, spread=below, children=children)
    weight = below / (below + node.spread)
    counts = tuple(weight * own + (1 - weight) * other for own, other in zip(node.counts, sums, strict=True))
    return evolve(node, counts=counts, spread=weight * node.spread, children=children)


def _settled(node: TreeNode, counts: Numbers, negative: bool) -> TreeNode:
    """The same tree below a node whose counts are fixed: its children share what is missing by their variances."""
    if not node.children:
        return evolve(node, counts=counts)
    below = fsum(child.spread for child in node.children)
    missing = [count - found for count, found in zip(counts, _sums(node.children), strict=True)]
    moved = [
        tuple(own + lack * child.spread / below for own, lack in zip(child.counts, missing, strict=True))
        for child in node.children
    ]
    if not negative:
        by_class = [_parts(column, count) for column, count in zip(zip(*moved, strict=True), counts, strict=True)]
        moved = list(zip(*by_class, strict=True))
    children = tuple(_settled(child, own, negative) for child, own in zip(node.children, moved, strict=True))
    return evolve(node, counts=counts, children=children)


def _sums(nodes: Sequence[TreeNode]) -> Numbers:
    return tuple(fsum(column) for column in zip(*(node.counts for node in nodes), strict=True))


def _parts(numbers: Numbers, total: float) -> Numbers:
    """The nearest numbers that are at least 0 and add up to the total."""
    if total <= 0:
        return (0.0,) * len(numbers)
    return tuple(total * share for share in nearest_shares([number / total for number in numbers]))
