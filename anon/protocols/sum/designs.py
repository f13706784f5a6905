"""The designs of the protocol `sum`."""

from __future__ import annotations

from typing import Final

from anon.protocols.late import LateFunction
from anon.protocols.sum import rule_section
from anon.protocols.sum.sections import BOUNDS, WORDS, Averaging, Gradient, Marginals, Moments, TablesSum, Transfer
from anon.study.designs import Design

_FORMS: Final = "anon.protocols.sum.design"
DESIGNS: Final = {
    kind: Design(section, LateFunction(f"{_FORMS}:{form}"), WORDS[kind], BOUNDS[kind])
    for kind, section, form in (
        ("tables-sum", TablesSum, "tables_form"),
        ("marginals", Marginals, "marginals_form"),
        ("moments", Moments, "moments_form"),
        ("gradient", Gradient, "gradient_form"),
        ("averaging", Averaging, "averaging_form"),
        ("transfer", Transfer, "transfer_form"),
    )
} | {
    "rule": Design(
        rule_section.CalibratedRule, LateFunction(f"{_FORMS}:rule_form"), rule_section.WORDS, rule_section.BOUNDS
    )
}
