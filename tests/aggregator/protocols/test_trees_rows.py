"""Rows of all trees at the aggregator: the same votes as one by one, and the same rows for the same page."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from aggregator.protocols.trees import consistent_tree, drawn_places, votes
from anon.ldp.epsilon import nano
from anon.noise.bernoulli import Coins
from anon.protocols.trees.attributes import LabelledRow, NumberAttribute, TextAttribute
from anon.protocols.trees.drawing import voted
from anon.protocols.trees.growing import LARGEST_COUNT, TreeNode, TreePlan, grown

ATTRIBUTES = (NumberAttribute("age", tuple(range(6))), TextAttribute("work", tuple("abcd")))
PLAN = TreePlan(ATTRIBUTES, 3, nano(4), "add-remove", depth=3)


def stream(seed: object) -> Callable[[int], bytes]:
    numbers = iter(range(100_000))
    return lambda size: hashlib.shake_128(f"{seed} {next(numbers)}".encode()).digest(size)


def trees(many: int) -> list[TreeNode]:
    spring, found = np.random.default_rng(1), list[TreeNode]()
    for number in range(many):
        places = zip(spring.integers(5, size=200), spring.integers(4, size=200), strict=True)
        records = [LabelledRow((int(age), int(work)), int(age + work) // 3) for age, work in places]
        found.append(consistent_tree(grown(records, PLAN, Coins(stream(number))).root, 200))
    return found


def test_most_trees_decide_as_they_do_one_by_one() -> None:
    roots = trees(7)
    places = drawn_places(roots, PLAN, b"page")
    assert 1000 < len(places) <= 1400
    found = votes(roots, places, PLAN.classes)
    assert found.tolist() == [voted(roots, tuple(row)) for row in places.tolist()] and {*found.tolist()} == {0, 1, 2}


def test_rows_follow_from_the_page_and_from_nothing_else() -> None:
    first, again, other = (drawn_places(trees(3), PLAN, page) for page in (b"page", b"page", b"other"))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_a_tree_stands_for_no_more_rows_than_it_may() -> None:
    absurd = TreeNode((LARGEST_COUNT,) * 3, 1.0)
    assert len(drawn_places([consistent_tree(absurd, 50)], PLAN, b"page")) == 50
    nothing = TreeNode((-LARGEST_COUNT,) * 3, 1.0)
    assert len(drawn_places([consistent_tree(nothing, 50)], PLAN, b"page")) == 0
