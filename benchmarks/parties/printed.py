"""The tree as the paper prints it (algorithms 2, 3 and 5), to compare with: no member of a study grows it.

Each split costs epsilon / (2 x levels) and so does a leaf's count. Levels 1 to 3 are counted anew, with epsilon / 6
each. Text attributes branch into every value, or into two where `two_way` says so. Its promise is add-remove.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from attrs import evolve

from anon.errors import InvalidValue
from anon.ldp.epsilon import NANO
from anon.noise.bernoulli import Coins
from anon.noise.discrete_laplace import DiscreteLaplace
from anon.protocols.trees.attributes import LabelledRow, Places, TextAttribute, can_split, held, whole
from anon.protocols.trees.consistent import consistent
from anon.protocols.trees.drawing import sides
from anon.protocols.trees.growing import Split, TreeNode, TreePlan, check, chosen, noisy

LEVELS: Final = 8
"""The paper's largest depth, its root included."""
COUNTED: Final = 3
"""Levels that are counted again, from the root on: its p - 1."""
MOST_LEAVES: Final = 200_000


def leaves_expected(numbers: int, texts: Sequence[int], levels: int = LEVELS) -> Fraction:
    """Return how many leaves the printed tree has on average: no record decides it but in the cuts of numbers.

    `numbers`: how many attributes are numbers; `texts`: how many values each other attribute has.
    """
    if levels == 1:
        return Fraction(1)
    ways = Fraction(2 * numbers) * leaves_expected(numbers, texts, levels - 1) if numbers else Fraction(0)
    for size, times in Counter(texts).items():
        rest = list(texts)
        rest.remove(size)
        ways += times * size * leaves_expected(numbers, rest, levels - 1)
    return ways / (numbers + len(texts)) if numbers or texts else Fraction(1)


def printed(
    records: Sequence[LabelledRow], plan: TreePlan, coins: Coins, two_way: bool = False, levels: int = LEVELS
) -> TreeNode:
    """Return the tree of algorithm 3 with so many levels, and with the classes' noisy counts at its leaves.

    Raises `InvalidValue` for records outside the plan, and for more than `MOST_LEAVES` leaves.
    """
    check(records, plan.attributes, plan.classes)
    return _Growth(plan, coins, two_way, levels).node(records, whole(plan.attributes), 1)


class _Growth:
    """The growth of one tree: the epsilon of a step, and the leaves so far."""

    def __init__(self, plan: TreePlan, coins: Coins, two_way: bool, levels: int) -> None:
        self.plan, self.coins, self.two_way, self.levels, self.leaves = plan, coins, two_way, levels, 0
        self.each = Fraction(plan.epsilon, NANO) / (2 * levels)

    def node(self, records: Sequence[LabelledRow], active: tuple[Places, ...], level: int) -> TreeNode:
        ways = [place for place, places in enumerate(active) if can_split(places)]
        if level == self.levels or not ways:
            self.leaves += 1
            if self.leaves > MOST_LEAVES:
                raise InvalidValue(f"tree: more than {MOST_LEAVES} leaves")
            return TreeNode(noisy(records, self.plan.classes, self.each, self.coins))
        at = ways[self.coins.below(len(ways))]
        if isinstance(self.plan.attributes[at], TextAttribute) and not self.two_way:
            split = Split(at, 0)
        else:
            split = chosen(records, self.plan, at, active[at], self.each / 2, self.coins)
        parts: dict[int, list[LabelledRow]] = {}
        places_of = sides(TreeNode(split=split), active[at])
        side_of = {place: side for side, places in enumerate(places_of) for place in held(places)}
        for record in records:
            parts.setdefault(side_of[record.row[at]], []).append(record)
        children = tuple(
            self.node(parts.get(side, ()), (*active[:at], places, *active[at + 1 :]), level + 1)
            for side, places in enumerate(places_of)
        )
        return TreeNode(split=split, children=children)


def optimised(root: TreeNode, records: Sequence[LabelledRow], plan: TreePlan, coins: Coins) -> TreeNode:
    """Return the same tree with the sizes of algorithm 5: one number at each node, of all classes together."""
    noise = DiscreteLaplace(COUNTED / (Fraction(plan.epsilon, NANO) / 2))
    sizes = _sized(root, records, 1, noise, coins)
    nodes = Counter(level for level, _ in _walk(sizes))
    return consistent(_weighted(sizes, 1, nodes))


def _sized(
    node: TreeNode, records: Sequence[LabelledRow], level: int, noise: DiscreteLaplace, coins: Coins
) -> TreeNode:
    if node.split is None:
        return evolve(node, counts=(sum(node.counts),))
    at = node.split.attribute
    counts = (len(records) + noise.draw(coins),) if level <= COUNTED else ()
    first = node.split.first
    places = [first, ~first] if first else [1 << place for place in range(len(node.children))]
    children = tuple(
        _sized(child, [record for record in records if side >> record.row[at] & 1], level + 1, noise, coins)
        for child, side in zip(node.children, places, strict=True)
    )
    return evolve(node, counts=counts, children=children)


def _walk(node: TreeNode, level: int = 1) -> Iterator[tuple[int, TreeNode]]:
    yield (level if node.split is not None else 0), node
    for child in node.children:
        yield from _walk(child, level + 1)


def _weighted(node: TreeNode, level: int, nodes: Counter[int]) -> TreeNode:
    """The weight of a count is one over the nodes of its level, and all leaves are one level."""
    children = tuple(_weighted(child, level + 1, nodes) for child in node.children)
    return evolve(node, spread=float(nodes[level if node.split is not None else 0]), children=children)
