"""The figures of a model on test people, as the report shows them: values alone. The lab finds them."""

from __future__ import annotations

from math import sqrt

from attrs import frozen

FEWEST = 20
"""Subgroups smaller than this are marked: their rates say little."""


@frozen
class Subgroup:
    """The errors among people in one category of one feature. Rates are None where nobody could be wrong that way."""

    name: str
    people: int
    positive: float
    error: float
    false_positive: float | None
    false_negative: float | None
    auc: float | None

    @property
    def margin(self) -> float:
        """Half the width of the error's 95 % interval (Wald)."""
        return 1.96 * sqrt(self.error * (1 - self.error) / self.people)


@frozen
class TestEvaluation:
    """On `people` test people, of whom the share `positive` is: scores, points (false positive rate, true positive
    rate) of the ROC curve, and (mean prediction, share of positives) of tenths by prediction. `rule_auc`: the AUC of
    the directions that the study file declares, by themselves; None without any. `trusted_auc`: that of a trusted party
    which has learned from half of the test people, on the others; None where one half has a single label."""

    people: int
    positive: float
    auc: float
    auc_error: float
    f1: float
    accuracy: float
    ece: float
    roc: tuple[tuple[float, float], ...]
    calibration: tuple[tuple[float, float], ...]
    subgroups: tuple[Subgroup, ...]
    rule_auc: float | None = None
    trusted_auc: float | None = None

    @property
    def majority(self) -> float:
        """The accuracy of the answer that most of the test people have, given to everybody."""
        return max(self.positive, 1 - self.positive)
