"""The rule of declared directions, which asks nobody: how well the sum of what staff expect ranks people by itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve

from aggregator.lab.simulation.evaluation import evaluate_model, roc_auc
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.run import category_table
from aggregator.lab.simulation.trusted_party import trusted_party_of
from aggregator.protocols.additive.reconstruct import Floats
from aggregator.report.evaluation import TestEvaluation
from anon.protocols.categories import directions
from anon.protocols.models.published import PublishedModel
from anon.study.features import Feature
from anon.study.manifest import Manifest


def evaluated(model: PublishedModel, study: Manifest, test: People, members: int) -> TestEvaluation:
    """`evaluate_model`, with the rule of the study's directions beside, and a trusted party of as many members. Raises
    as it does."""
    found = evaluate_model(model, test)
    trusted = trusted_party_of(study, test, members)
    return evolve(found, rule_auc=rule_auc(study.features, test), trusted_auc=trusted)


def rule_auc(features: Sequence[Feature], people: People) -> float | None:
    """The ROC AUC of `declared_sum`; None where nothing is declared."""
    if not any(feature.expects for feature in features):
        return None
    return roc_auc(declared_sum(features, people), people.labels == 1)


def declared_sum(features: Sequence[Feature], people: People) -> Floats:
    """The sum of the declared directions of each person, shape (people,).

    A number with declared cuts adds its bin's direction, another its place in the declared range, from -1 to 1.
    """
    total = np.zeros(len(people))
    for feature in features:
        if not feature.expects:
            continue
        column = people.columns[feature.name]
        if feature.kind == "numeric" and not feature.cuts:
            total += (feature.expects[0] * _places(feature, column.numbers))[column.index]
            continue
        told = np.array([float(direction) for direction in directions(feature)])
        total += told[category_table(feature, column, feature.cuts)][column.index]
    return total


def _places(feature: Feature, numbers: Floats) -> Floats:
    """From -1 at one end of the declared range to 1 at the other, in its scale; 0 for a missing value of its own."""
    low, high = feature.range
    missing = np.nan if feature.missing == "own" else float(feature.missing)
    known = np.clip(np.where(np.isnan(numbers), missing, numbers), low, high)
    if feature.scale == "log":
        known, low, high = np.log1p(known), float(np.log1p(low)), float(np.log1p(high))
    places: Floats = np.nan_to_num(2 * (known - low) / (high - low) - 1, nan=0.0)
    return places
