"""Lint suggests cuts from the declared range where a small group would have to look for them, and says why."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from aggregator.lab.simulation.simulate import NO_KEYS
from aggregator.study.suggested_cuts import FEW, cuts_of, suggested_cuts
from anon.protocols.resolve import resolve
from anon.study.features import Feature
from anonml import application, wiring
from tests.support.protocols import parse_proposal
from tests.support.world import study_text


def number(low: float, high: float, scale: str = "linear") -> Feature:
    return Feature("n", "numeric", "N.", "SELECT 1", "own", range=(low, high), bins=4, scale=scale)


@pytest.mark.parametrize(("feature", "expected"), [
    (number(0, 100), (25, 50, 75)), (number(17, 90), (35, 54, 72)), (number(-1, 1), (-0.5, 0.0, 0.5)),
    (number(0, 1000, "log"), (0, 9, 99)), (number(1, 10_000, "log"), (16, 140, 1200)),
    (number(2000.5, 2001.5), (2000.75, 2001.0, 2001.25)),
])  # fmt: skip
def test_cuts_are_round_and_within_the_range(feature: Feature, expected: tuple[float, ...]) -> None:
    assert cuts_of(feature) == pytest.approx(expected, abs=0.06)
    assert Feature("n", "numeric", "N.", "SELECT 1", "own", range=feature.range, cuts=cuts_of(feature)).cuts


def test_small_groups_without_cuts_are_told_and_others_are_not() -> None:
    looked_for, declared = (
        resolve(parse_proposal(study_text(kind)), NO_KEYS, 0, lambda below: 0) for kind in ("quantile", "cuts")
    )
    why, line = suggested_cuts(looked_for, 500)
    assert "With 500 people" in why and "mostly noise" in why and line.startswith("cuts of age: such as cuts = [")
    assert suggested_cuts(looked_for, FEW + 1) == () == suggested_cuts(declared, 500)
    assert "With 2 people" in suggested_cuts(looked_for)[0], "without a size it is the file's minimum"


@pytest.mark.parametrize(("kind", "told"), [("quantile", True), ("cuts", False)])
def test_lint_prints_them(tmp_path: Path, kind: str, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aggregator.lab.planning.outlook.outlook_of_plan", lambda *_, **__: None)
    file = tmp_path / "study.toml"
    file.write_text(study_text(kind).replace("100s", "1d"))
    done = CliRunner().invoke(application("study"), ["lint", str(file)], obj=wiring(), env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert ("cuts of age: such as cuts = [" in done.stdout) == told
