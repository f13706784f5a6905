"""Private trees by real programs: twenty members in two processes, of which a fifth goes for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import command_line
from tests.support.sum_programs import ENROLLED, NEVER, Plan, sum_programs
from tests.support.sum_subjects import trees
from tests.support.trees_evidence import TreesEvidence

PEERS, HOSTS = 20, 2
GONE = {3: NEVER, 8: ENROLLED, 11: ENROLLED, 13: ENROLLED, 16: ENROLLED, 17: 0}


@pytest.mark.process
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", ["loopback", pytest.param("tor", marks=[pytest.mark.tor, pytest.mark.soak])])
async def test_a_fifth_goes_for_good_and_the_rows_are_of_the_trees_that_came(
    way: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "tor":
        network = request.getfixturevalue("private_tor")
        monkeypatch.setitem(command_line.ENVIRONMENT, "ANONML_TORRC", str(network.torrc_file))
    plan = Plan(trees(), PEERS, HOSTS, 30, 10, 30, gone=GONE, tor=way == "tor", ahead=5)
    async with sum_programs(tmp_path, plan) as study:
        await study.through()
        evidence = TreesEvidence.of(study)
        evidence.demand_all()
        evidence.demand_unseen(0)
        evidence.demand_unseen_by_members(0)
        print(f"{evidence.online(0)} of {PEERS} there, {len(evidence.listed(0))} trees on the page")
        assert len(evidence.listed(0)) == evidence.online(0) and 5 * (PEERS - evidence.online(0)) >= PEERS
        published = tmp_path / "published"
        await study.command("aggregator", "export", published, "--home", study.home)
        audited = await study.command("aggregator", "audit", published)
        assert audited["verdict"] == "all-checked" and audited["model_checked"], audited
        assert (published / "rows.csv").read_text("utf-8").startswith("age,sleep,tired\n")
