"""The growth of one member's tree under a budget, repaired: each path from the root to a leaf costs the whole budget.

A record lies in one node of each level. So it meets the choices and the counts of one path alone, and their epsilons
add up. `docs/errata.md` says how this differs from the paper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from attrs import field

from anon.errors import InvalidValue
from anon.ldp.epsilon import NANO, NanoEpsilon
from anon.noise.bernoulli import Coins
from anon.noise.discrete_laplace import DiscreteLaplace
from anon.noise.exponential import drawn_by_score
from anon.noise.scaling import Neighbours
from anon.protocols.trees.attributes import Attribute, LabelledRow, Places, can_split, whole
from anon.values import frozen

DEEPEST = 7
"""Splits of one path: 128 leaves, as the paper's trees of eight levels have."""
MOST_CLASSES = 16
LARGEST_COUNT = 99_999_999


@frozen
class Split:
    """The places of one attribute that go to the first child. All others go to the second."""

    attribute: int
    first: Places


@frozen
class TreeNode:
    """A part of the rows. `counts`: of each class, noisy; empty where none were bought. A leaf has no children.

    `spread`: the variance of each count, up to one factor for the whole tree.
    """

    counts: tuple[float, ...] = ()
    spread: float = 0.0
    split: Split | None = None
    children: tuple[TreeNode, ...] = ()


@frozen
class TreePlan:
    """All that is public of the trees of a study.

    Promise: the tree of a member is epsilon-private for the declared neighbours. Replaced, a record leaves one path and
    joins another. So the paths get half of epsilon each, and the number of records stays as it is: the tree states it.
    Left out or put in, a record meets one path, and no number is stated.

    A quarter of each level's budget chooses the split, and the rest counts its two sides. A node that stops early
    spends on its counts all that deeper levels would have cost. Raises `InvalidValue` for a plan that cannot be.
    """

    attributes: tuple[Attribute, ...]
    classes: int
    epsilon: NanoEpsilon
    neighbours: Neighbours = "replace-one"
    depth: int = DEEPEST
    candidates: int = 10
    per_split: Fraction = field(init=False)
    per_count: Fraction = field(init=False)

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.depth <= DEEPEST or not 2 <= self.classes <= MOST_CLASSES or self.candidates < 1:
            raise InvalidValue(f"tree: expected 1 to {DEEPEST} splits a path, 2 to {MOST_CLASSES} classes, a candidate")
        if not 1 <= len(self.attributes) < 100 or self.epsilon < 1:
            raise InvalidValue("tree: expected 1 to 99 attributes, and an epsilon above 0")
        path = Fraction(self.epsilon, NANO) / (2 if self.neighbours == "replace-one" else 1)
        object.__setattr__(self, "per_split", path / self.depth / 4)
        object.__setattr__(self, "per_count", path / self.depth * 3 / 4)

    def left_at(self, level: int) -> Fraction:
        """Return the budget that a leaf below so many splits has left."""
        return (self.depth - level) * (self.per_split + self.per_count)

    def spread_at(self, level: int, leaf: bool) -> float:
        """Return the variance of a count over 2: of its first noise, and of a leaf's second one weighed in."""
        first = self.per_count if level else Fraction(0)
        return float(1 / (first**2 + (self.left_at(level) ** 2 if leaf else 0)))

    def is_drowned(self, counted: float) -> bool:
        """True where the noise of the next level's counts is larger than the records: a node stops there.

        Noise is the standard deviation of all classes together.
        """
        return counted <= 0 or (counted * self.per_count) ** 2 < 2 * self.classes


@frozen
class GrownTree:
    """A root, and the number of records where the plan's neighbours let it be public."""

    root: TreeNode
    total: int | None


def grown(records: Sequence[LabelledRow], plan: TreePlan, coins: Coins) -> GrownTree:
    """Return the private tree of these records. Raises `InvalidValue` for places or labels outside the plan.

    The time depends on the records. A caller that sends must not let it show.
    """
    check(records, plan.attributes, plan.classes)
    total = len(records) if plan.neighbours == "replace-one" else None
    return GrownTree(_grown(records, plan, whole(plan.attributes), 0, coins), total)


def check(records: Sequence[LabelledRow], attributes: Sequence[Attribute], classes: int) -> None:
    """Raise `InvalidValue` for a record that the declared attributes and classes do not allow. No value is named."""
    sizes = [attribute.places for attribute in attributes]
    for record in records:
        inside = all(0 <= place < size for place, size in zip(record.row, sizes, strict=False))
        if len(record.row) != len(sizes) or not inside or not 0 <= record.label < classes:
            raise InvalidValue("records: expected a declared place of every attribute, and a declared class")


def _grown(
    records: Sequence[LabelledRow], plan: TreePlan, active: tuple[Places, ...], level: int, coins: Coins
) -> TreeNode:
    first = noisy(records, plan.classes, plan.per_count, coins) if level else ()
    known = len(records) if plan.neighbours == "replace-one" else None
    counted = sum(first) if level else known
    ways = [place for place, places in enumerate(active) if can_split(places)]
    if level == plan.depth or not ways or (counted is not None and plan.is_drowned(counted)):
        return TreeNode(_at_leaf(records, plan, first, level, coins), plan.spread_at(level, leaf=True))
    attribute = ways[coins.below(len(ways))]
    # No record lowers a score, so the rate is the whole budget of the choice.
    split = chosen(records, plan, attribute, active[attribute], plan.per_split, coins)
    children = []
    for places in (split.first, active[attribute] & ~split.first):
        kept = [record for record in records if places >> record.row[attribute] & 1]
        inside = (*active[:attribute], places, *active[attribute + 1 :])
        children.append(_grown(kept, plan, inside, level + 1, coins))
    return TreeNode(first, plan.spread_at(level, leaf=False) if level else 0.0, split, tuple(children))


def _at_leaf(
    records: Sequence[LabelledRow], plan: TreePlan, first: tuple[int, ...], level: int, coins: Coins
) -> tuple[int, ...]:
    """The counts of a leaf, with all that its path has left. Its first counts weigh by their precision."""
    if not (left := plan.left_at(level)):
        return first
    second = noisy(records, plan.classes, left, coins)
    if not first:
        return second
    weight = plan.per_count**2 / (plan.per_count**2 + left**2)
    return tuple(round(weight * early + (1 - weight) * late) for early, late in zip(first, second, strict=True))


def noisy(records: Sequence[LabelledRow], classes: int, epsilon: Fraction, coins: Coins) -> tuple[int, ...]:
    """Return the count of each class with noise. One record in or out moves one of them by 1: that costs epsilon."""
    noise, found = DiscreteLaplace(1 / epsilon), Counter(record.label for record in records)
    return tuple(
        min(max(found[label] + noise.draw(coins), -LARGEST_COUNT), LARGEST_COUNT) for label in range(classes)
    )


def chosen(
    records: Sequence[LabelledRow], plan: TreePlan, attribute: int, active: Places, rate: Fraction, coins: Coins
) -> Split:
    """Return one of the plan's number of drawn candidates, by the exponential mechanism on `score`."""
    drawn = [plan.attributes[attribute].split(active, coins) for _ in range(plan.candidates)]
    return Split(attribute, drawn[drawn_by_score(scores(records, plan.classes, attribute, drawn), rate, coins)])


def scores(records: Sequence[LabelledRow], classes: int, attribute: int, drawn: Sequence[Places]) -> list[int]:
    """Return how many records have the commonest class of their side, for each candidate (the paper's Max operator).

    A record in addition raises each score by 0 or 1.
    """
    found = Counter((record.row[attribute], record.label) for record in records)
    totals = Counter(record.label for record in records)
    best = []
    for places in drawn:
        first = [0] * classes
        for (place, label), count in found.items():
            if places >> place & 1:
                first[label] += count
        best.append(max(first) + max(totals[label] - count for label, count in enumerate(first)))
    return best
