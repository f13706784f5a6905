"""The whole life of a study of sums, by real programs: the driver is `benchmarks.life_sums`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from attrs import evolve

from benchmarks.life_figures import Outcome
from benchmarks.life_sums import MOST_BYTES, MOST_SECONDS, MOST_SIGMAS, SumFacts, SummedLife, TellerTimes, live

HERE = Path("/proc/self/clear_refs")


@pytest.mark.soak
@pytest.mark.skipif(not HERE.exists(), reason="memory of other programs is read from /proc")
async def test_a_small_life_of_sums_loses_nothing(tmp_path: Path) -> None:
    found = await live(tmp_path, 60, 40, 2, 1)
    life = found.outcome
    assert found.ok, found.about()
    assert (life.lost, life.strange, life.doubled, life.included, found.facts.off_list) == (0, 0, 0, 2, 0)
    assert life.words == {"enrolments": Counter(accepted=58), "packets": Counter(accepted=58 + 6)}
    assert 0.3 < found.facts.spread < 2.5, "40 cells: chi-squared beyond it in one of 10^5 lives"
    assert len(found.rows()) == len(life.stages) and len(found.times.whole) == 2


TIMES = TellerTimes([], [[1.0, 1.0]], [MOST_SECONDS, 1.0])
LIFE = Outcome(
    members=10_000,
    stages=(),
    words={"packets": Counter(accepted=11_000)},
    downloaded=(MOST_BYTES, 1),
    included=2,
    lost=0,
    strange=0,
    doubled=0,
    audit={"findings": [], "enrolled": 10_000, "packets": 10_000, "model_checked": True},
)
GOOD = SummedLife(1000, LIFE, SumFacts(0, MOST_SIGMAS, 1.0), TIMES)
BAD_LIVES: list[dict[str, object]] = [
    {"lost": 1},
    {"strange": 1},
    {"doubled": 1},
    {"included": 1},
    {"downloaded": (MOST_BYTES + 1, 1)},
    {"words": {"packets": Counter(accepted=10_999, busy=1)}},
    {"audit": {**LIFE.audit, "findings": ["one"]}},
    {"audit": {**LIFE.audit, "packets": 9_999}},
    {"audit": {**LIFE.audit, "enrolled": 9_999}},
    {"audit": {**LIFE.audit, "model_checked": False}},
]


@pytest.mark.parametrize("fault", BAD_LIVES)
def test_each_fault_of_a_life_fails_the_whole(fault: dict[str, object]) -> None:
    assert GOOD.ok
    assert not evolve(GOOD, outcome=evolve(LIFE, **fault)).ok


@pytest.mark.parametrize(
    "fault",
    [
        {"facts": SumFacts(1, 1.0, 1.0)},
        {"facts": SumFacts(-1, 1.0, 1.0)},
        {"facts": SumFacts(0, MOST_SIGMAS + 0.1, 1.0)},
        {"times": TellerTimes([], [], [1.0, MOST_SECONDS + 0.1])},
        {"cells": 999},
    ],
)
def test_each_fault_of_a_sum_fails_the_whole(fault: dict[str, object]) -> None:
    assert not evolve(GOOD, **fault).ok
