"""Local differential privacy: mechanisms that know their own loss, and what several of them cost together.

`mechanism` is what all have in common, and undoes the bias. Each perturbs in a module of its own: `krr`, `subset` and
`unary`. `choice` picks one.
"""

from __future__ import annotations

from anon.ldp.choice import AUTO, MECHANISMS, build, choose, choose_for_label, from_spec, label_contrast_error
from anon.ldp.composition import SurveyCost, per_attribute, record_level
from anon.ldp.epsilon import MAX_EPSILON, NANO, NanoEpsilon, format_epsilon, loss, nano, odds_moved
from anon.ldp.mechanism import (
    MAX_CATEGORIES,
    MIN_CATEGORIES,
    SCALE,
    Mechanism,
    PerturbedReport,
    RandomBytes,
    RawCategory,
)

__all__ = [
    "AUTO",
    "MAX_CATEGORIES",
    "MAX_EPSILON",
    "MECHANISMS",
    "MIN_CATEGORIES",
    "NANO",
    "SCALE",
    "Mechanism",
    "NanoEpsilon",
    "PerturbedReport",
    "RandomBytes",
    "RawCategory",
    "SurveyCost",
    "build",
    "choose",
    "choose_for_label",
    "format_epsilon",
    "from_spec",
    "label_contrast_error",
    "loss",
    "nano",
    "odds_moved",
    "per_attribute",
    "record_level",
]
