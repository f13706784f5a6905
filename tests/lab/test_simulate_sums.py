"""`simulate` of tables that are summed exactly: real effects are found, shuffled labels show nothing."""

from __future__ import annotations

import numpy as np
import pytest

from aggregator.lab.simulation.people import people_from_values
from aggregator.lab.simulation.simulate import no_keys, simulate
from aggregator.lab.simulation.sums import learn_summed
from anon.errors import Malformed
from anon.protocols.resolve import drafted, resolve
from anon.study.proposal import load_proposal, parse_proposal
from tests.docs.repository import ROOT
from tests.support.sums import GRADIENT, TABLES, sum_study, tellers

STUDY = parse_proposal(sum_study(TABLES, tellers(entries=False)))


def people(count: int, seed: int = 5):
    spring = np.random.default_rng(seed)
    age, sleep = spring.uniform(0, 100, count).tolist(), spring.uniform(0, 12, count).tolist()
    tired = (spring.random(count) < np.where(np.array(sleep) <= 6, 0.8, 0.2)).tolist()
    rows = zip(age, sleep, tired, strict=True)
    return people_from_values(STUDY.label, (({"age": a, "sleep": s, "cups": "some"}, int(t)) for a, s, t in rows))


def test_an_effect_is_found_and_the_cost_is_told() -> None:
    found = simulate(STUDY, people(600), 5, 1, people(2000, 6))
    assert 0.75 < found.auc_mean <= 0.82 and found.shown == 1
    assert found.figures()["cost"] == found.cost and "central epsilon 1.08" in found.cost
    assert "epsilon_record" not in found.figures()


def test_shuffled_labels_show_nothing() -> None:
    found = simulate(STUDY, people(600), 40, 1, people(2000, 6), shuffle_labels=True, ceilings=False)
    assert abs(found.auc_mean - 0.5) < 4 * found.auc_se and found.shown < 0.3


def test_more_peers_than_people_are_drawn_with_replacement() -> None:
    assert simulate(STUDY, people(200), 2, 1, people(500, 6), peers=900, ceilings=False).peers == 900


def test_other_sums_are_refused_with_the_next_step() -> None:
    study = parse_proposal(sum_study(GRADIENT, tellers(entries=False)))
    manifest = resolve(drafted(study), no_keys(study), 1)
    with pytest.raises(Malformed, match="knows tables-sum"):
        learn_summed(manifest, people(10), np.random.default_rng(1))


def test_the_example_can_be_looked_at() -> None:
    study = load_proposal(ROOT / "examples" / "census" / "sums.toml")
    manifest = resolve(drafted(study), no_keys(study), 1)
    assert [len(manifest.surveys), manifest.surveys[0].m] == [1, 40]
