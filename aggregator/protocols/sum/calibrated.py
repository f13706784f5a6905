"""The calibrated rule as a model of tables: log-odds of the declared score, and the corrections of each category."""

from __future__ import annotations

from statistics import pvariance

from attrs import evolve

from aggregator.protocols.additive.results import LearnedStudy, Subject, published
from anon.protocols.models.belief import Belief
from anon.protocols.models.tables import ModelTable
from anon.protocols.vectors.rule import CONTRADICTED, UNIT, Calibration, DeclaredRule, RuleModel, sigmoid


def learn_rule(
    subject: Subject, rule: DeclaredRule, found: tuple[Calibration, RuleModel], members: int, enough: int
) -> LearnedStudy:
    """The published model of a calibrated rule. Its test is that of the score, one way or the other.

    Where noise alone usually counts as much, the likelier label is decided for. `enough`: see `Belief`.
    """
    calibration, model = found
    evidence, tables = calibration.evidence, []
    for feature, own in zip(subject.features, model.tables, strict=True):
        log_odds = tuple(value / UNIT for value in own)
        votes = tuple(int(value > 0) for value in own)
        tables.append(
            ModelTable((feature.name,), (feature.cardinality,), members, 0.0, 0.5, 0.0, log_odds, votes)
        )
    belief = Belief(
        sum(map(any, rule.directions)), _heard(rule, calibration, model), members, evidence.against,
        evidence.against <= CONTRADICTED, enough,
    )  # fmt: skip
    base = min(max(sigmoid(model.intercept / UNIT), 1e-6), 1 - 1e-6)
    made = evolve(subject.model("soft", "additive", base, evidence.rate, tables), belief=belief)
    return published(LearnedStudy(made, (), evidence.rate, chance=evidence.chance))


def _heard(rule: DeclaredRule, found: Calibration, model: RuleModel) -> float:
    """The part of the variance of log-odds that corrections have, all categories of a feature being alike common. All
    of it where the answers turned the declared way around."""
    if found.slope < 0:
        return 1.0
    declared = corrections = 0.0
    for part, own in zip(rule.parts, model.tables, strict=True):
        told = [found.slope * direction for direction in part]
        declared += pvariance(told)
        corrections += pvariance([value / UNIT - start for value, start in zip(own, told, strict=True)])
    return corrections / (declared + corrections) if corrections else 0.0
