"""The demos of parties with many records: their studies, the law of the distance that they check, and whole runs."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from aggregator.lab.simulation.ceilings import without_privacy
from aggregator.lab.simulation.parties import asked_of, vectors_of
from aggregator.lab.simulation.simulate import NO_KEYS
from aggregator.lab.simulation.sum_noise import simulated_noise
from anon.ldp import nano
from anon.noise.bernoulli import Coins
from anon.protocols.contract import Record
from anon.protocols.resolve import resolve
from anon.protocols.sum.masks.layout import masking_of
from anon.protocols.sum.standing import arrangement_of
from anon.protocols.trees.growing import grown
from anon.protocols.trees.layout import labelled, plan_for
from anon.sharing.drafts import drafted
from anon.study.manifest import Manifest
from anon.study.records import Records
from examples import parties, shared_rows
from examples.census import data as census_data
from examples.checks import faults
from examples.parties import Noise
from examples.scenes import Scene
from examples.schedule import WEEKS, scheduled
from tests.support.protocols import parse_proposal
from tests.support.tries import every

ROOT = Path(__file__).resolve().parents[2]
FEW = 6
LETTERS = {"masks": 5, "groups": 7, "trees": 1}
"""Rounds of those without tellers."""
SUMS = [name for name in parties.RECORDS if name != "trees"]


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """People made up from a seed, as where the census data are not installed; and few of them to be scored on."""
    monkeypatch.setattr(census_data, "WHEEL", "no-such-distribution")
    monkeypatch.setattr(parties, "CENSUS_TEST_ROWS", 300)


def manifest_of(scene: Scene) -> Manifest:
    text = scheduled(scene.study_text, WEEKS, len(scene.peers))
    return resolve(drafted(parse_proposal(text)), NO_KEYS, 1_800_000_000, given=scene.given)


@pytest.mark.slow
@pytest.mark.parametrize("example", every(3, parties.RECORDS))
def test_each_party_holds_its_records_and_the_study_asks_for_as_many(example: str) -> None:
    scene = parties.scene(example, FEW, 3, None)
    study, each = manifest_of(scene), parties.RECORDS[example]
    unit = "person" if example == "transfer" else "record"
    assert study.records == Records(each, unit, each) and study.protocol == (example if example in LETTERS else "sum")
    assert [len(party["rows"]) for party in scene.peers] == [len(records) for records in scene.held] == [each] * FEW
    assert len(scene.train) == each * FEW and len(scene.test) == 300 and scene.made_up
    assert scene.peers == parties.scene(example, FEW, 3, None).peers != parties.scene(example, FEW, 4, None).peers
    if example not in SUMS:
        return
    survey, given = asked_of(study), scene.given.get("rows", b"")
    assert given.count(b"\n") == (parties.PUBLIC_ROWS + 1 if example == "transfer" else 0) and b"income" not in given
    vectors = vectors_of(study, survey, scene.held, given=given)
    assert vectors.shape == (FEW, len(study.features) + 1) and vectors.any(axis=1).all()


@pytest.mark.slow
@pytest.mark.parametrize("example", ["averaging", "masks"])
def test_the_declared_noise_has_the_distance_of_its_law(example: str) -> None:
    """Of 20,000 simulated sums as many are outside of the band of 1 in 50 as should be, and of 1 in a million none.

    By chance the first fails once in 3e5: it is 4.7 standard deviations. The second fails once in 50.
    """
    study = manifest_of(parties.scene(example, FEW, 3, None))
    if example == "masks":
        each, many = masking_of(study.part).noise, FEW
    else:
        each, many = arrangement_of(study).sums[0].sigma_squared, arrangement_of(study).summing
    length, trials = len(study.features) + 1, 20_000
    drawn = simulated_noise(each, many, (trials, length), np.random.default_rng(11))
    outside = {alarm: sum(not _within(Noise.of([0] * length, one, each * many, alarm)) for one in drawn.tolist())
               for alarm in (0.02, parties.ALARM)}
    assert abs(outside[0.02] - 400) < 4.7 * 19.8 and outside[parties.ALARM] == 0
    assert not _within(Noise.of([5] * length, [5] * length, each * many)), "a sum without noise"
    far = [round(3 * float(each * many) ** 0.5)] * length
    assert not _within(Noise.of([0] * length, far, each * many)), "three deviations in every entry"


@pytest.mark.slow
def test_published_trees_are_wrong_by_as_much_as_their_noise_is_long() -> None:
    """Of trees that are grown with half of epsilon it is far more. The coins repeat."""
    scene = parties.scene("trees", 20, 3, None)
    study = manifest_of(scene)
    plan, numbers = plan_for(study), iter(range(10**9))
    coins = Coins(lambda size: hashlib.shake_256(b"%d" % next(numbers)).digest(size))
    rows = [labelled(study, Record({}, None, rows=held)) for held in scene.held]
    each, half = len(rows[0]), evolve(plan, epsilon=nano("0.5"))
    right, other, long = (
        np.mean([shared_rows.wrong(grown(held, some, coins).root, each) for held in rows for _ in range(10)])
        for some in (plan, plan, half)
    )
    declared = 0.78 * 8**0.5 / float(plan.per_count)  # of four counts; a node that stops early has less noise
    assert right == pytest.approx(other, rel=0.15) and 0.7 * declared < right < 1.05 * declared
    assert long > 1.6 * right


def _within(noise: Noise) -> bool:
    return noise.least <= noise.distance <= noise.most


@pytest.mark.slow
def test_a_party_of_one_label_says_it_of_everybody() -> None:
    scene = parties.scene("averaging", FEW, 3, None)
    study, no = manifest_of(scene), np.flatnonzero(scene.train.labels == 0)
    rate = float(scene.test.labels.mean())
    assert without_privacy(study, [scene.train.take(no)], scene.test) == (pytest.approx(1 - rate), 0.5)
    accuracy, auc = without_privacy(study, [scene.train], scene.test)
    assert 1 - accuracy < rate and auc > 0.75


IN_ALL = ("averaging", "trees")
"""The demos of few parties that each run of all tests has; the soak has the others."""


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("example", [
    pytest.param(name, marks=[] if name in IN_ALL else pytest.mark.soak) for name in parties.RECORDS
])  # fmt: skip
def test_a_demo_of_few_parties(example: str, tmp_path: Path) -> None:
    """With so few the noise drowns the model. Its distance is the noise's all the same, and no party is lost."""
    file = tmp_path / "figures.json"
    call = [sys.executable, "-m", "anonml", "demo", example, "--peers", str(FEW), "--json", str(file)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    figures: dict[str, Any] = json.loads(file.read_text("utf-8"))
    packets = LETTERS.get(example, 1)
    assert faults(figures) == [] and figures["enrolled"] == FEW and figures["accepted"] == FEW * packets
    assert figures.get("groups") == (4 if example == "groups" else None)
    assert figures.get("trees") == (FEW if example == "trees" else None)
    quiet = "without noise" if example in SUMS else "all records, no privacy"
    assert figures["models"][quiet][1] > 0.7 and figures["models"]["majority"][1] == 0.5
