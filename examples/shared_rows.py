"""The demo `trees`: each party posts a private tree of its records, and rows that stand for nobody are drawn from all.

The demo knows every record, so it can grow each tree again. A tree does not say whose it is. But all parties have
equally many records, so it shows by how many its counts are wrong: the published trees have to be wrong by as much as
those that are grown again. A run without a fault is farther off than six standard deviations less than once in 100,000.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import fsum
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from aggregator.lab.simulation.evaluation import roc_auc
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.run import categories
from aggregator.protocols.additive.reconstruct import Counts, Floats
from aggregator.protocols.installed import PROTOCOLS
from aggregator.protocols.trees import read_trees
from anon.errors import Malformed
from anon.noise.bernoulli import Coins
from anon.protocols.board import page_of, pages_in
from anon.protocols.contract import ROWS, Record
from anon.protocols.models.rows import PublishedRows, category_texts
from anon.protocols.trees.attributes import LabelledRow
from anon.protocols.trees.growing import TreeNode, TreePlan, grown
from anon.protocols.trees.layout import labelled, plan_for
from anon.study.manifest import Manifest
from examples.published import Published

AGAIN, BAND = 10, 6.0
"""So many trees are grown again of each party. So many standard deviations are right."""


def scores(records: Sequence[Sequence[Record]], test: People, published: Published) -> dict[str, Any]:
    """Errors and AUCs on the test rows of logistic regression on the rows and on the records, and the trees' noise."""
    study = PROTOCOLS.manifest(published.body("manifest"))
    page = pages_in(study, {page_of(0): published.body(*page_of(0))})[0]
    rows, plan = PROTOCOLS.result(published.body(*ROWS)), plan_for(study)
    if not isinstance(rows, PublishedRows):
        raise Malformed("rows: expected made-up rows")
    parties = [labelled(study, Record({}, None, rows=tuple(held))) for held in records]
    each, everybody = len(parties[0]), [row for held in parties for row in held]
    again = [wrong(grown(held, plan, Coins(os.urandom)).root, each) for held in parties for _ in range(AGAIN)]
    told, mean = [wrong(root, each) for root in read_trees(plan, page)], float(np.mean(again))
    far = BAND * float(np.std(again)) / mean / len(told) ** 0.5
    alone = np.mean([_tried(plan, held, study, test) for held in parties], axis=0)
    majority = float(min(test.labels.mean(), 1 - test.labels.mean()))
    models = {
        "published": _tried(plan, _read(study, plan, rows), study, test),
        "one party alone": (float(alone[0]), float(alone[1])),
        "all records, no privacy": _tried(plan, everybody, study, test),
        "majority": (majority, 0.5),
    }
    return {
        "records": each, "rows": len(rows.rows), "trees": len(told), "distance": round(float(np.mean(told)) / mean, 4),
        "distance_band": [round(max(0.0, 1 - far), 4), round(1 + far, 4)],
        "models": {name: (round(error, 4), round(auc, 4)) for name, (error, auc) in models.items()},
    }  # fmt: skip


def wrong(root: TreeNode, records: int) -> float:
    """By how many records the first counts of a tree are wrong: those of its root, or of both sides of its split."""
    return abs(fsum(count for node in root.children or (root,) for count in node.counts) - records)


def _tried(plan: TreePlan, rows: Sequence[LabelledRow], study: Manifest, test: People) -> tuple[float, float]:
    """The error and the AUC of logistic regression on these rows; of one label alone, that is said of everybody."""
    labels, positive = np.array([row.label for row in rows]), test.labels == 1
    if len({*labels.tolist()}) < 2:
        return float((test.labels != labels[0]).mean()), 0.5
    model = LogisticRegression(max_iter=1000).fit(_ones(plan, np.array([row.row for row in rows])), labels)
    found = categories(study.features, test, {})
    tested = np.stack([found[attribute.name] for attribute in plan.attributes], axis=1)
    ranks: Floats = model.decision_function(_ones(plan, tested))
    return float(((ranks > 0) != positive).mean()), roc_auc(ranks, positive)


def _ones(plan: TreePlan, places: Counts) -> Floats:
    """A column of 0 and 1 for each place."""
    columns = zip(plan.attributes, places.T, strict=True)
    return np.hstack([np.eye(attribute.places)[column] for attribute, column in columns])


def _read(study: Manifest, plan: TreePlan, rows: PublishedRows) -> list[LabelledRow]:
    """The places of published rows, by the texts that they have."""
    texts = [category_texts(study.feature(attribute.name)) for attribute in plan.attributes]
    return [
        LabelledRow(tuple(known.index(text) for known, text in zip(texts, row[:-1], strict=True)), int(row[-1]))
        for row in rows.rows
    ]
