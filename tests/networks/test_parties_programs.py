"""Studies of parties by real programs, with tellers and under masks: peers go for good at every boundary between
rounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from anon.protocols.sum.masks.masking import VECTOR
from tests.support import command_line
from tests.support.masks_evidence import MasksEvidence
from tests.support.sum_evidence import Evidence
from tests.support.sum_programs import ENROLLED, NEVER, Plan, sum_programs
from tests.support.sum_subjects import averaging, marginals, masked_averaging, masked_moments, masked_transfer, transfer

PEERS, HOSTS = 20, 2
TELLERS_GONE = {3: NEVER, 8: ENROLLED, 11: ENROLLED, 13: ENROLLED, 16: ENROLLED, 14: 0, 17: 0}
"""Where there are tellers, peers have nothing more to say once their vectors are sent."""
MASKS_GONE = {3: ENROLLED, 8: 0, 11: 1, 14: 2, 17: 3}
STUDIES = {
    "marginals": (marginals(), TELLERS_GONE),
    "averaging": (averaging(), TELLERS_GONE), "transfer": (transfer(), TELLERS_GONE),
    "masked-moments": (masked_moments(), MASKS_GONE), "masked-averaging": (masked_averaging(), MASKS_GONE),
    "masked-transfer": (masked_transfer(), MASKS_GONE),
}  # fmt: skip
OVER_LOOPBACK = ("marginals", "masked-averaging")
"""Between them they have tellers, letters, weights and tables. The soak has votes, the others, and all of them through
Tor; tests/tor/test_letters_through_tor.py goes through it in every run."""


@pytest.mark.process
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "way"), [
    *(pytest.param(name, "loopback", id=name, marks=[] if name in OVER_LOOPBACK else [pytest.mark.soak])
      for name in STUDIES),
    *(pytest.param(name, "tor", id=f"{name}-tor", marks=[pytest.mark.tor, pytest.mark.soak]) for name in STUDIES),
])  # fmt: skip
async def test_a_fifth_goes_for_good_and_the_sum_is_that_of_those_who_came(
    name: str, way: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "tor":
        network = request.getfixturevalue("private_tor")
        monkeypatch.setitem(command_line.ENVIRONMENT, "ANONML_TORRC", str(network.torrc_file))
    subject, gone = STUDIES[name]
    plan = Plan(subject, PEERS, HOSTS, 30, 10, 30, gone=gone, tor=way == "tor", ahead=5)
    async with sum_programs(tmp_path, plan) as study:
        await study.through()
        evidence = (Evidence if subject.tellers else MasksEvidence).of(study)
        evidence.demand_all()
        evidence.demand_unseen(told := VECTOR if name.startswith("masked") else 0)
        evidence.demand_unseen_by_members(told)
        for turn in range(evidence.rounds):
            print(f"round {turn}: {evidence.online(turn)} of {PEERS} there, {len(evidence.listed(turn))} on its list")
            assert len(evidence.listed(turn)) == evidence.online(turn)
        assert 5 * (PEERS - evidence.online(evidence.rounds - 1)) >= PEERS
        published = tmp_path / "published"
        await study.command("aggregator", "export", published, "--home", study.home)
        audited = await study.command("aggregator", "audit", published)
        assert audited["verdict"] == "all-checked" and audited["model_checked"], audited
