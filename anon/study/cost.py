"""A study's cost in nano-epsilon: the sum over slots, and the paper's eq. 6.

`anon.ldp.composition` adds up. No `Survey` declares less than its mechanism's probabilities cost, and `check_study`
refuses a study that declares less than its surveys. `anon.accounting`
states the cost after anonymous delivery, which depends on others.
"""

from __future__ import annotations

from anon.ldp import SurveyCost, per_attribute, record_level
from anon.study.manifest import Slot, Survey


def total_epsilon(surveys: tuple[Survey, ...], slots: tuple[Slot, ...]) -> int:
    """Record-level epsilon in 1e-9: the dearest row of every slot, summed (design section 4)."""
    return record_level([[surveys[row.survey].epsilon for row in slot.rows] for slot in slots])


def attribute_epsilon(surveys: tuple[Survey, ...], slots: tuple[Slot, ...]) -> int:
    """The paper's eq. 6 in 1e-9, shown only as "per-attribute (AnonML eq. 6)", never as the guarantee."""
    return per_attribute(
        [
            [
                SurveyCost(
                    surveys[row.survey].features, surveys[row.survey].asks_label, surveys[row.survey].epsilon
                )
                for row in slot.rows
            ]
            for slot in slots
        ]
    )
