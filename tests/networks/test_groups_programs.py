"""Averaging in groups by real programs. A fifth of the peers goes for good; a process of receivers is killed in mid
round, and one of them does not come back."""


from __future__ import annotations

from pathlib import Path

import pytest

from anon.protocols.models.ensemble import EnsembleModel
from anon.protocols.sum.groups.drawing import KEYS, OPENED, SHARES, TOLD, survey_of, told
from tests.support import command_line
from tests.support.groups_evidence import GroupsEvidence
from tests.support.protocols import read_model
from tests.support.sum_programs import ENROLLED, NEVER, Plan, SumStudy, sum_programs
from tests.support.sum_subjects import groups

HOSTS = 2
GONE = {3: ENROLLED, 8: KEYS, 11: survey_of(0, SHARES), 14: survey_of(0, TOLD)}
MORE = {20: NEVER, 23: ENROLLED, 29: KEYS, 34: survey_of(0, SHARES), 41: survey_of(1, OPENED), 46: survey_of(1, SHARES)}
FIRST = survey_of(0, TOLD)
SOAK = pytest.mark.soak


def untold(study: SumStudy) -> list[int]:
    """The receivers of the killed process that have sent no sum."""
    evidence = GroupsEvidence.of(study)
    sent, numbers = {*evidence.left.get(FIRST, {}).values()}, evidence.left[KEYS]
    receivers = {numbers[tag] for group in evidence.groups(0) for tag in group.receivers}
    return sorted(receivers & {*study.hosted[0]} - sent - study.plan.gone.keys())


@pytest.mark.process
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("way", "peers"), [
    ("loopback", 20), pytest.param("loopback", 50, marks=SOAK), pytest.param("tor", 50, marks=[pytest.mark.tor, SOAK]),
])  # fmt: skip
async def test_a_fifth_goes_for_good_and_each_groups_model_is_of_those_who_came(
    way: str, peers: int, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process is killed five seconds after the window of its receivers' sums opens. One of them that has told none by
    then never comes back. If all have, which is one run in thousands, none is lost, and the claims are the same."""
    if way == "tor":
        network = request.getfixturevalue("private_tor")
        monkeypatch.setitem(command_line.ENVIRONMENT, "ANONML_TORRC", str(network.torrc_file))
    gone = GONE | (MORE if peers > 20 else {})
    plan = Plan(groups(), peers, HOSTS, 30, 10, 30, gone=gone, kills=(FIRST, 5), tor=way == "tor", ahead=5)
    async with sum_programs(tmp_path, plan) as study:
        await study.killed()
        lost = untold(study)[:1]
        await study.revive(dict.fromkeys(lost, FIRST - 1))
        await study.through()
        evidence = GroupsEvidence.of(study)
        evidence.lost = lost
        evidence.demand_all()
        for aggregation in range(2):
            evidence.demand_unseen(survey_of(aggregation, TOLD))
        for turn in range(evidence.rounds):
            print(f"round {turn}: {evidence.online(turn)} of {peers} there, {len(evidence.listed(turn))} on its page")
            assert len(evidence.listed(turn)) == evidence.online(turn)
        drawn = [group for aggregation in range(2) for group in evidence.groups(aggregation)]
        sums = [group for group in drawn if told(evidence.pages, group) is not None]
        print(f"{len(sums)} of {len(drawn)} groups have a model; a receiver killed for good: {lost}")
        model = read_model(study.documents()["model", 0].decode())
        assert isinstance(model, EnsembleModel) and len(model.models) == len(sums) >= len(drawn) - len(study.plan.gone)
        for number in lost:
            (hurt,) = [group for group in evidence.groups(0) if number in map(evidence.left[KEYS].get, group.receivers)]
            assert told(evidence.pages, hurt) is None
        published = tmp_path / "published"
        await study.command("aggregator", "export", published, "--home", study.home)
        audited = await study.command("aggregator", "audit", published)
        assert audited["verdict"] == "all-checked" and audited["model_checked"], audited
