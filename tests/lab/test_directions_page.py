"""The sections of docs/results.md about declared directions and baselines: bold where a study is worth its epsilon, and
nowhere else."""

from __future__ import annotations

from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.paper import baselines_page
from benchmarks.paper.directions_page import directions, section


def row(peers: int, epsilon: float, cuts: bool, right: float) -> Figure:
    return {
        "set": "adult", "peers": peers, "epsilon": epsilon, "cuts": cuts, "trials": 10, "rule": 0.8,
        "none": 0.6, "none_se": 0.01, "right": right, "right_se": 0.01,
    }  # fmt: skip


def test_a_study_is_worth_its_epsilon_only_if_it_is_clearly_above_the_rule() -> None:
    text = section(
        [
            row(300, 1.0, False, 0.7), row(300, 1.0, True, 0.81),
            row(300, 2.0, False, 0.83), row(300, 2.0, True, 0.7),
            row(0, 1.0, False, 0.7), row(0, 1.0, True, 0.83),
        ]
    )  # fmt: skip
    assert "| 300 | 0.600 → 0.810 | **0.600 → 0.700** |" in text
    assert "| all | **0.600 → 0.830** |  |" in text
    assert "In 1 of 3 pairs" in text and "none was" not in text and "rule 0.800" in text


def test_a_set_without_any_is_named_and_nothing_measured_has_no_section(tmp_path: Path) -> None:
    assert "On Adult none was." in section([row(300, 1.0, False, 0.7), row(300, 1.0, True, 0.7)])
    assert directions(tmp_path / "directions.json") == ""


def test_the_baselines_name_the_sets_on_which_the_rule_beats_a_trusted_party(tmp_path: Path) -> None:
    row: Figure = {
        "set": "adult", "peers": 2000, "trials": 20, "majority": 0.75, "rule": 0.86, "central": 0.87,
        "binned": 0.88, "raw": 0.89, "boosted": 0.9,
    }  # fmt: skip
    text = baselines_page.section([row, {**row, "set": "spambase", "central": 0.85}])
    assert "| Adult | 2,000 | 0.750 | 0.860 | 0.870 | 0.880 | 0.890 | 0.900 |" in text
    assert "even the trusted party on: spambase." in text
    assert "trusted party on" not in baselines_page.section([row])
    assert baselines_page.baselines(tmp_path / "baselines.json") == ""
