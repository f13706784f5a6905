"""Studies of exact sums by real programs: peers offline in each round, tellers and the aggregator killed in the
middle."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import command_line
from tests.support.sum_evidence import Evidence, shown
from tests.support.sum_programs import AGGREGATOR, Plan, sum_programs
from tests.support.sum_subjects import gradient, rule

RELAYED = "before-commit-of-list"
"""Of an aggregator: the tellers have the shares of all peers, and none has a list of them."""
LATE = "before-commit-of-document:2"
"""Of an aggregator that was killed in the first round: the document of the second one."""
KILLS = {
    "clinic": ("after-commit-of-noisy-share:3",), "students": ("before-commit-of-noisy-share",),
    AGGREGATOR: (f"{RELAYED}:2",),
}  # fmt: skip
TELLERS = Plan(
    gradient(1), 12, 2, 60, 40, 30, returning=True,
    points={"students": ("before-commit-of-noisy-share",), "clinic": ("after-commit-of-noisy-share:2",)},
)  # fmt: skip
KILLED_AGGREGATOR = Plan(gradient(1), 12, 2, 60, 40, 30, {AGGREGATOR: (RELAYED, LATE)}, returning=True)
RULE = Plan(rule(1), 12, 2, 60, 40, 30, {"students": ("before-commit-of-noisy-share",)}, returning=True)
MANY = Plan(gradient(2), 200, 4, 90, 60, 40, KILLS, returning=True)
THROUGH_TOR = Plan(gradient(2), 60, 2, 100, 90, 60, KILLS, returning=True, tor=True, wall=True)


@pytest.mark.parametrize("plan", [
    pytest.param(TELLERS, id="tellers", marks=pytest.mark.process),
    pytest.param(KILLED_AGGREGATOR, id="aggregator", marks=pytest.mark.soak),
    pytest.param(RULE, id="rule", marks=pytest.mark.soak),
    pytest.param(MANY, id="loopback-200", marks=pytest.mark.soak),
    pytest.param(THROUGH_TOR, id="tor-60", marks=[pytest.mark.soak, pytest.mark.tor]),
])  # fmt: skip
async def test_a_study_by_programs_that_are_killed(
    plan: Plan, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if plan.tor:
        network = request.getfixturevalue("private_tor")
        monkeypatch.setitem(command_line.ENVIRONMENT, "ANONML_TORRC", str(network.torrc_file))
    async with sum_programs(tmp_path, plan) as study:
        await study.through()
        evidence = Evidence.of(study)
        evidence.demand_all()
        deaths = {name: program.deaths for name, program in study.programs.items()}
        planned = {name: sum(map(bool, plan.points.get(name, ()))) for name in deaths}
        assert deaths == planned, "not everybody was killed who should have been"
        published = tmp_path / "published"
        await study.command("aggregator", "export", published, "--home", study.home)
        audited = await study.command("aggregator", "audit", published)
        assert audited["verdict"] == "all-checked" and audited["model_checked"], audited
        assert audited["not_summed"] == {str(turn): 0 for turn in range(evidence.rounds)}
        for turn in range(evidence.rounds):
            sent, told = len(evidence.left[turn]), len(evidence.acknowledged[turn])
            print(
                f"round {turn}: {evidence.online(turn)} of {plan.peers} online, {sent} sent, {told} acknowledged, "
                f"{len(evidence.listed(turn))} summed, {study.seconds[turn]:.1f} s from closing to sum"
            )
            assert sent >= 0.95 * evidence.online(turn)
        back = {name: shown(program.lived) for name, program in study.programs.items() if program.lived}
        print(f"killed: {deaths}; serving again after (s): {back}")
