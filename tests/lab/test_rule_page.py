"""The section about the calibrated rule, and the bars that `benchmarks.rule` holds: a constant learner misses some."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.figures import Figure
from benchmarks.paper import rule_page
from benchmarks.rule import KINDS, faults_of
from benchmarks.rule_local import missed


def row(**changes: float | str) -> Figure:
    kinds = {"right": 0.878, "third": 0.877, "wrong": 0.875}
    found: Figure = {
        "set": "adult", "peers": 2000, "trials": 10, "rule": 0.861, "rule_third": 0.683, "rule_wrong": 0.139,
        "tables": 0.877, "none": 0.876, **kinds, "null_against": 0.015, "null_p": 0.5,
    }  # fmt: skip
    found |= {f"{name}_se": 0.001 for name in ("tables", "none", *KINDS)}
    return found | {"against_right": 0.0, "against_third": 0.1, "against_wrong": 1.0} | changes


def test_a_constant_learner_misses_what_it_has_to_find_out() -> None:
    own, constant = faults_of(row())
    assert own == []
    assert [fault.split(": ")[1].rsplit(" ", 3)[0] for fault in constant] == [
        "right", "right, beside tables", "third, beside none", "wrong, beside none", "wrong, found",
    ]  # fmt: skip


@pytest.mark.parametrize(("changes", "fault"), [
    ({"right": 0.8769}, "right 0.8769, expected 0.8770"),
    ({"right": 0.877, "tables": 0.8825}, "right, beside tables 0.8770, expected 0.8775"),
    ({"third": 0.865}, "third, beside none 0.8650, expected 0.8660"),
    ({"wrong": 0.855}, "wrong, beside none 0.8550, expected 0.8560"),
    ({"against_wrong": 0.94}, "wrong, found 0.9400, expected 0.9500"),
    ({"against_right": 0.03}, "right, not contradicted 0.9700, expected 0.9800"),
    ({"null_against": 0.021}, "nothing to find, not contradicted 0.9790, expected 0.9800"),
    ({"set": "news", "peers": 100, "right": 0.855}, "right, beside the rule 0.8550, expected 0.8560"),
])
def test_each_bar_is_held(changes: dict[str, float | str], fault: str) -> None:
    (found,) = faults_of(row(**changes))[0]
    assert found.endswith(f": {fault}")


def test_the_section_is_put_in_place_of_the_one_that_is_there(tmp_path: Path) -> None:
    kept, page = tmp_path / "rule.json", tmp_path / "results.md"
    page.write_text(f"# Page\n\n## Before\n\ntext\n\n{rule_page.LAST}\n\nrest\n", encoding="utf-8")
    for trials in (10, 20):
        about = {"seed": 1, "shuffles": 2000, "missed": 0, "missed_by_a_constant": 5}
        kept.write_text(json.dumps({"rows": [row(trials=trials)], **about}), encoding="utf-8")
        rule_page.put(kept, page)
    text = page.read_text("utf-8")
    assert text.startswith("# Page\n\n## Before\n\ntext\n\n## The calibrated rule") and text.endswith("meet\n\nrest\n")
    assert text.count(rule_page.TITLE) == 1 and "\n\n20 fresh trials a cell, seed 1; 2,000 shuffles" in text
    assert "misses 0 of the bars that the command holds, a constant learner 5." in text
    assert "| Adult | 2,000 | 0.861 | 0.683 | 0.139 | 0.8770 ± 0.0010 |" in text
    assert rule_page.rule(tmp_path / "none.json") == ""
    kept.write_text(json.dumps({"rows": [row()], "seed": 1, "shuffles": 1000, "trials": 10, "missed": 1}), "utf-8")
    rule_page.put(kept, page, rule_page.LOCAL)
    text = page.read_text("utf-8")
    assert text.count(rule_page.TITLE) == text.count(rule_page.LOCAL) == 1 and "misses 1 of the bars" in text
    assert "| Adult | 2,000 | 0.861 | 0.683 | 0.139 | 0.8760 ± 0.0010 | 0.8780 ± 0.0010 |" in text


@pytest.mark.parametrize(("changes", "fault"), [
    ({"right": 0.8509}, "2,000: right, the mean over sets, 0.8509, expected 0.8510"),
    ({"third": 0.835}, "third, beside none 0.8350, expected 0.8360"),
    ({"wrong": 0.855}, "wrong, beside none 0.8550, expected 0.8560"),
    ({"against_wrong": 0.89}, "wrong, found 0.8900, expected 0.9000"),
    ({"against_right": 0.03}, "right, not contradicted 0.9700, expected 0.9800"),
    ({"null_against": 0.021}, "nothing to find, not contradicted 0.9790, expected 0.9800"),
])
def test_each_bar_of_the_local_rule_is_held(changes: dict[str, float | str], fault: str) -> None:
    assert missed([row()]) == []
    (found,) = missed([row(**changes)])
    assert found.endswith(fault)
