"""The words for a declared direction, which consent, lint, desk and report share."""

from __future__ import annotations

import pytest

from aggregator.desk.editor import lint_text
from aggregator.study.expected import PROMISE, expected_of
from anon.protocols.names import expectation
from anon.study.features import Feature
from tests.support.world import study_text

WITH = study_text("bits").replace('missing = "own"', 'missing = "own"\nexpects = 1').replace(
    'missing = "Male"', 'missing = "Male"\nexpects = [-1, 1]'
)


@pytest.mark.parametrize(("signs", "said"), [
    ((), ""),
    ((1,), "Staff expect that the higher “hours” is, the more often “stays” is a yes."),
    ((-1,), "Staff expect that the higher “hours” is, the less often “stays” is a yes."),
])
def test_a_number_goes_up_or_down(signs: tuple[int, ...], said: str) -> None:
    feature = Feature("hours", "numeric", "Hours.", "SELECT 1", 0, range=(0, 9), cuts=(1,), expects=signs)
    assert expectation(feature, "stays") == said


@pytest.mark.parametrize(("signs", "said"), [
    ((1, 0, -1), "Staff expect that “stays” is a yes more often for: “a”; and less often for: “c”."),
    ((1, 1, 0), "Staff expect that “stays” is a yes more often for: “a”, “b”."),
    ((0, -1, 0), "Staff expect that “stays” is a yes less often for: “b”."),
])
def test_categories_are_named_by_their_signs(signs: tuple[int, ...], said: str) -> None:
    feature = Feature("way", "categorical", "Way.", "SELECT 1", "a", categories=("a", "b", "c"), expects=signs)
    assert expectation(feature, "stays") == said


def test_a_check_of_a_study_file_says_what_is_declared() -> None:
    linted = lint_text(WITH)
    assert linted.ok, linted.faults
    assert linted.expected == (
        "Staff expect that “income” is a yes more often for: “Male”; and less often for: “Female”.",
        "Staff expect that the higher “age” is, the more often “income” is a yes.",
        PROMISE,
    )
    plain = lint_text(study_text("bits"))
    assert plain.expected == () and plain.manifest is not None and expected_of(plain.manifest) == ()
    assert lint_text("version = 1").expected == ()
