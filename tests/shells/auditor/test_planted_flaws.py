"""Flaws of ten kinds that were planted for the auditor, and mechanisms that keep their word exactly."""

from __future__ import annotations

import math
import random
import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from aggregator.auditor.boxes import FunctionBox
from aggregator.auditor.claim import PrivacyClaim
from aggregator.auditor.search import AuditVerdict, audit_black_box
from aggregator.auditor.target import read_target

pytestmark = pytest.mark.slow

PLANTED = sorted((Path(__file__).parent / "planted").glob("*.py"))


@pytest.fixture(autouse=True)
def _fixed() -> None:
    random.seed(7)


def _audited(
    function: Callable[..., object], claim: PrivacyClaim, pairs: list[tuple[object, object]], **limits: float
) -> AuditVerdict:
    coins = np.random.default_rng(1)
    return audit_black_box(FunctionBox(function), claim, pairs, coins, lambda: 0.0, **limits)  # type: ignore[arg-type]


@pytest.mark.parametrize("file", PLANTED, ids=lambda file: file.stem)
def test_a_planted_flaw_is_found(file: Path) -> None:
    target, lines = read_target(str(file), {}), runpy.run_path(str(file))
    verdict = _audited(lines["mechanism"], target.claim(), target.tried(random.Random(3)))
    assert verdict.broken and verdict.runs <= 100_000, verdict.words()
    true = lines["PLANTED"]["epsilon"]
    assert true is None or verdict.highest <= true, "a bound above the truth"


def test_ten_kinds_are_planted() -> None:
    kinds = {runpy.run_path(str(file))["PLANTED"]["kind"] for file in PLANTED}
    assert len(kinds) >= 10


def _response(epsilon: float) -> Callable[[int], int]:
    stays = math.exp(epsilon) / (math.exp(epsilon) + 3)

    def answer(value: int) -> int:
        return value if random.random() < stays else random.choice([other for other in range(4) if other != value])

    return answer


def test_a_sound_mechanism_raises_an_alarm_no_oftener_than_the_error() -> None:
    """At an error of a quarter, 60 audits of a mechanism at its claim have 25 alarms with a chance below .01."""
    alarms = 0
    for _ in range(60):
        alarms += _audited(_response(1.0), PrivacyClaim(1.0), [(0, 1), (2, 3)], runs=1_500, error=0.25).broken
    assert alarms < 25


def test_what_is_proven_comes_close_to_the_claim_and_stays_below() -> None:
    verdict = _audited(_response(1.0), PrivacyClaim(1.0), [(0, 1)], runs=60_000)
    assert not verdict.broken and 0.8 < verdict.highest < 1.0, verdict.words()
    assert "not refuted" in verdict.words() and "1 is claimed" in verdict.words()


def test_delta_is_part_of_the_claim() -> None:
    """An output that one neighbour alone makes, with a chance of a tenth, refutes delta .05 and not delta .12."""

    def leaking(value: int) -> str:
        return "leak" if value and random.random() < 0.1 else "none"

    found = [_audited(leaking, PrivacyClaim(0.5, delta), [(0, 1)], runs=30_000).broken for delta in (0.05, 0.12)]
    assert found == [True, False]


def test_the_time_bounds_the_runs() -> None:
    class Slow(FunctionBox):
        spent = 0.0

        def run(self, pair: tuple[object, object], first: list[bool]) -> list[object]:  # type: ignore[override]
            self.spent += 0.01 * len(first)
            return super().run(pair, first)

        def seconds(self) -> float:
            return self.spent

    box = Slow(_response(1.0))
    verdict = audit_black_box(box, PrivacyClaim(1.0), [(0, 1)], np.random.default_rng(1), lambda: 0.0, seconds=20)
    assert 500 < verdict.runs < 2_000 and box.spent < 20
