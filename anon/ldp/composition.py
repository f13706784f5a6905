"""The joint cost of several releases of one peer. Pure local epsilon only; sums are exact integers."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field

from anon.ldp.epsilon import NanoEpsilon
from anon.values import frozen


@frozen
class SurveyCost:
    """One survey a slot may draw: the features it asks about, whether the label too, and its nano-epsilon."""

    features: tuple[str, ...]
    includes_label: bool
    epsilon: int = field()

    def __attrs_post_init__(self) -> None:
        if self.epsilon < 0:
            raise ValueError("a release cannot have a negative epsilon")


def record_level(slots: Sequence[Sequence[int]]) -> NanoEpsilon:
    """Return the record-level nano-epsilon: the dearest row of every slot's table, summed.

    Each inner sequence holds the epsilons of one slot's rows, of which a peer answers one. The bound covers any change
    to the whole record and holds without assumptions on how features depend on each other; it is tight (erratum 13).
    This is what ledger, consent and manifest state.

    >>> from anon.ldp import nano
    >>> record_level([[nano(1), nano(2)], [nano("0.5")]])  # two packets; the first is of one of two surveys
    2500000000
    """
    if any(epsilon < 0 for slot in slots for epsilon in slot):
        raise ValueError("a release cannot have a negative epsilon")
    return NanoEpsilon(sum(max(slot, default=0) for slot in slots))


def per_attribute(slots: Sequence[Sequence[SurveyCost]]) -> NanoEpsilon:
    """Return eq. 6 of the paper, to be shown only as "per-attribute (AnonML eq. 6)", never as the guarantee.

    For one feature or the label: the dearest row touching it in every slot, summed; then the largest of these. It
    bounds the loss only if neighbouring records differ in a single attribute, and understates that of a whole record
    by 2 to 7 times (erratum 13). Each inner sequence holds the rows of one slot.

    Two packets about different features: a whole record loses 2, and eq. 6 states 1.

    >>> from anon.ldp import nano
    >>> slots = [[SurveyCost(("cups",), False, nano(1))], [SurveyCost(("sleep",), False, nano(1))]]
    >>> per_attribute(slots), record_level([[survey.epsilon for survey in slot] for slot in slots])
    (1000000000, 2000000000)
    """
    features = {feature for slot in slots for release in slot for feature in release.features}
    of_label = sum(max((row.epsilon for row in slot if row.includes_label), default=0) for slot in slots)
    of_features = (
        sum(max((row.epsilon for row in slot if feature in row.features), default=0) for slot in slots)
        for feature in features
    )
    # The 0 makes two arguments at least: max of a single integer is a TypeError.
    return NanoEpsilon(max(of_label, *of_features, 0))
