"""A member's tree as one text of a fixed size, and its strict reader: the size tells nothing of the records.

The first line is the number of records, or dashes. Each node of a complete tree has a line: its attribute, the places
of the first side, and a count for each class. A node below a leaf, a leaf's split and counts that were not bought are
dashes.
"""

from __future__ import annotations

from typing import Final

from anon.errors import InvalidValue
from anon.protocols.trees.attributes import Places, can_split, whole
from anon.protocols.trees.growing import LARGEST_COUNT, GrownTree, Split, TreeNode, TreePlan

_DIGITS: Final = len(str(LARGEST_COUNT))
_NO_SPLIT, _NO_COUNT, _NO_TOTAL = "-" * 18, "-" * (_DIGITS + 1), "-" * _DIGITS


def length(plan: TreePlan) -> int:
    """Return the characters of every tree of this plan, each of them ASCII.

    >>> from anon.ldp.epsilon import nano
    >>> from anon.protocols.trees.attributes import TextAttribute
    >>> length(TreePlan((TextAttribute("sex", ("Female", "Male")),), classes=2, epsilon=nano(1)))
    9444
    """
    return _DIGITS + 1 + _nodes(plan) * _line(plan)


def _nodes(plan: TreePlan) -> int:
    return (2 << plan.depth) - 1


def _line(plan: TreePlan) -> int:
    return len(_NO_SPLIT) + len(_NO_COUNT) * plan.classes + 1


def write(tree: GrownTree, plan: TreePlan) -> str:
    """Return the one spelling of a tree of this plan."""
    total = _NO_TOTAL if tree.total is None else f"{tree.total:0{_DIGITS}d}"
    lines = [total, *_lines(tree.root, plan, plan.depth)]
    return "\n".join(lines) + "\n"


def _lines(node: TreeNode | None, plan: TreePlan, below: int) -> list[str]:
    split = _NO_SPLIT if node is None or node.split is None else f"{node.split.attribute:02d}{node.split.first:016x}"
    counts = node.counts if node is not None else ()
    told = "".join(f"{count:+0{_DIGITS + 1}d}" for count in map(int, counts)) or _NO_COUNT * plan.classes
    if not below:
        return [split + told]
    children = node.children if node is not None and node.children else (None, None)
    return [split + told, *(line for child in children for line in _lines(child, plan, below - 1))]


def read(text_untrusted: str, plan: TreePlan) -> GrownTree:
    """Return the tree in a text. Raises `InvalidValue` for every text that `write` gives of no tree of this plan."""
    if len(text_untrusted) != length(plan) or not text_untrusted.isascii() or text_untrusted[-1] != "\n":
        raise InvalidValue(f"tree: expected {length(plan)} characters of ASCII")
    first, *lines = text_untrusted[:-1].split("\n")
    stated = plan.neighbours == "replace-one"
    if len(first) != _DIGITS or (not first.isdigit() if stated else first != _NO_TOTAL):
        raise InvalidValue("tree: expected the number of records, or dashes where it is not public")
    if len(lines) != _nodes(plan) or any(len(line) != _line(plan) - 1 for line in lines):
        raise InvalidValue(f"tree: expected {_nodes(plan)} lines of {_line(plan) - 1} characters")
    root = _read(lines, plan, whole(plan.attributes), 0)
    if root is None:
        raise InvalidValue("tree: expected a root")
    return GrownTree(root, int(first) if stated else None)


def _read(lines: list[str], plan: TreePlan, active: tuple[Places, ...], level: int) -> TreeNode | None:
    """The node of the first line, and those below it."""
    line, middle = lines[0], (len(lines) + 1) // 2
    counts, split = _counts(line[len(_NO_SPLIT) :], plan), _split(line[: len(_NO_SPLIT)], active)
    if split is None:
        if any(set(other) != {"-"} for other in lines[1:]):
            raise InvalidValue("tree: expected nothing below a leaf")
        return TreeNode(counts, plan.spread_at(level, leaf=True)) if counts else None
    if bool(counts) != bool(level) or len(lines) == 1:
        raise InvalidValue("tree: expected counts at every node but the root, and no split at the last level")
    at = split.attribute
    sides = (split.first, active[at] & ~split.first)
    both = (lines[1:middle], lines[middle:])
    children = [
        _read(part, plan, (*active[:at], places, *active[at + 1 :]), level + 1)
        for part, places in zip(both, sides, strict=True)
    ]
    first, second = children
    if first is None or second is None:
        raise InvalidValue("tree: expected two children below a split")
    spread = plan.spread_at(level, leaf=False) if level else 0.0
    return TreeNode(counts, spread, split, (first, second))


def _counts(text: str, plan: TreePlan) -> tuple[int, ...]:
    if text == _NO_COUNT * plan.classes:
        return ()
    parts = [text[start : start + len(_NO_COUNT)] for start in range(0, len(text), len(_NO_COUNT))]
    counts = [int(part) if part[0] in "+-" and part[1:].isdigit() else None for part in parts]
    told = [f"{count:+0{_DIGITS + 1}d}" for count in counts if count is not None]
    if told != parts:
        raise InvalidValue("tree: expected a count for each class")
    return tuple(count for count in counts if count is not None)


def _split(text: str, active: tuple[Places, ...]) -> Split | None:
    if text == _NO_SPLIT:
        return None
    attribute, first = text[:2], text[2:]
    if not attribute.isdigit() or set(first) - set("0123456789abcdef") or int(attribute) >= len(active):
        raise InvalidValue("tree: expected a split of a declared attribute")
    split, places = Split(int(attribute), int(first, 16)), active[int(attribute)]
    if not can_split(places) or split.first & ~places or split.first in (0, places):
        raise InvalidValue("tree: expected places of the node on both sides of a split")
    return split
