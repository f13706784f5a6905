"""The pages' examples of the estimator run as they are printed."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from aggregator.lab.simulation.evaluation import calibration_error
from benchmarks.calibration import expected_error

ROOT = Path(__file__).resolve().parents[2]


def _block(page: str, word: str) -> str:
    found = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    (only,) = [one for one in found if word in one]
    return only


def test_the_page_runs_and_nothing_is_read_from_the_data() -> None:
    known: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        block = _block("docs/estimator.md", "LocallyPrivateClassifier")
        exec(block, known)
    model, told = known["model"], known["told"]
    assert model.better_than_base_rate_
    assert re.search(r"better_than_base_rate_ +# True;", block)
    assert model.classes_.tolist() == ["left", "stayed"]
    np.testing.assert_allclose(told.base + told.contributions.sum(axis=1), model.decision_function(known["X"][:3]))


def test_the_calibration_error_of_the_benchmark_is_that_of_simulate() -> None:
    generator = np.random.default_rng(1)
    predicted, positive = generator.random(1003), generator.random(1003) < 0.4
    assert expected_error(predicted, positive, 10) == pytest.approx(calibration_error(predicted, positive))
    assert expected_error(np.full(100, 0.25), np.arange(100) < 50, 1) == pytest.approx(0.25)
