"""An audit of epsilon from a member's records to the published rows: the part, the page, and the votes of all trees.

A member has one record, or another one in its place, or none. Two others post the same trees each time: one says no of
everybody, and one yes, so that the member's tree decides each row's label. The auditor sees the published rows alone.
Bounds are those of `test_tree_audit`: a right program fails with a chance of at most 1e-6, and the draws repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import log
from typing import Any

import pytest
from scipy.stats import beta

from aggregator.protocols.trees import published_rows, read_trees
from anon.ldp.epsilon import NANO, nano
from anon.noise import Coins
from anon.protocols.board import BoardEntry, BoardPage
from anon.protocols.contract import Record
from anon.protocols.registry import charge_of
from anon.protocols.resolve import resolve
from anon.protocols.trees import growing
from anon.protocols.trees.attributes import LabelledRow, TextAttribute
from anon.protocols.trees.growing import TreePlan, grown
from anon.protocols.trees.layout import plan_for
from anon.study.manifest import Manifest
from anon.wire.letters import TextAndLetters
from peer.protocols.trees import TreesPart
from tests.anon.trees.test_tree_audit import LEVEL, stream
from tests.anon.trees.test_trees_layout import KNOWN
from tests.support.letters_study import KEYS
from tests.support.protocols import parse_proposal
from tests.support.trees_study import trees_study

pytestmark = pytest.mark.slow
TRIALS, CHOICES = 300, 1000
OWN, OTHER = (1, 10.0, 2.0, 1), (1, 90.0, 9.0, 0)
"""Day, age, sleep, tired: on other sides of every cut."""
NEIGHBOURS = {"replace-one": [OTHER], "add-remove": []}
Rows = Sequence[tuple[float, ...]]


@cache
def study_of(epsilon: float) -> Manifest:
    return resolve(parse_proposal(trees_study(epsilon, "depth = 1")), KEYS, 1_800_000_000)


def text_of(study: Manifest, held: Rows, random: Callable[[int], bytes]) -> bytes:
    record = Record({}, None, rows=tuple(Record({"age": age, "sleep": sleep}, said) for _, age, sleep, said in held))
    return TreesPart().letters(study, study.surveys[0], record, KNOWN, (), random).public


@cache
def others(epsilon: float) -> tuple[bytes, ...]:
    """Twenty records with each combination of categories, all of one label."""
    many = [(0, age, sleep) for age in (10.0, 40.0, 90.0) for sleep in (2.0, 9.0)] * 20
    study = study_of(epsilon)
    return tuple(text_of(study, [(*one, said) for one in many], lambda size: bytes([7]) * size) for said in (0, 1))


def published(study: Manifest, epsilon: float, held: Rows, seed: str) -> Sequence[Sequence[str]]:
    """The rows of the page of all three."""
    texts = [text_of(study, held, stream(seed)), *others(epsilon)]
    entries = {bytes([at]): BoardEntry(TextAndLetters(text, ()), bytes([at]) * 32) for at, text in enumerate(texts)}
    page = BoardPage({0: entries}, ())
    return published_rows(study, read_trees(plan_for(study), page), page).rows


def is_yes(rows: Sequence[Sequence[str]]) -> bool:
    """Most rows like the record have its label, and most rows like the other one have the other's."""
    near = [row[2] == "1" for row in rows if (row[0], row[1]) == ("[0, 30]", "[0, 6]")]
    far = [row[2] == "0" for row in rows if (row[0], row[1]) == ("(60, 100]", "(6, 12]")]
    return 2 * sum(near) > len(near) and 2 * sum(far) > len(far)


def bound(epsilon: float, neighbours: str) -> float:
    """A lower bound of epsilon, the larger one of the event and of its contrary."""
    study, often = study_of(epsilon), []
    for name, held in (("with", [OWN]), ("without", NEIGHBOURS[neighbours])):
        often.append(sum(is_yes(published(study, epsilon, held, f"{name} {trial}")) for trial in range(TRIALS)))
    return max(least(*often, TRIALS), least(TRIALS - often[1], TRIALS - often[0], TRIALS))


def least(many: int, few: int, trials: int) -> float:
    """A lower bound of epsilon, from how often one event came of each."""
    low = float(beta.ppf(LEVEL / 2, many, trials - many + 1)) if many else 0.0
    high = float(beta.ppf(1 - LEVEL / 2, few + 1, trials - few)) if few < trials else 1.0
    return log(low / high) if low else 0.0


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_published_rows_tell_no_more_than_is_charged(neighbours: str) -> None:
    """A record left out costs half of what is charged for one replaced."""
    found = bound(6.0, neighbours)
    charged = charge_of(study_of(6.0)).amount / NANO
    assert charged == 6 and 0.3 < found <= (charged if neighbours == "replace-one" else charged / 2), found


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_rows_of_trees_with_too_little_noise_are_seen(neighbours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = growing.noisy
    monkeypatch.setattr(growing, "noisy", lambda some, classes, cost, coins: right(some, classes, 30 * cost, coins))
    assert bound(0.5, neighbours) > 0.5


# The choice of a split

THIRDS = (TextAttribute("a", ("x", "y", "z")),)
APART = (0b100, 0b011)
SPLITS = {
    "add-remove": ([*[LabelledRow((0,), 0)] * 3, *[LabelledRow((1,), 0)] * 3], [LabelledRow((2,), 1)], False),
    "replace-one": ([LabelledRow((1,), 0)] * 6, [LabelledRow((2,), 1)], True),
}
"""By neighbours: the other records, the one record, and if it makes its place be set apart more often."""


def chosen(neighbours: Any, epsilon: str) -> float:
    """A lower bound of epsilon by the first split alone: if it sets the record's place apart from the other two."""
    plan = TreePlan(THIRDS, 2, nano(epsilon), neighbours, depth=1)
    crowd, own, more = SPLITS[neighbours]
    without = [*crowd, LabelledRow((0,), 1)] if neighbours == "replace-one" else crowd
    often = []
    for name, records in (("with", [*crowd, *own]), ("without", without)):
        coins = Coins(stream(f"{name} {neighbours}"))
        splits = (grown(records, plan, coins).root.split for _ in range(CHOICES))
        often.append(sum((split is not None and split.first in APART) is more for split in splits))
    return least(*(often if more else often[::-1]), CHOICES)


@pytest.mark.parametrize(("neighbours", "promised"), [("add-remove", 3.0), ("replace-one", 3.0)], ids=SPLITS)
def test_a_chosen_split_tells_no_more_than_its_part(neighbours: Any, promised: float) -> None:
    """A quarter of each path's budget: of one path, or of two that have half of it each."""
    assert 0.7 < chosen(neighbours, "12") <= promised


@pytest.mark.parametrize("neighbours", SPLITS)
def test_a_split_that_costs_more_is_seen(neighbours: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = growing.drawn_by_score
    monkeypatch.setattr(growing, "drawn_by_score", lambda scores, rate, coins: right(scores, 40 * rate, coins))
    assert chosen(neighbours, "2") > 2
