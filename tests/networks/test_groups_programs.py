"""Averaging in groups by real programs: twenty peers in two processes, of which a fifth goes for good in mid round."""

from __future__ import annotations

from pathlib import Path

import pytest

from anon.protocols.models.ensemble import EnsembleModel
from anon.protocols.sum.groups.drawing import KEYS, SHARES, TOLD, survey_of, told
from tests.support import command_line
from tests.support.groups_evidence import GroupsEvidence
from tests.support.protocols import read_model
from tests.support.sum_programs import ENROLLED, Plan, sum_programs
from tests.support.sum_subjects import groups

PEERS, HOSTS = 20, 2
GONE = {3: ENROLLED, 8: KEYS, 11: survey_of(0, SHARES), 14: survey_of(0, TOLD), 17: survey_of(1, SHARES)}


@pytest.mark.process
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", ["loopback", pytest.param("tor", marks=[pytest.mark.tor, pytest.mark.soak])])
async def test_a_fifth_goes_for_good_and_each_groups_model_is_of_those_who_came(
    way: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "tor":
        network = request.getfixturevalue("private_tor")
        monkeypatch.setitem(command_line.ENVIRONMENT, "ANONML_TORRC", str(network.torrc_file))
    plan = Plan(groups(), PEERS, HOSTS, 30, 10, 30, gone=GONE, tor=way == "tor", ahead=5)
    async with sum_programs(tmp_path, plan) as study:
        await study.through()
        evidence = GroupsEvidence.of(study)
        evidence.demand_all()
        for aggregation in range(2):
            evidence.demand_unseen(survey_of(aggregation, TOLD))
        for turn in range(evidence.rounds):
            print(f"round {turn}: {evidence.online(turn)} of {PEERS} there, {len(evidence.listed(turn))} on its page")
            assert len(evidence.listed(turn)) == evidence.online(turn)
        drawn = [group for aggregation in range(2) for group in evidence.groups(aggregation)]
        sums = [group for group in drawn if told(evidence.pages, group) is not None]
        print(f"{len(sums)} of {len(drawn)} groups have a model")
        model = read_model(study.documents()["model", 0].decode())
        assert isinstance(model, EnsembleModel) and len(model.models) == len(sums) >= len(drawn) - 2
        published = tmp_path / "published"
        await study.command("aggregator", "export", published, "--home", study.home)
        audited = await study.command("aggregator", "audit", published)
        assert audited["verdict"] == "all-checked" and audited["model_checked"], audited
