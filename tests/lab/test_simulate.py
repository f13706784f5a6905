"""Whole simulated studies on a made-up population whose best possible AUC is known, and the figures they print."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from aggregator.lab.cli_simulate import _show
from aggregator.lab.simulation.evaluation import _scored, evaluate, model_scores, roc_auc
from aggregator.lab.simulation.people import people_from_csv, people_from_rows, people_from_values
from aggregator.lab.simulation.run import Plan, categories, collect, exact_cuts
from aggregator.lab.simulation.simulate import NO_KEYS, learn_once, simulate
from aggregator.protocols.histogram.ensemble import LearnedStudy
from anon.errors import Malformed
from anon.protocols.resolve import resolve
from tests.support.protocols import load_proposal, parse_proposal
from tests.support.studies import categorical, head_of, label_of, numeric, study
from tests.support.tries import every

CENSUS = Path(__file__).parents[2] / "examples" / "census"

HEAD = head_of(
    "Made up",
    "A population with a known best answer.",
    ["age", "sex", "town", "ill"],
    label_of("ill", "yes", "no"),
    [
        numeric("age", (0, 100), "bins = 2", 50),
        categorical("sex", ["f", "m"]),
        categorical(
            "town",
            ["town", "land"],
            "land",
            "Whether you live in a town.",
            query="SELECT CASE WHEN town > 0 THEN 'town' ELSE 'land' END FROM person",
        ),
    ],
)
ONE_PACKET = 'kind = "one-packet"\nepsilon = 4.0\nbinning_share = 0.1\nbinning_levels = 8'
PAPER = 'kind = "paper"\npartitions = 5\nsubsets_per_partition = 2\nepsilon_histogram = 2.0\nepsilon_binning = 2.0'


def proposal(design=ONE_PACKET, classifier="soft", ensemble="soft"):
    lengths = {"enrol": "1d", "settle": "1h", "binning": "1d", "collect": "1d"}
    learning = f'classifier = "{classifier}"\nensemble = "{ensemble}"\nscore = "f1"\nscore_share = 0.2'
    return parse_proposal(study(HEAD, design, lengths, "minimum = 10", learning))


def rows(count, seed):
    """Age above 60 (a half) and being m (a half) each add 2 to the log-odds of being ill; town says nothing."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        old, male, town = generator.random(3) < 0.5
        odds = np.exp(-2 + 2 * old + 2 * male)
        yield {
            "age": int(generator.integers(61, 100) if old else generator.integers(20, 61)),
            "sex": "m" if male else "f",
            "town": int(town),
            "ill": "yes" if generator.random() < odds / (1 + odds) else "no",
        }


@pytest.fixture(scope="module")
def people():
    return people_from_rows(proposal(), rows(6_000, 1))


@pytest.fixture(scope="module")
def others():
    return people_from_rows(proposal(), rows(4_000, 2))


# P(ill) = .119, .5, .5, .881 for scores 0, 1, 2 of weights 1/4, 1/2, 1/4: AUC by enumeration.
ILL = np.array([0.1192, 0.5, 0.8808]) * [0.25, 0.5, 0.25]
WELL = np.array([0.8808, 0.5, 0.1192]) * [0.25, 0.5, 0.25]
BEST = float((ILL @ (np.cumsum(WELL) - WELL / 2)) / (ILL.sum() * WELL.sum()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "ways"), every(2, [ONE_PACKET, PAPER], [("soft", "soft"), ("logistic", "vote"), ("tree", "vote")])
)
def test_a_study_comes_near_the_best_possible(people, others, design, ways):
    classifier, ensemble = ways
    found = simulate(proposal(design, classifier, ensemble), people, 8, 3, others)
    assert found.auc_ceiling_binned == pytest.approx(BEST, abs=0.03)
    assert BEST - 0.06 < found.auc_mean < BEST + 0.02
    assert found.f1_mean > 0.6
    assert found.accuracy_mean > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("design", every(2, [ONE_PACKET, PAPER]))
def test_shuffled_labels_teach_nothing(people, others, design):
    """The mean of 40 trials is 1/2 within 4 standard errors of the trials (false alarm 1e-4); all may be base rates."""
    found = simulate(proposal(design), people, 40, 5, others, shuffle_labels=True, ceilings=False)
    assert abs(found.auc_mean - 0.5) <= 4 * found.auc_se
    assert found.auc_se < 0.05


@pytest.mark.slow
def test_epsilons_are_those_of_the_manifest(people, others):
    one = simulate(proposal(), people, 1, 1, others, ceilings=False)
    paper = simulate(proposal(PAPER), people, 1, 1, others, ceilings=False)
    assert one.epsilon_record == pytest.approx(4.0, abs=1e-6)
    assert paper.epsilon_record == pytest.approx(2 * 2.0 + 2.0, abs=1e-6)
    assert paper.epsilon_eq6 == pytest.approx(4.0, abs=1e-6)


@pytest.mark.slow
def test_equal_seeds_give_equal_figures(people, others):
    first, again, other = (simulate(proposal(), people, 3, seed, others, peers=500) for seed in (1, 1, 2))
    assert first == again
    assert first.auc_mean != other.auc_mean
    assert first.peers == 500
    assert set(first.figures()) >= {
        "trials", "auc_mean", "auc_se", "f1_mean", "accuracy_mean", "epsilon_record", "epsilon_eq6",
        "auc_ceiling_binned", "auc_ceiling_raw", "majority_rate",
    }
    positive = float(others.labels.mean())
    assert first.majority_rate == max(positive, 1 - positive) and first.majority_rate >= 0.5


def test_without_test_people_some_are_held_out(people):
    assert simulate(proposal(), people, 2, 1, ceilings=False).peers == 4_200


def test_impossible_numbers_are_refused(people, others):
    with pytest.raises(Malformed, match="trial"):
        simulate(proposal(), people, 0, 1, others)
    with pytest.raises(Malformed, match="peer"):
        simulate(proposal(), people, 1, 1, others, peers=0)


def learned(people, design=ONE_PACKET, ensemble="soft") -> LearnedStudy:
    plan = Plan.of(resolve(proposal(design, ensemble=ensemble), NO_KEYS, 0, lambda below: 0))
    return learn_once(plan, people, np.random.default_rng(8))


@pytest.mark.parametrize("ensemble", ["soft", "vote"])
def test_ranks_and_decisions_are_the_models(people, others, ensemble):
    model = learned(people, PAPER, ensemble).model
    few = others.take(np.arange(300))
    found = categories(model.features, few, {one.feature: one.cuts for one in model.cuts})
    asked = [{name: int(index[row]) for name, index in found.items()} for row in range(300)]
    by_model = [model.probability(one) for one in asked]
    assert np.argsort(np.round(model_scores(model, few), 8), kind="stable").tolist() == np.argsort(
        np.round(np.log(np.array(by_model) / (1 - np.array(by_model))) if ensemble == "soft" else by_model, 8),
        kind="stable",
    ).tolist()
    right = np.mean([model.decide(one) == bool(label) for one, label in zip(asked, few.labels, strict=True)])
    assert evaluate(model, few).accuracy == pytest.approx(right)


@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
def test_scores_are_scikit_learns(share):
    generator = np.random.default_rng(1)
    ranks, positive, decided = (
        generator.integers(0, 9, 500) / 3.0,
        generator.random(500) < 0.3,
        generator.random(500) < share,
    )
    assert roc_auc(ranks, positive) == pytest.approx(roc_auc_score(positive, ranks), abs=1e-12)
    assert roc_auc(ranks, np.zeros(500, dtype=bool)) == 0.5
    for labels in (positive, np.zeros(500, dtype=bool)):
        found = _scored(ranks, np.full(500, 0.5), decided, labels)
        assert found.f1 == pytest.approx(f1_score(labels, decided, zero_division=0.0), abs=1e-12)
        assert found.accuracy == pytest.approx(accuracy_score(labels, decided), abs=1e-12)
    nobody = np.zeros(500, dtype=bool)
    assert _scored(ranks, np.full(500, 0.5), nobody, nobody).f1 == 0.0


@pytest.mark.parametrize(("design", "low", "high"), [(ONE_PACKET, 37.5, 62.5), (PAPER, 45, 75)])
def test_cuts_are_found_near_the_median(people, design, low, high):
    plan = Plan.of(resolve(proposal(design), NO_KEYS, 0, lambda below: 0))
    found = [collect(plan, people, np.random.default_rng(seed)).cuts["age"][0] for seed in range(20)]
    assert sum(low <= cut <= high for cut in found) >= 18
    assert low <= exact_cuts(plan, people)["age"][0] <= high


def test_training_and_scoring_are_disjoint_and_everyone_is_counted_once(people):
    plan = Plan.of(resolve(proposal(PAPER), NO_KEYS, 0, lambda below: 0))
    found = collect(plan, people, np.random.default_rng(3))
    sent = sum(tally.n for tally in (*found.train, *found.scoring))
    assert sent == 2 * len(people)
    assert sum(tally.n for tally in found.scoring) / sent == pytest.approx(0.2, abs=0.02)


def test_values_come_from_the_studys_own_queries():
    found = people_from_rows(
        proposal(),
        [
            {"age": 30, "sex": "m", "town": 3, "ill": "yes"},
            {"age": None, "sex": "x", "town": None, "ill": "perhaps"},
            {"age": "old", "sex": 1.5, "town": 0, "ill": None},
        ],
    )
    assert [found.columns["age"].values[i] for i in found.columns["age"].index] == [30.0, None, None]
    assert [found.columns["sex"].values[i] for i in found.columns["sex"].index] == ["m", "x", None]
    assert found.labels.tolist() == [1, 0, 0]
    mapped = categories(proposal().features, found, {"age": (40.0,)})
    assert {name: index.tolist() for name, index in mapped.items()} == {
        "age": [0, 1, 1], "sex": [1, 2, 2], "town": [0, 1, 1],
    }


def test_a_csv_file_is_read_as_the_importer_reads_it(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("Age, Sex ,town,ILL,who\n30,m,1,yes,a\n,f,0,no,b\n44,f,1,no,b\n")
    found = people_from_csv(proposal(), file)
    assert found.columns["age"].values == (30.0, None, 44.0)
    assert len(found) == 3
    grouped = people_from_csv(proposal(), file, person="who")
    assert len(grouped) == 2
    # Two rows of one person: a plain SELECT gives two rows, which is missing (design section 3, step 6).
    assert grouped.columns["sex"].values == ("m", None)


def test_data_that_do_not_fit_are_refused(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("age,sex\n30,m\n")
    with pytest.raises(Malformed, match="town, ill"):
        people_from_csv(proposal(), file)
    with pytest.raises(Malformed, match="column who"):
        people_from_csv(proposal(), file, person="who")
    with pytest.raises(Malformed, match="cannot be read"):
        people_from_csv(proposal(), tmp_path / "absent.csv")
    with pytest.raises(Malformed, match="at least one person"):
        people_from_values(proposal().label, [])


@pytest.mark.parametrize(("name", "record", "per_attribute"), [("study.toml", 2.0, 2.0), ("paper.toml", 3.5, 1.0)])
def test_the_census_studies_cost_what_they_say(name, record, per_attribute):
    manifest = resolve(load_proposal(CENSUS / name), NO_KEYS, 0)
    assert manifest.epsilon / 1e9 == pytest.approx(record, abs=1e-6)
    assert manifest.epsilon_per_attribute / 1e9 == pytest.approx(per_attribute, abs=1e-6)
    assert len(manifest.features) == 11
    assert any(survey.kind != "histogram" for survey in manifest.surveys)


@pytest.mark.slow
def test_a_study_without_binning_has_declared_cuts(people, others):
    study = proposal()
    declared = evolve(study, features=(evolve(study.features[0], bins=0, cuts=(60.0,)), *study.features[1:]))
    assert simulate(declared, people, 3, 1, others).auc_mean == pytest.approx(BEST, abs=0.05)


def test_what_decides_and_the_spread_of_one_study_are_told(people, others, capsys):
    found = simulate(proposal(), people, 6, 1, others, ceilings=False)
    assert found.scored == 4_000 and found.shown == 1
    assert found.spread == pytest.approx(found.auc_se * 6**0.5)
    shuffled = simulate(proposal(), people, 6, 1, others, shuffle_labels=True, ceilings=False)
    assert shuffled.shown < 0.5
    assert simulate(proposal(), people, 1, 1, ceilings=False).scored == 1_800, "the rows that are held out"
    _show(found)
    said = capsys.readouterr().out
    assert "shown to beat a guess in 6 of 6 studies" in said and "standard deviation" in said and "eq. 6" not in said
    assert "for 4000 other people" in " ".join(said.split())


@pytest.mark.parametrize(
    ("peers", "said", "errors"),
    [
        (None, "all of them take part in each", "of the study's own chance."),
        (500, "drawn anew for each from 6000, nobody twice", "of the draw of peers and the study's own chance."),
        (7_000, "drawn anew for each from 6000, with replacement", "of the draw of peers and the study's own chance."),
    ],
)
def test_who_is_drawn_and_what_the_errors_cover_are_told(people, others, capsys, peers, said, errors):
    found = simulate(proposal(), people, 2, 1, others, peers=peers, ceilings=False)
    _show(found)
    told = " ".join(capsys.readouterr().out.split())
    assert f"peers: {said} standard errors: {errors} All studies are scored on the same" in told
    assert found.figures()["drawn_from"] == 6_000
