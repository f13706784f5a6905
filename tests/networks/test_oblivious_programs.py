"""Oblivious averaging by real programs: five parties in two processes, and an aggregator; with and without a party that
goes for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from aggregator.audit.result import Verdict
from anon.protocols.contract import Record
from anon.protocols.models.linear import LinearModel
from anon.protocols.sum.design import summed_of
from anon.protocols.sum.oblivious.messages import weights_survey
from anon.protocols.sum.vector import vector_of
from anon.protocols.vectors.averaging import AveragedWeights
from tests.support import command_line
from tests.support.oblivious_study import BITS, HELD
from tests.support.protocols import read_model
from tests.support.sum_evidence import drawn_in
from tests.support.sum_programs import AGGREGATOR, Plan, SumStudy, sum_programs
from tests.support.sum_subjects import oblivious
from tests.support.views import found, held, kept, of_integers

HOSTS = 2
NOT_ALL_CHECKED = Verdict.NOT_ALL_CHECKED.exit_code


def record_of(number: int) -> Record:
    """All records of a party."""
    rows = (Record({"age": age, "sleep": sleep}, tired) for _, age, sleep, tired in HELD[number])
    return Record({}, None, rows=tuple(rows))


def vectors_of(study: SumStudy) -> list[list[int]]:
    """The weights of each party."""
    survey = weights_survey(study.manifest)
    return [list(vector_of(study.manifest, survey, record_of(number))) for number in range(len(HELD))]


def noises_of(study: SumStudy) -> list[list[int]]:
    """The noises that parties drew, each once, also where it was drawn again."""
    notes = study.folder.glob("peers-*/*.noise")
    return [list(noise) for noise in sorted({tuple(draw) for path in notes for draw in drawn_in(path)})]


def demand_unseen(study: SumStudy) -> None:
    """No weights, vector or noise of a party stands at the aggregator. Its pages are found there."""
    there, survey = held(study.home), weights_survey(study.manifest)
    there |= {log.name: log.read_bytes() for log in study.folder.glob(f"{AGGREGATOR}.*")}
    for number, vector in enumerate(vectors_of(study)):
        name = f"party {number}"
        secrets = kept(name, study.manifest, survey, record_of(number), b"") | of_integers(f"{name}'s vector", vector)
        assert found(there, secrets) == []
    for number, noise in enumerate(noises_of(study)):
        assert found(there, of_integers(f"noise {number}", noise)) == []
    pages = {f"page {part}": body for (kind, part), body in study.documents().items() if kind == "page"}
    assert {name for name, _ in found(there, pages)} == pages.keys()


async def demand_audited(study: SumStudy) -> dict[str, object]:
    """By the command of an auditor: the documents of the seat are all that nobody can make again."""
    published = study.folder / "published"
    await study.command("aggregator", "export", published, "--home", study.home)
    told: dict[str, object] = await study.command("aggregator", "audit", published, ends=NOT_ALL_CHECKED)
    assert told["findings"] == [] and isinstance(told["not_checked"], list)
    assert all(line.startswith("seat ") and "nobody can make it again" in line for line in told["not_checked"])
    return told


@pytest.mark.process
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", ["loopback", pytest.param("tor", marks=[pytest.mark.tor, pytest.mark.soak])])
async def test_five_parties_publish_the_mean_of_their_weights_with_one_noise(
    way: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through Tor with keys of 3,072 bits, which every study with an onion address has."""
    if way == "tor":
        network = request.getfixturevalue("private_tor")
        monkeypatch.setitem(command_line.ENVIRONMENT, "ANONML_TORRC", str(network.torrc_file))
    subject = oblivious(3072 if way == "tor" else BITS)
    async with sum_programs(tmp_path, Plan(subject, len(HELD), HOSTS, 30, 10, 30, tor=way == "tor", ahead=5)) as study:
        await study.through()
        documents, design = study.documents(), summed_of(study.manifest, weights_survey(study.manifest))
        model = read_model(documents["model", 0].decode())
        assert isinstance(model, LinearModel) and isinstance(design, AveragedWeights)
        vectors, noises = vectors_of(study), noises_of(study)
        noisy = [[sum(entries) for entries in zip(*vectors, noise, strict=True)] for noise in noises]
        means = [list(design.mean(values, len(HELD))) for values in noisy]
        assert len(noises) == len(HELD) and means.count([model.intercept, *model.weights]) == 1
        for outcome in study.outcomes:
            assert (outcome["state"], outcome["reserved"], outcome["spent"]) == ("finished", 0, study.manifest.epsilon)
        demand_unseen(study)
        audited = await demand_audited(study)
        assert audited["model_checked"], audited


@pytest.mark.soak
@pytest.mark.parametrize("lived", [0, 4])
async def test_a_party_that_goes_for_good_ends_it_for_all(lived: int, tmp_path: Path) -> None:
    """After its first round nobody has paid; after its fifth all have."""
    plan = Plan(oblivious(BITS), len(HELD), HOSTS, 30, 10, 30, gone={4: lived}, ahead=5)
    async with sum_programs(tmp_path, plan) as study:
        await study.through()
        documents = study.documents()
        assert ("unsummed", 0) in documents and ("model", 0) not in documents
        for outcome in study.outcomes:
            if outcome["peer"] != 4:
                assert outcome["state"] == "finished" and f"ended after its round {lived + 2}" in outcome["reason"]
                assert (outcome["reserved"], outcome["spent"]) == (0, study.manifest.epsilon if lived else 0)
        demand_unseen(study)
        await demand_audited(study)
