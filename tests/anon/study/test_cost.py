"""The two costs of a study, by hand: the whole record's, and the paper's eq. 6 for protocols that name kinds of their
own."""

from __future__ import annotations

import pytest

from anon.ldp import build, nano
from anon.protocols.histogram.asked import asks_label
from anon.study.cost import attribute_epsilon, total_epsilon
from anon.study.manifest import Survey, Window
from anon.study.slots import Row, Slot

WINDOW = Window(0, 3600)


def _survey(number: int, kind: str, features: tuple[str, ...], epsilon: float) -> Survey:
    made = build("krr", 2, nano(epsilon))
    return Survey(number, kind, features, (2,) * len(features), 2, made.name, made.p, made.q, made.epsilon, WINDOW)


SURVEYS = (_survey(0, "opinion", (), 1.0), _survey(1, "opinion", ("age",), 0.5), _survey(2, "age", ("age",), 0.25))
SLOTS = (Slot(0, (Row(0, 1), Row(1, 1))), Slot(1, (Row(2, 1),)))


def test_a_slot_costs_its_dearest_row_and_a_study_the_sum() -> None:
    assert total_epsilon(SURVEYS, SLOTS) == SURVEYS[0].epsilon + SURVEYS[2].epsilon


def test_the_protocol_says_which_surveys_tell_of_the_label() -> None:
    """A kind that only another protocol knows counts for the label when that protocol says so, and else does not."""
    of_age = SURVEYS[1].epsilon + SURVEYS[2].epsilon
    assert attribute_epsilon(SURVEYS, SLOTS, lambda survey: survey.kind == "opinion") == SURVEYS[0].epsilon > of_age
    assert attribute_epsilon(SURVEYS, SLOTS, lambda _survey: True) == SURVEYS[0].epsilon + SURVEYS[2].epsilon
    assert attribute_epsilon(SURVEYS, SLOTS, asks_label) == of_age


@pytest.mark.parametrize(
    ("kind", "told"), [("histogram", True), ("quantile", False), ("threshold", False), ("opinion", False)]
)
def test_of_the_histograms_surveys_those_that_find_cuts_tell_nothing_of_the_label(kind: str, told: bool) -> None:
    assert asks_label(_survey(0, kind, ("age",), 1.0)) is told
