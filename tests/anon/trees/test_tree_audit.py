"""An audit of the whole tree, from records to the published text: no pair of neighbours is told apart beyond epsilon.

The lower bound of epsilon is that of Clopper and Pearson, at level 5e-7 on either side. The event is fixed beforehand.
So a right tree fails with a chance of at most 1e-6, and each planted fault is found. The draws repeat.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from math import log
from typing import Any

import pytest
from scipy.stats import beta

from anon.ldp.epsilon import nano
from anon.noise import Coins
from anon.protocols.trees import growing, written
from anon.protocols.trees.attributes import LabelledRow, TextAttribute
from anon.protocols.trees.consistent import consistent
from anon.protocols.trees.drawing import rows
from anon.protocols.trees.growing import TreePlan, grown

pytestmark = pytest.mark.slow

ATTRIBUTES = (TextAttribute("a", ("x", "y")), TextAttribute("b", ("x", "y")))
RECORD, OTHER = LabelledRow((0, 0), 1), LabelledRow((1, 1), 0)
THREE = 3
CROWD = [*[LabelledRow((0, 1), 0)] * THREE, *[LabelledRow((1, 0), 0)] * THREE]
"""Three of class 0 on either side of every split."""
TRIALS, LEVEL = 4000, 5e-7


def stream(seed: str) -> Callable[[int], bytes]:
    numbers = iter(range(1_000_000))
    return lambda size: hashlib.shake_128(f"{seed} {next(numbers)}".encode()).digest(size)


def plan_of(neighbours: Any, epsilon: str = "3") -> TreePlan:
    return TreePlan(ATTRIBUTES, 2, nano(epsilon), neighbours, depth=1)


def pair_of(neighbours: str) -> tuple[list[LabelledRow], list[LabelledRow]]:
    return [*CROWD, RECORD], ([*CROWD, OTHER] if neighbours == "replace-one" else CROWD)


def held(text: str, plan: TreePlan) -> float:
    """How far the published counts lean to the record: those of its leaf and class, less those of the other one's."""
    tree = written.read(text, plan).root
    assert tree.split is not None
    near = tree.children[not tree.split.first & 1].counts
    far = tree.children[bool(tree.split.first & 1)].counts
    return near[1] - (far[0] - THREE if plan.neighbours == "replace-one" else 0)


def rates(plan: TreePlan, event: Callable[[str, TreePlan, Coins], bool]) -> list[int]:
    found = []
    for name, records in zip(("with", "without"), pair_of(plan.neighbours), strict=True):
        coins = Coins(stream(name))
        texts = (written.write(grown(records, plan, coins), plan) for _ in range(TRIALS))
        found.append(sum(event(text, plan, coins) for text in texts))
    return found


def bound(many: int, few: int) -> float:
    """A lower bound of epsilon from how often an event comes with the record and without it."""
    low = beta.ppf(LEVEL, many, TRIALS - many + 1) if many else 0
    high = beta.ppf(1 - LEVEL, few + 1, TRIALS - few)
    return log(low / high) if low else 0.0


def leans(text: str, plan: TreePlan, coins: Coins) -> bool:
    del coins
    return held(text, plan) >= (2 if plan.neighbours == "replace-one" else 1)


def has_a_row(text: str, plan: TreePlan, coins: Coins) -> bool:
    """Rows are drawn from the text alone: an event of theirs tells no more."""
    tree = written.read(text, plan)
    drawn = list(rows(consistent(tree.root, tree.total), ATTRIBUTES, coins))
    return len(drawn) > len(CROWD) if plan.neighbours == "add-remove" else any(row.label == 1 for row in drawn)


@pytest.mark.parametrize("event", [leans, has_a_row])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_no_event_of_a_tree_or_its_rows_tells_more_than_epsilon(neighbours: Any, event: Any) -> None:
    plan = plan_of(neighbours)
    found = bound(*rates(plan, event))
    # Three times the loss of a tree would be seen: its bound is above a third of epsilon.
    assert (1 if event is leans else 0.2) < found <= 3


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_noise_for_three_times_epsilon_is_seen(neighbours: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = growing.noisy
    monkeypatch.setattr(growing, "noisy", lambda some, classes, cost, coins: right(some, classes, 3 * cost, coins))
    plan = plan_of(neighbours, "1")
    assert bound(*rates(plan, leans)) > 1


def test_the_sensitivity_of_a_record_put_in_is_too_little_for_one_replaced() -> None:
    """Add-remove's budget on a pair with a record replaced: the bound is beyond epsilon."""
    plan = TreePlan(ATTRIBUTES, 2, nano("2"), "add-remove", depth=1)
    counts = []
    for name, records in zip(("with", "without"), pair_of("replace-one"), strict=True):
        coins = Coins(stream(name))
        trees = (grown(records, plan, coins).root for _ in range(TRIALS))
        counts.append(sum(_apart(tree) for tree in trees))
    assert bound(*counts) > 2


def _apart(tree: growing.TreeNode) -> bool:
    assert tree.split is not None
    near, far = (tree.children[side].counts for side in (not tree.split.first & 1, tree.split.first & 1))
    return near[1] >= 1 and far[0] <= THREE


def test_a_stated_number_of_records_is_no_secret_of_those_who_are_replaced_alone() -> None:
    """Left out or put in, a record would change it: then the text has dashes."""
    texts = [written.write(grown([RECORD] * 3, plan_of(which), Coins(stream("n"))), plan_of(which)).split("\n")[0]
             for which in ("replace-one", "add-remove")]  # fmt: skip
    assert texts == ["00000003", "--------"]


def test_a_leaf_tells_nothing_beyond_its_noisy_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same noise, trees of different records with the same noisy counts stop at the same nodes."""
    plan = TreePlan(ATTRIBUTES, 2, nano("3"), "add-remove", depth=2)
    monkeypatch.setattr(growing, "noisy", lambda records, classes, cost, coins: (5, 5))
    shapes = {
        tuple(child.split is None for child in grown([RECORD] * count, plan, Coins(stream("shape"))).root.children)
        for count in (0, 1, 50)
    }
    assert shapes == {(False, False)}
