"""The desk's first page asks how many people take part, and answers from made-up people."""

from __future__ import annotations

import pytest

from aggregator.desk.editor import lint_text
from aggregator.desk.form import TELLERS
from aggregator.desk.views.class_size import study_text
from tests.support.desk_browser import Desk, words_of


def test_the_study_that_is_tried_has_so_many_columns() -> None:
    for adds, kind in (("", "one-packet"), (TELLERS, "tables-sum")):
        linted = lint_text(study_text({"people": 60, "features": 4, "epsilon": 1.5}, adds))
        assert linted.ok and linted.proposal is not None, linted.faults
        assert len(linted.proposal.features) == 4 and linted.proposal.design.kind == kind
        assert linted.proposal.features[0].cuts == (30, 60)


@pytest.mark.slow
async def test_a_class_is_judged_without_tellers_and_with_two(desk: Desk) -> None:
    first = words_of((await desk.get("/")).text)
    assert "Is my class large enough?" in first and "People who will take part" in first
    page = words_of((await desk.get("/class-size?people=300&features=3&epsilon=4")).text)
    assert page.count("300 people") == 3 and page.index("changed at random") < page.index("two tellers add them up")
    assert "expected ROC AUC" in page and "made-up people" in page
    assert page.index("two tellers add them up") < page.index("With 300 people the model ranks about as your own")
    alone = words_of((await desk.get("/class-size?people=300&features=1&epsilon=4")).text)
    assert "own belief" not in alone, "of one column nothing is added up"


async def test_a_figure_that_is_none_is_refused_with_what_to_do(desk: Desk) -> None:
    for wrong in ("people=1", "people=many", "features=21", "epsilon=9", "epsilon=nan"):
        page = await desk.get(f"/class-size?{wrong}")
        assert page.status == 400 and "go back and correct it" in words_of(page.text), wrong
