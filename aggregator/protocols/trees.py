"""The protocol `trees` at the aggregator: everybody can draw the same rows from the page, so it knows no more.

1. `read_trees`: each text that is a tree of the study's plan. All others are left out and counted.
2. `consistent_tree`: counts that add up, are not negative, and stand for as many rows as a tree may.
3. `drawn_places`: the rows of each tree, by a stream that follows from the page.
4. `votes`: the class that most trees give to a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from math import fsum
from typing import Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aggregator.protocols.contract import LearningResult, PartScore, ReportPart
from aggregator.protocols.estimates import Estimate
from aggregator.protocols.tally import Tally
from anon.crypto import labels
from anon.errors import InvalidValue, Malformed
from anon.noise.bernoulli import Coins
from anon.protocols.board import BoardPage, pages_in
from anon.protocols.contract import ROWS, Place
from anon.protocols.models.published import PublishedModel
from anon.protocols.models.rows import PublishedRows, category_texts
from anon.protocols.trees import drawing
from anon.protocols.trees.attributes import MOST_PLACES
from anon.protocols.trees.consistent import consistent
from anon.protocols.trees.drawing import commonest
from anon.protocols.trees.growing import TreeNode, TreePlan
from anon.protocols.trees.layout import plan_for, target_of
from anon.protocols.trees.written import read
from anon.study.manifest import Manifest, Survey
from anon.wire.cbor import encode
from anon.wire.packets import PublishedPacket

Integers = NDArray[np.int64]
_LABELS: Final = ("0", "1")
_SHOWN: Final = 10
"""Rows that the report shows."""
_TEMPLATE: Final = """{% extends "report.html" %}
{% block source %}Noisy trees of {{ traffic.enrolled }} enrolled members, each public as it is.{% endblock %}
{% block rests %}
It rests on {{ learned.trees }} trees, each of them made noisy before it left its owner's machine.
{% endblock %}
{% block answered %}
<li>Each machine grew one tree of its records with noise of its own, and posted it with a token that proves membership,
once.</li>
<li>Counts of each tree were made consistent. Rows were drawn by a hash of the page, and labelled by most trees.</li>
{% endblock %}
{% block results %}
<h2>Rows that are nobody's</h2>
<p>{{ learned.rows.rows | length }} rows were made up from {{ learned.trees }} noisy trees, each of one member's
records: no row stands for a person or a record, and they tell nothing that the trees do not.
{% if learned.refused %}{{ learned.refused }} texts were no tree of this study, and are left out.{% endif %}</p>
<p>The label of a row is the one that most trees give it. These are the first rows. Numbers are intervals, and an empty
cell is a missing value. The export has all of them as <code>rows.json</code> and <code>rows.csv</code>.</p>
<div class="wide" tabindex="0" role="region" aria-label="rows">
<table><tr>{% for name in learned.rows.columns %}<th dir="auto">{{ name }}</th>{% endfor %}</tr>
{% for row in first %}<tr>{% for text in row %}<td dir="auto">{{ text }}</td>{% endfor %}</tr>
{% endfor %}</table>
</div>
{% endblock %}
"""


@frozen
class DrawnRows:
    """The rows. `trees`: how many they are drawn from. `refused`: texts that are no trees."""

    rows: PublishedRows
    trees: int
    refused: int
    model: None = None

    @property
    def results(self) -> Mapping[Place, bytes]:
        """The rows alone."""
        return {ROWS: self.rows.to_json().encode()}


@frozen
class DrawingPart:
    """See `aggregator.protocols.contract`."""

    def tally(self, study: Manifest, survey: Survey, packets: Sequence[PublishedPacket], score_value: bytes) -> Tally:
        """Nothing: all of it is on the page."""
        return np.zeros(0, dtype=np.int64)

    def part_scores(self, model: PublishedModel) -> tuple[PartScore, ...]:
        """None."""
        return ()

    def estimate(
        self, study: Manifest, survey: Survey, documents: Mapping[Place, bytes], tally: Tally, final: bool
    ) -> Estimate | None:
        """None."""
        return None

    def ends(self, study: Manifest, number: int, documents: Mapping[Place, bytes]) -> bool:
        """True where no text is a tree."""
        return not read_trees(plan_for(study), pages_in(study, documents)[0])

    def learn(self, study: Manifest, documents: Mapping[Place, bytes], tallies: Mapping[int, Tally]) -> LearningResult:
        """The rows of all trees. Raises `Malformed` without a tree."""
        page, plan = pages_in(study, documents)[0], plan_for(study)
        roots = read_trees(plan, page)
        if not roots:
            raise Malformed("trees: no member posted one")
        return DrawnRows(published_rows(study, roots, page), len(roots), len(page.texts(0)) - len(roots))

    def report(self, study: Manifest, learned: LearningResult) -> ReportPart:
        """The first rows, with their cost."""
        if not isinstance(learned, DrawnRows):
            raise TypeError(f"not learned from trees: {type(learned).__name__}")
        return ReportPart(_TEMPLATE, {"first": learned.rows.rows[:_SHOWN]})


def read_trees(plan: TreePlan, page: BoardPage) -> list[TreeNode]:
    """The trees of a page, in the order of tags. A text that is none is left out."""
    found = []
    for text in page.texts(0).values():
        try:
            found.append(read(text.decode("latin-1"), plan).root)
        except InvalidValue:
            continue
    return found


def consistent_tree(root: TreeNode, most: int) -> TreeNode:
    """A tree with counts that are not negative and add up. One that stands for more rows is made to stand for `most`.
    """
    found = consistent(root)
    size = fsum(found.counts)
    return found if size <= most else consistent(root, most)


def published_rows(study: Manifest, roots: Sequence[TreeNode], page: BoardPage) -> PublishedRows:
    """The rows of these trees: a column for each feature that splits, and the label or the target last."""
    plan, target = plan_for(study), target_of(study)
    settled = [consistent_tree(root, study.surveys[0].parameters[1]) for root in roots]
    places = drawn_places(settled, plan, encode([labels.DRAWN_ROWS, study.study_id, page.digest]))
    classes = votes(settled, places, plan.classes)
    names = [attribute.name for attribute in plan.attributes]
    texts = [category_texts(study.feature(name)) for name in names]
    texts.append(category_texts(target) if target else [*_LABELS])
    columns = [
        np.array(said, dtype=object)[at].tolist() for said, at in zip(texts, [*places.T, classes], strict=True)
    ]
    told = (*names, target.name if target else study.label.name)
    return PublishedRows(study.study_id.hex(), study.title, told, tuple(zip(*columns, strict=True)))


def drawn_places(roots: Sequence[TreeNode], plan: TreePlan, grounds: bytes) -> Integers:
    """The places of all rows, shape (rows, attributes)."""
    coins = Coins(_stream(grounds))
    found = [drawn.row for root in roots for drawn in drawing.rows(root, plan.attributes, coins)]
    return np.array(found, dtype=np.int64).reshape(-1, len(plan.attributes))


def _stream(grounds: bytes) -> Callable[[int], bytes]:
    calls = count()
    return lambda size: hashlib.shake_256(grounds + next(calls).to_bytes(8, "big")).digest(size)


def votes(roots: Sequence[TreeNode], places: Integers, classes: int) -> Integers:
    """The class that most trees give to each row, as `drawing.voted` has it for one; the smallest of several."""
    counted = np.zeros((len(places), classes), dtype=np.int64)
    for root in roots:
        _vote(root, places, np.arange(len(places)), counted)
    found: Integers = counted.argmax(axis=1)
    return found


def _vote(node: TreeNode, places: Integers, there: Integers, counted: Integers) -> None:
    """One tree's say about the rows that reach a node."""
    if node.split is None:
        counted[there, commonest(node.counts)] += 1
        return
    first = np.array([bool(node.split.first >> place & 1) for place in range(MOST_PLACES)])
    sides = first[places[there, node.split.attribute]]
    for child, side in zip(node.children, (sides, ~sides), strict=True):
        _vote(child, places, there[side], counted)
