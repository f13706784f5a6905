"""Rows that stand for nobody, drawn from the leaves of a tree, and labels from the trees of all.

Nothing here sees a record, so it costs no epsilon. Everybody who has the trees can draw the rows: with the same bytes
they are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import floor, fsum

from anon.noise.bernoulli import Coins
from anon.protocols.trees.attributes import Attribute, LabelledRow, Places, Row, held, whole
from anon.protocols.trees.growing import TreeNode

Leaf = tuple[tuple[Places, ...], TreeNode]
"""The active places of each attribute, and the node."""


def leaves(root: TreeNode, active: tuple[Places, ...]) -> Iterator[Leaf]:
    """The leaves in order; `active`: the places of each attribute at the root."""
    if root.split is None:
        yield active, root
        return
    at = root.split.attribute
    for child, places in zip(root.children, sides(root, active[at]), strict=True):
        yield from leaves(child, (*active[:at], places, *active[at + 1 :]))


def sides(node: TreeNode, active: Places) -> Sequence[Places]:
    """The places of each child: two sides, or one for every active place where a node has another number of them."""
    if node.split is None or node.split.first:
        return (node.split.first, active & ~node.split.first) if node.split else ()
    return [1 << place for place in held(active)]


def rows(root: TreeNode, attributes: Sequence[Attribute], coins: Coins) -> Iterator[LabelledRow]:
    """Draw as many rows as the counts of the leaves say, each with the commonest class of its own leaf.

    The places of a row are uniform among those of its leaf. All leaves together give the rounded sum of their counts.
    The tree is `anon.protocols.trees.consistent.consistent`.
    """
    before = 0.0
    for active, leaf in leaves(root, whole(attributes)):
        after = before + fsum(max(count, 0.0) for count in leaf.counts)
        inside, label = [list(held(places)) for places in active], commonest(leaf.counts)
        for _ in range(floor(after + 0.5) - floor(before + 0.5)):
            yield LabelledRow(tuple(places[coins.below(len(places))] for places in inside), label)
        before = after


def commonest(counts: Sequence[float]) -> int:
    """The class with the largest count; the first of several."""
    return max(range(len(counts)), key=counts.__getitem__)


def answer(root: TreeNode, row: Row) -> int:
    """The class that a tree gives to the places of a record."""
    node = root
    while node.split is not None:
        place = row[node.split.attribute]
        node = node.children[not node.split.first >> place & 1]
    return commonest(node.counts)


def voted(roots: Sequence[TreeNode], row: Row) -> int:
    """The class that most trees give; the smallest of several."""
    found = Counter(answer(root, row) for root in roots)
    return min(found, key=lambda label: (-found[label], label))
