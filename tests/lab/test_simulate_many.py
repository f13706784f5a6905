"""`simulate` of parties: their records as a peer finds them, their vectors, the declared noise, and the scores beside.

Chance is seeded. Of 1,000 draws a standard deviation is 2 % wide at most: 10 % is five of these.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from aggregator.lab.simulation import linear_sums, parties
from aggregator.lab.simulation.parties import Parties, learn_parties, parties_from_rows, weight_noise
from aggregator.lab.simulation.people import people_from_rows
from aggregator.lab.simulation.simulate import NO_KEYS, SimulationResult, simulate
from aggregator.protocols.sum.part import learned_of
from aggregator.protocols.sum.published import NoisySum
from anon.errors import Malformed, Refused
from anon.protocols.models.ensemble import EnsembleModel
from anon.protocols.models.linear import LinearModel
from anon.protocols.resolve import resolve
from anon.protocols.sum.oblivious.l2_laplace import L2Laplace
from anon.queries.answers import answered, parse_answers
from anon.sharing.drafts import drafted
from anon.study.manifest import Manifest
from anonml import application
from peer.data.evaluate import request_of
from tests.support.groups_study import groups_study
from tests.support.masks_study import masks_study
from tests.support.oblivious_study import oblivious_study
from tests.support.protocols import parse_proposal
from tests.support.sums import GRADIENT, MOMENTS, manifest_of, many, sum_study, tellers
from tests.support.tries import every

KEYS = many() + "least_records = 5\n"
AVERAGING = 'kind = "averaging"\nepsilon = 8.0\nstrength = 0.1'
TRANSFER = 'kind = "transfer"\nepsilon = 8.0\npublic_rows = 50\nstrength = 0.01\nclassifier = "tree"'
GIVEN = '[[given]]\nname = "rows"\ndescription = "Rows."\nfile = "rows.csv"\n'
PUBLIC = {"rows": "\n".join(["age,sleep", *(f"{2 * at},{at % 12}" for at in range(50))]).encode()}
BOUNDS, ALL = "minimum = 8\nmaximum = 100", "\nleast = 8\nhonest = 8"


def summed(design: str, keys: str = KEYS) -> str:
    return sum_study(design, tellers(entries=False), keys=keys)


STUDIES = {
    "averaging": summed(AVERAGING),
    "transfer": summed(TRANSFER, many(20, "person")) + GIVEN,
    "moments": summed(MOMENTS.replace("1.0", "8.0")),
    "gradient": summed(GRADIENT.replace("1.0", "8.0")),
    "masked-averaging": masks_study(f'kind = "masked-averaging"\nepsilon = 8.0\nstrength = 0.1{ALL}', KEYS, BOUNDS),
    "masked-transfer": masks_study(
        TRANSFER.replace("transfer", "masked-transfer") + ALL, many(20, "person"), BOUNDS
    ) + GIVEN,
    "oblivious-averaging": oblivious_study(epsilon=8.0).replace("maximum = 5", "maximum = 10"),
    "group-averaging": groups_study(2, 8, 2, 8.0, 8, 100),
}


def rows_of(clinics: int, seed: int = 5) -> list[dict[str, int | float | str | None]]:
    """Short sleep makes tired, in five to fifteen records of each clinic."""
    spring, rows = np.random.default_rng(seed), list[dict[str, int | float | str | None]]()
    for clinic in range(clinics):
        for day in range(int(spring.integers(5, 16))):
            age, sleep = float(spring.uniform(0, 100)), float(spring.uniform(0, 12))
            tired = int(spring.random() < (0.85 if sleep < 6 else 0.15))
            rows.append({"clinic": clinic, "day": day, "age": age, "sleep": sleep, "cups": "some", "tired": tired})
    return rows


def read(name: str, clinics: int, seed: int = 5) -> Parties:
    return parties_from_rows(parse_proposal(STUDIES[name]), rows_of(clinics, seed), "clinic")


def manifest(name: str) -> Manifest:
    study = parse_proposal(STUDIES[name])
    return resolve(drafted(study), NO_KEYS, 1, given=PUBLIC if study.given else {})


def tried(name: str, trials: int = 6, **asked: object) -> SimulationResult:
    study, peers = parse_proposal(STUDIES[name]), 10 if name.startswith("oblivious") else None
    given = PUBLIC if study.given else {}
    return simulate(study, read(name, 60), trials, 1, read(name, 20, 6), peers=peers, given=given, **asked)


@pytest.mark.slow
@pytest.mark.parametrize("name", every(4, STUDIES))
def test_every_design_of_parties_finds_the_effect(name: str) -> None:
    found = tried(name)
    assert 0.75 < found.auc_mean < found.auc_ceiling_binned + 3 * found.auc_se + 0.01, found
    assert found.auc_alone is not None and 0.6 < found.auc_alone < found.auc_ceiling_binned
    assert found.accuracy_alone is not None and found.majority_rate < found.accuracy_alone < 0.8
    assert found.scored == len(read(name, 20, 6).people) and "central epsilon" in found.cost
    assert {"auc_alone", "accuracy_alone"} < found.figures().keys() and "shown" not in found.figures()


@pytest.mark.slow
def test_shuffled_labels_show_nothing() -> None:
    found = tried("averaging", 30, shuffle_labels=True, ceilings=False)
    assert abs(found.auc_mean - 0.5) < 4 * found.auc_se and "auc_alone" not in found.figures()


@pytest.mark.slow
def test_without_noise_the_model_is_the_mean_of_what_parties_send(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (linear_sums, parties):
        monkeypatch.setattr(module, "simulated_noise", lambda *_: 0)
    monkeypatch.setattr(L2Laplace, "vector", lambda _self, length, _random: [0] * length)
    for name in ("averaging", "oblivious-averaging"):
        study, held = manifest(name), read(name, 8)
        alone = [learn_one(study, held.take(np.repeat(at, len(held)))) for at in range(len(held))]
        assert learn_one(study, held) == pytest.approx(np.mean(alone, axis=0)) and np.ptp(alone, axis=0).min() > 0


def learn_one(study: Manifest, held: Parties) -> tuple[float, ...]:
    return weights_of(learn_parties(study, held, np.random.default_rng(1)))


def weights_of(model: LinearModel | EnsembleModel) -> tuple[float, ...]:
    """Of a linear model, or the first group's."""
    one = model if isinstance(model, LinearModel) else model.models[0]
    return (one.intercept, *one.weights)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["averaging", "masked-averaging", "oblivious-averaging", "group-averaging"])
def test_the_models_spread_as_the_plan_says(name: str) -> None:
    """Two tellers' noise, every member's, two receivers', or that of the party with the fewest records. Here that one
    has the declared."""
    study, generator = manifest(name), np.random.default_rng(7)
    few = Parties(study.label, tuple(rows[:3] for rows in read(name, 8).held)).summing(study, b"")
    models = [learn_parties(study, few, generator) for _ in range(1000)]
    spread = np.std([*map(weights_of, models)], axis=0)
    declared = weight_noise(study, len(few))
    scales = np.sqrt(np.mean(spread**2))
    assert declared is not None and scales == pytest.approx(declared, rel=0.1)


@pytest.mark.slow
def test_groups_are_drawn_anew_and_hold_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise the mean of all groups' weights is that of all parties, if groups have one size."""
    monkeypatch.setattr(parties, "simulated_noise", lambda *_: 0)
    study, held = manifest("group-averaging"), read("group-averaging", 16).summing(manifest("group-averaging"), b"")
    model = learn_parties(study, held, np.random.default_rng(1))
    assert isinstance(model, EnsembleModel) and held.vectors is not None
    told = [(one.aggregation, (one.intercept, *one.weights)) for one in model.models]
    means = [np.mean([weights for number, weights in told if number == at], 0) for at in (1, 2)]
    assert means[0] == pytest.approx(means[1]) and len({one.intercept for one in model.models}) == 4
    assert means[0] == pytest.approx(np.mean([weights_of(linear(study, entry.tolist())) for entry in held.vectors], 0))


def linear(study: Manifest, values: list[int]) -> LinearModel:
    return learned_of(study, parties.asked_of(study), NoisySum(tuple(values), 1, Fraction(1), 1)).model


@pytest.mark.slow
def test_a_larger_smallest_party_makes_less_noise_in_oblivious_averaging() -> None:
    study, held = manifest("oblivious-averaging"), read("oblivious-averaging", 8)
    spreads = []
    for most in (8, 16):
        few = Parties(study.label, tuple((rows * 4)[:most] for rows in held.held)).summing(study, b"")
        generator = np.random.default_rng(7)
        spreads.append(np.std([weights_of(learn_parties(study, few, generator))[0] for _ in range(300)]))
    assert spreads[1] / spreads[0] == pytest.approx(1 / 2, rel=0.1)


def test_records_are_those_that_a_peer_finds() -> None:
    """Also where a value is missing, a key comes twice or not at all, and there are more than the study takes."""
    study = manifest_of(MOMENTS, keys=many(3))
    odd = [{"day": day, "age": 30 + at, "sleep": "x" if at else 4, "cups": "", "tired": 1}
           for at, day in enumerate((1, 2, 2, None))]
    plenty = [{"day": day, "age": day, "sleep": 8, "cups": "", "tired": 0} for day in range(9)]
    rows = [{"clinic": name, **row} for name, held in (("odd", odd), ("plenty", plenty)) for row in held]
    found = parties_from_rows(parse_proposal(summed(MOMENTS, many(3))), rows, "clinic")
    for number, (held, records) in enumerate(zip((odd, plenty), found.held, strict=True)):
        bench = parties.bench_of(study)
        bench.put("person", [[row[column] for column in study.tables[0].columns] for row in held])
        request = request_of(study, Path("none"), str(number).encode())
        told = [value for record in records for value in (*record.values.values(), record.label)]
        assert tuple(told) == parse_answers(request, answered(bench, request))
        bench.close()
    assert [len(records) for records in found.held] == [2, 3]


@pytest.mark.slow
def test_members_of_one_record_each_add_up_without_tellers() -> None:
    """No party is scored alone then, and each row is a member."""
    study = parse_proposal(masks_study('kind = "masked-moments"\nepsilon = 8.0', "", "minimum = 4\nmaximum = 900"))
    found = simulate(study, parties_from_rows(study, rows_of(60), None), 4, 1)
    assert found.auc_mean > 0.7 and found.auc_alone is None and found.peers > 300


@pytest.mark.slow
def test_the_next_step_is_said() -> None:
    study = parse_proposal(STUDIES["averaging"])
    with pytest.raises(Malformed, match="by --person"):
        parties_from_rows(study, rows_of(4), None)
    for one in (study, manifest_of(MOMENTS, keys=many())):
        with pytest.raises(Malformed, match="`anonml simulate` takes those"):
            people_from_rows(one, rows_of(4))
    plain = parse_proposal(sum_study(MOMENTS, tellers(entries=False)))
    people = people_from_rows(plain, rows_of(4))
    with pytest.raises(Refused, match="read as parties"):
        simulate(study, people, 1, 1, people)
    with pytest.raises(Malformed, match="takes 4 to 1000 members, and 3 would take part; write --peers"):
        simulate(study, read("averaging", 9), 1, 1, peers=3)
    assert simulate(study, read("averaging", 9), 1, 1, peers=30, ceilings=False).peers == 30


@pytest.mark.slow
def test_the_command_reads_parties_and_public_rows(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(PUBLIC["rows"])
    (file := tmp_path / "study.toml").write_text(STUDIES["transfer"], "utf-8")
    lines = [",".join(map(str, row.values())) for row in rows_of(30)]
    (data := tmp_path / "data.csv").write_text("\n".join(["clinic,day,age,sleep,cups,tired", *lines]), "utf-8")
    arguments = [str(file), "--data", str(data), "--person", "clinic", "--trials", "2", "--seed", "1"]
    shown = CliRunner().invoke(application("simulate"), arguments, env={"COLUMNS": "160"})
    assert shown.exit_code == 0, shown.output
    assert "one party alone, without privacy: AUC" in shown.output and "21 peers a study" in shown.output
    told = json.loads(CliRunner().invoke(application("simulate"), [*arguments, "--json"]).stdout)
    assert told["peers"] == 21 and told["auc_mean"] > 0.7 > told["accuracy_alone"] > 0.5
