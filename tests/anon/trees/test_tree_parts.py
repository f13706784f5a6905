"""A member's private tree in its parts: exact choices, sensitivities by search, least squares, and texts.

The choice is a chi-squared test at level 1e-6, whose draws repeat. All else holds for every draw.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction
from math import exp, fsum
from random import Random
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from scipy.optimize import lsq_linear
from scipy.stats import chi2

from anon.errors import InvalidValue
from anon.ldp.epsilon import nano
from anon.noise import Coins
from anon.noise.exponential import drawn_by_score
from anon.protocols.trees import written
from anon.protocols.trees.attributes import LabelledRow, NumberAttribute, TextAttribute, held, whole
from anon.protocols.trees.consistent import consistent, least_squares
from anon.protocols.trees.drawing import answer, leaves, rows, voted
from anon.protocols.trees.growing import TreeNode, TreePlan, grown, scores
from benchmarks.parties.printed import leaves_expected, optimised, printed
from tests.support.climbing import climbed

AGE = NumberAttribute("age", (0, 20, 40, 60, 80))
WORK = TextAttribute("work", ("none", "farm", "shop", "other"))
HOURS = NumberAttribute("hours", tuple(range(33)))
ATTRIBUTES = (AGE, WORK, HOURS)
LEVEL = 1e-6


def stream(seed: object) -> Callable[[int], bytes]:
    numbers = iter(range(100_000))
    return lambda size: hashlib.shake_128(f"{seed} {next(numbers)}".encode()).digest(size)


def people(count: int, seed: int = 1) -> list[LabelledRow]:
    spring = Random(seed)
    found = []
    for _ in range(count):
        row = tuple(spring.randrange(attribute.places) for attribute in ATTRIBUTES)
        found.append(LabelledRow(row, int(row[0] + spring.random() > 2.5)))
    return found


def plan_of(epsilon: str = "1", **more: Any) -> TreePlan:
    return TreePlan(ATTRIBUTES, 2, nano(epsilon), **more)


# Attributes


def test_every_value_has_a_place_by_declared_ranges_alone() -> None:
    assert [AGE.place(value) for value in (-5, 0, 19.9, 20, 79, 80, 1e300, None, "20", True, float("nan"))] == [
        0, 0, 0, 1, 3, 3, 3, 0, 0, 0, 0,
    ]  # fmt: skip
    assert [WORK.place(value) for value in ("none", "other", "ship", None, 2)] == [0, 3, 3, 3, 3]
    assert [AGE.place(AGE.value(place)) for place in range(4)] == [0, 1, 2, 3]


@pytest.mark.parametrize("edges", [(), (0, 1), (0, 1, 1), (0, 2, 1), (0, 1, float("inf")), tuple(range(66))])
def test_edges_that_cannot_be_are_refused(edges: tuple[float, ...]) -> None:
    with pytest.raises(InvalidValue):
        NumberAttribute("x", edges)


@pytest.mark.parametrize("texts", [(), ("a",), ("a", "a"), tuple(map(str, range(65)))])
def test_texts_that_cannot_be_are_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidValue):
        TextAttribute("x", texts)


def test_a_drawn_split_has_active_places_on_both_sides() -> None:
    coins, seen = Coins(stream("splits")), set()
    for attribute, active in ((AGE, 0b1110), (WORK, 0b1011)):
        for _ in range(200):
            first = attribute.split(active, coins)
            assert first and first != active and not first & ~active
            seen.add((attribute.name, first))
    assert {first for name, first in seen if name == "age"} == {0b0010, 0b0110}
    assert {first for name, first in seen if name == "work"} == {0b0001, 0b0010, 0b1000, 0b0011, 0b1001, 0b1010}


# Choices and sensitivities


def test_a_choice_follows_the_exponential_law() -> None:
    given, rate, draws = [3, 7, 7, 0, 5], Fraction(2, 5), 4000
    coins = Coins(stream("choice"))
    found = [0] * len(given)
    for _ in range(draws):
        found[drawn_by_score(given, rate, coins)] += 1
    weights = [exp(rate * score) for score in given]
    due = [draws * weight / sum(weights) for weight in weights]
    assert chi2.sf(sum((a - b) ** 2 / b for a, b in zip(found, due, strict=True)), len(given) - 1) > LEVEL


def test_a_choice_of_nothing_or_at_a_negative_rate_is_refused() -> None:
    for given, rate in (([], Fraction(1)), ([1, 2], Fraction(-1, 9))):
        with pytest.raises(ValueError, match="exponential"):
            drawn_by_score(given, rate, Coins(stream(0)))


def _moves(genes: list[Any], replaced: bool) -> tuple[list[int], int]:
    """The move of each candidate's score, and of the classes' counts in L1, by the first record."""
    records = [LabelledRow((place, 0, 0), label) for place, label in genes]
    before, after = records[:-1], (records[1:] if replaced else records)
    drawn = [0b0001, 0b0011, 0b0111]
    first, second = (scores(some, 2, 0, drawn) for some in (before, after))
    counts = [[sum(record.label == label for record in some) for label in (0, 1)] for some in (before, after)]
    return [b - a for a, b in zip(first, second, strict=True)], sum(abs(a - b) for a, b in zip(*counts, strict=True))


def test_a_record_put_in_raises_no_score_by_more_than_one_and_lowers_none() -> None:
    """The search climbs to 1 and never beyond. So the rate may be the whole epsilon of a choice."""
    choices = [(place, label) for place in range(4) for label in (0, 1)]
    starts = [[(0, 0)] * 5, [(3, 1), (2, 0), (1, 1), (0, 0)]]
    for start in starts:
        moves, _ = _moves(start, replaced=False)
        assert min(moves) >= 0
    assert climbed(starts, choices, lambda genes: max(_moves(genes, False)[0]), 1) == 1
    assert climbed(starts, choices, lambda genes: -min(_moves(genes, False)[0]), 0) == 0
    assert climbed(starts, choices, lambda genes: _moves(genes, False)[1], 1) == 1


def test_a_record_replaced_doubles_the_counts_and_the_distance_of_two_scores() -> None:
    """One score may rise by 1 while another falls by 1: the choice then costs twice its rate."""
    choices = [(place, label) for place in range(4) for label in (0, 1)]
    starts = [[(0, 0)] * 5, [(3, 1), (2, 0), (1, 1), (0, 0)]]

    def distance(genes: list[Any]) -> float:
        moves = _moves(genes, replaced=True)[0]
        return max(moves) - min(moves)

    assert climbed(starts, choices, distance, 2) == 2
    assert climbed(starts, choices, lambda genes: _moves(genes, True)[1], 2) == 2


@pytest.mark.parametrize("depth", [1, 4, 7])
@pytest.mark.parametrize(("neighbours", "part"), [("replace-one", 2), ("add-remove", 1)])
def test_every_path_costs_the_budget_whatever_its_length(depth: int, neighbours: Any, part: int) -> None:
    plan = plan_of("0.3", depth=depth, neighbours=neighbours)
    for level in range(depth + 1):
        # Splits above, counts of all nodes but the root, and what a leaf spends in the end.
        assert level * (plan.per_split + plan.per_count) + plan.left_at(level) == Fraction(3, 10) / part


# Growth


def test_a_tree_repeats_with_its_coins_and_stays_within_its_depth() -> None:
    plan = plan_of("5", depth=3)
    first, again = (grown(people(200), plan, Coins(stream("same"))) for _ in range(2))
    assert first == again
    assert 2 <= len([*leaves(first.root, whole(ATTRIBUTES))]) <= 8


def test_a_tree_stops_where_noise_drowns_the_records() -> None:
    """200 people at epsilon 1 are split, and at .01 they are not: the noise of the next counts is larger."""
    few = grown(people(200), plan_of("0.01"), Coins(stream("few")))
    assert few.root.split is None and few.total == 200
    assert grown(people(200), plan_of("1"), Coins(stream("few"))).root.split is not None


def test_an_empty_member_and_one_class_alone_have_a_tree() -> None:
    for records in ([], [LabelledRow((0, 0, 0), 1)] * 50):
        for neighbours in ("replace-one", "add-remove"):
            plan = plan_of("1", neighbours=neighbours)
            tree = grown(records, plan, Coins(stream("empty")))
            assert written.read(written.write(tree, plan), plan) == tree
            assert tree.total == (len(records) if neighbours == "replace-one" else None)


@pytest.mark.parametrize("record", [
    LabelledRow((4, 0, 0), 0), LabelledRow((-1, 0, 0), 0), LabelledRow((0, 0), 0), LabelledRow((0, 0, 0, 0), 0),
    LabelledRow((0, 0, 0), 2), LabelledRow((0, 0, 0), -1),
])  # fmt: skip
def test_a_record_outside_the_declared_is_refused_without_its_value(record: LabelledRow) -> None:
    for grow in (grown, printed):
        with pytest.raises(InvalidValue, match="declared place of every attribute, and a declared class"):
            grow([*people(5), record], plan_of(), Coins(stream(0)))  # type: ignore[operator]


@pytest.mark.parametrize("wrong", [{"depth": 0}, {"depth": 8}, {"candidates": 0}])
def test_a_plan_that_cannot_be_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidValue):
        plan_of(**wrong)
    for attributes, classes in (((), 2), (ATTRIBUTES, 1), (ATTRIBUTES, 17)):
        with pytest.raises(InvalidValue):
            TreePlan(attributes, classes, nano(1))


# Least squares


def _random(spring: Random, classes: int, depth: int, root: bool = True) -> TreeNode:
    children = () if not depth or spring.random() < 0.2 else tuple(
        _random(spring, classes, depth - 1, False) for _ in range(spring.choice((2, 2, 3)))
    )
    counted = not children or (not root and spring.random() < 0.7)
    counts = tuple(spring.gauss(5, 10) for _ in range(classes)) if counted else ()
    return TreeNode(counts, spring.uniform(0.5, 9), None, children)


def _leaf_count(node: TreeNode) -> int:
    return sum(map(_leaf_count, node.children)) if node.children else 1


def _equations(node: TreeNode, start: int, width: int, label: int) -> list[tuple[list[float], float]]:
    """Rows over leaves and measured numbers, each over the root of its variance."""
    size = _leaf_count(node)
    found = []
    if node.counts:
        over = node.spread**0.5
        found.append(([float(start <= at < start + size) / over for at in range(width)], node.counts[label] / over))
    for child in node.children:
        found += _equations(child, start, width, label)
        start += _leaf_count(child)
    return found


def _flat(node: TreeNode, label: int) -> list[float]:
    return [x for child in node.children for x in _flat(child, label)] if node.children else [node.counts[label]]


@pytest.mark.parametrize("seed", range(12))
def test_two_passes_are_scipys_least_squares(seed: int) -> None:
    spring = Random(seed)
    tree = _random(spring, 3, 4)
    found = least_squares(tree)
    for label in range(3):
        rows_of, numbers = zip(*_equations(tree, 0, _leaf_count(tree), label), strict=True)
        due = lsq_linear(np.array(rows_of), np.array(numbers)).x
        assert _flat(found, label) == pytest.approx(due, abs=1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_with_an_exact_total_too(seed: int) -> None:
    """The total of all classes is one equation of a thousand million times the weight: scipy then agrees to 1e-4."""
    spring = Random(seed)
    tree, total = _random(spring, 2, 3), 40
    found, width = least_squares(tree, total), _leaf_count(tree)
    equations = []
    for label in (0, 1):
        for row, number in _equations(tree, 0, width, label):
            equations.append(([*row, *[0.0] * width] if not label else [*[0.0] * width, *row], number))
    equations.append(([1e4] * (2 * width), 1e4 * total))
    due = lsq_linear(np.array([row for row, _ in equations]), np.array([number for _, number in equations])).x
    assert [*_flat(found, 0), *_flat(found, 1)] == pytest.approx(due, abs=1e-4)
    assert fsum(found.counts) == pytest.approx(total)


def _demand_sums(node: TreeNode) -> None:
    assert min(node.counts) >= 0
    if node.children:
        sums = [fsum(column) for column in zip(*(child.counts for child in node.children), strict=True)]
        assert sums == pytest.approx(node.counts, abs=1e-9)
    for child in node.children:
        _demand_sums(child)


@pytest.mark.parametrize("seed", range(12))
def test_consistent_counts_are_not_negative_and_add_up(seed: int) -> None:
    tree = _random(Random(seed), 2, 4)
    for total in (None, 0, 30):
        found = consistent(tree, total)
        _demand_sums(found)
        assert total is None or fsum(found.counts) == pytest.approx(total)


def test_consistent_counts_stay_where_nothing_is_negative() -> None:
    tree = _random(Random(3), 2, 3)
    high = evolve(tree, children=tuple(evolve(child, counts=(900.0, 800.0)) for child in tree.children))
    free = least_squares(high)
    if min(_flat(free, 0) + _flat(free, 1)) > 0:
        assert _flat(consistent(high), 0) == pytest.approx(_flat(free, 0))


# Rows and votes


def test_rows_are_as_many_as_the_counts_say_and_lie_in_their_leaves() -> None:
    tree = grown(people(300), plan_of("3"), Coins(stream("rows")))
    settled = consistent(tree.root, tree.total)
    drawn = [*rows(settled, ATTRIBUTES, Coins(stream("draw")))]
    assert len(drawn) == 300
    assert all(answer(settled, row.row) == row.label for row in drawn)
    sizes = [attribute.places for attribute in ATTRIBUTES]
    assert all(0 <= place < size for row in drawn for place, size in zip(row.row, sizes, strict=True))
    assert len({row.row for row in drawn}) > 100


def test_most_trees_decide_a_vote_and_a_tie_goes_to_the_smallest() -> None:
    no, yes = TreeNode((3, 1)), TreeNode((1, 3))
    assert [voted(trees, (0, 0, 0)) for trees in ([no, yes, yes], [yes, no], [no])] == [1, 0, 0]


# Texts


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("count", [0, 1, 40, 3000])
def test_a_text_has_one_size_whatever_the_records_are(neighbours: Any, count: int) -> None:
    plan = plan_of("2", neighbours=neighbours)
    tree = grown(people(count), plan, Coins(stream(count)))
    text = written.write(tree, plan)
    assert len(text.encode("ascii")) == written.length(plan)
    assert written.read(text, plan) == tree


def _texts() -> dict[str, tuple[TreePlan, str]]:
    plan = plan_of("4", depth=2)
    text = written.write(grown(people(100), plan, Coins(stream("text"))), plan)
    lines = text.splitlines()

    def put(number: int, line: str) -> str:
        return "\n".join([*lines[:number], line, *lines[number + 1 :]]) + "\n"

    split, leaf = lines[1], lines[3]
    assert split[:2].isdigit() and leaf[:18] == "-" * 18 and set(leaf[18:]) != {"-"}
    wrong = {
        "too short": text[:-1], "too long": text + "\n", "empty": "", "no total": put(0, "-" * 8),
        "total no number": put(0, "0000000x"), "a wide digit": put(0, "0000000²"),
        "no root": put(1, "-" * len(split)), "an attribute that is not there": put(1, "03" + split[2:]),
        "an empty side": put(1, split[:2] + "0" * 16 + split[18:]),
        "a full side": put(1, split[:2] + f"{(1 << ATTRIBUTES[int(split[:2])].places) - 1:016x}" + split[18:]),
        "places that are not there": put(1, split[:2] + "f" * 16 + split[18:]),
        "capital digits": put(1, split[:2] + "000000000000000A" + split[18:]),
        "lines below a leaf": put(1, leaf), "counts at a split root": put(1, split[:18] + leaf[18:]),
        "a leaf without counts": put(3, "-" * len(leaf)), "a count without sign": put(3, leaf[:18] + "0" + leaf[19:]),
        "minus zero": put(3, leaf[:18] + "-00000000" * 2), "blanks": put(3, leaf[:18] + "+       1" * 2),
        "a split at the last level": put(3, split[:18] + leaf[18:]), "no line": text.replace("\n", " "),
    }  # fmt: skip
    return {name: (plan, found) for name, found in wrong.items()}


@pytest.mark.parametrize("name", list(_texts()))
def test_a_text_that_is_no_tree_is_refused(name: str) -> None:
    plan, text = _texts()[name]
    with pytest.raises(InvalidValue):
        written.read(text, plan)


def test_the_text_of_another_plan_is_refused() -> None:
    plan = plan_of("4", depth=2)
    text = written.write(grown(people(100), plan, Coins(stream("text"))), plan)
    for other in (plan_of("4", depth=3), plan_of("4", depth=2, neighbours="add-remove")):
        with pytest.raises(InvalidValue):
            written.read(text, other)
    with pytest.raises(InvalidValue):
        written.read(text, TreePlan(ATTRIBUTES[:1], 2, nano(4), depth=2))


# As printed


@pytest.mark.slow
def test_the_printed_tree_has_the_leaves_that_its_expectation_says() -> None:
    """With four levels, the mean of 300 trees lies within five standard errors of the exact mean."""
    wide = NumberAttribute("wide", tuple(range(65)))
    plan = TreePlan((wide, TextAttribute("a", tuple("abc")), TextAttribute("b", tuple("abcde"))), 2, nano(1))
    trees = (printed([], plan, Coins(stream(seed)), levels=4) for seed in range(300))
    counts = [len([*leaves(tree, whole(plan.attributes))]) for tree in trees]
    due = float(leaves_expected(1, [3, 5], 4))
    assert len({*counts}) > 5
    assert abs(np.mean(counts) - due) < 5 * np.std(counts) / 300**0.5


def test_two_way_splits_give_128_leaves_and_sizes_near_the_records() -> None:
    plan = TreePlan((HOURS, *(NumberAttribute(f"n{at}", tuple(range(33))) for at in range(5))), 2, nano(1))
    spring = Random(2)
    records = [LabelledRow(tuple(spring.randrange(32) for _ in range(6)), spring.randrange(2)) for _ in range(440)]
    tree = printed(records, plan, Coins(stream("two")), two_way=True)
    ends = [leaf for _, leaf in leaves(tree, whole(plan.attributes))]
    assert len(ends) == 128
    clipped = sum(max(count, 0) for leaf in ends for count in leaf.counts)
    best = optimised(tree, records, plan, Coins(stream("three")))
    assert clipped > 3 * 440
    assert abs(sum(leaf.counts[0] for _, leaf in leaves(best, whole(plan.attributes))) - 440) < 60
    assert [*held(0b1011)] == [0, 1, 3]


def test_the_printed_weights_are_one_over_the_nodes_of_a_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """All leaves are one level, and the levels that are not counted again have no numbers."""
    plan, records = plan_of("2"), people(50)
    tree = printed(records, plan, Coins(stream("weights")), two_way=True)
    monkeypatch.setattr("benchmarks.parties.printed.consistent", lambda root: root)
    levels: dict[int, list[TreeNode]] = {}

    def walk(node: TreeNode, level: int) -> None:
        levels.setdefault(level if node.split is not None else 0, []).append(node)
        for child in node.children:
            walk(child, level + 1)

    walk(optimised(tree, records, plan, Coins(stream("sizes"))), 1)
    assert all({node.spread for node in nodes} == {float(len(nodes))} for nodes in levels.values())
    assert {level for level, nodes in levels.items() if any(node.counts for node in nodes)} == {0, 1, 2, 3}
    assert len(levels[3]) == 4 and len(levels[0]) > 60
