"""`study plan` beside exact sums: a forecast by the protocol's own parts, and on what each guarantee rests."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from typer.testing import CliRunner

from aggregator.lab.planning import candidates, exact_sums, outlook, plan
from aggregator.lab.planning.exact_sums import Beside, beside, equal_local, summed, without_tellers
from aggregator.lab.planning.forecast import forecast
from aggregator.lab.planning.population import Assumptions
from aggregator.lab.planning.trials import plan_of, worlds_of
from aggregator.lab.simulation.simulate import learn_once
from anon.accounting.central import central, local_epsilon
from anon.accounting.statement import slot_rows
from anon.errors import Refused
from anon.protocols.histogram.sections import OnePacket
from anon.study.proposal import Proposal
from anonml import application
from tests.docs.repository import ROOT
from tests.support.protocols import load_proposal, parse_proposal
from tests.support.sums import MOMENTS, RULE, TABLES, sum_study, tellers
from tests.support.world import directed

WRITTEN = parse_proposal(sum_study(TABLES, tellers(entries=False)))
PERTURBED = without_tellers(WRITTEN, 1.0)
FEW = Assumptions(people=1500, test=600)
CENSUS = ROOT / "examples" / "census"


@pytest.fixture(autouse=True)
def few_populations(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (exact_sums, outlook):
        monkeypatch.setattr(module, "populations_for", lambda _epsilon: 3)


@cache
def found(epsilon: float = 1.0, cohort: int = 300, proposal: Proposal = WRITTEN) -> Beside:
    perturbed = evolve(PERTURBED, design=OnePacket("one-packet", epsilon), cohort=proposal.cohort)
    return beside(proposal, perturbed, cohort, epsilon, 1)


@pytest.mark.slow
def test_the_forecast_is_the_protocols_own_run_on_the_same_people() -> None:
    worlds = worlds_of(WRITTEN, 3, FEW)
    assert [one.people[0].labels.tolist() for one in worlds] == [
        one.people[0].labels.tolist() for one in worlds_of(PERTURBED, 3, FEW)
    ]
    little, much = found(0.05), found(8.0)
    assert little.tellers == 2 and little.sums.auc + 0.05 < much.sums.auc, "the noise of the tellers is in it"
    design, stood_in = summed(WRITTEN, 8.0)
    study = plan_of(design)
    learned = learn_once(study, worlds[0].people[0].take(np.arange(300)), np.random.default_rng(1))
    assert stood_in == () and study.manifest.surveys[0].exact and learned.model.ensemble == "soft"


@pytest.mark.slow
def test_the_equal_local_epsilon_is_the_last_that_keeps_the_central_one() -> None:
    local = equal_local(PERTURBED, 300, 1.0, 1)
    assert 1 < local < 5 and isinstance(PERTURBED.design, OnePacket)
    for at, kept in ((local, True), (local + 0.01, False)):
        manifest = plan_of(evolve(PERTURBED, design=evolve(PERTURBED.design, epsilon=round(at, 2)))).manifest
        rows = slot_rows(manifest)
        assert (central(rows, [300], sum(map(local_epsilon, rows)), 1e-6).epsilon <= 1) is kept
    result = found()
    assert result.equal is not None and result.equal.epsilon == local
    assert result.if_honest is not None and result.if_honest < 1


@pytest.mark.slow
def test_each_guarantee_says_what_it_rests_on() -> None:
    words = " ".join(found().sentences(1.0))
    for said in (
        "histogram: epsilon 1 is local",
        "Nobody else needs to be honest for it: no other person, no teller, no aggregator",
        "sum: epsilon 1 at delta 0.000001 is central",
        "It holds if at least one teller is honest",
        "If all tellers work together it does not hold: they read exact answers, without names",
        "if everybody else is honest and no packet is linked to its sender",
        "different promises",
    ):
        assert said in words, said
    assert "stand in" not in words


@pytest.mark.slow
def test_a_plan_of_what_staff_expect_names_the_design_that_starts_from_it() -> None:
    planned = found(proposal=parse_proposal(sum_study(RULE, tellers(entries=False))))
    said = 'kind = "rule" in place of "tables-sum" starts from what you expect'
    assert said in " ".join(planned.sentences(1.0)) and planned.believed is not None
    assert f"From about {planned.believed.enough:,} people on" in " ".join(planned.sentences(1.0))
    assert 'kind = "rule"' not in " ".join(found().sentences(1.0))


@pytest.mark.slow
def test_open_admission_has_no_central_epsilon() -> None:
    study = evolve(WRITTEN, cohort=evolve(WRITTEN.cohort, admission="open"))
    result = found(proposal=study)
    assert result.if_honest is result.equal is None and "As a central guarantee" not in " ".join(result.sentences(1.0))


def test_numbers_without_cuts_are_named() -> None:
    made, stood_in = summed(load_proposal(CENSUS / "study.toml"), 1.0)
    assert stood_in and not made.binned
    for name in stood_in:
        (feature,) = [one for one in made.features if one.name == name]
        assert len(feature.cuts) == exact_sums.PARTS - 1


def _planned(file: Path, *words: str) -> str:
    words = ("plan", str(file), "--epsilon", "1", "--cohort", "60", "--only", "--populations", "1", *words)
    done = CliRunner().invoke(application("study"), words, catch_exceptions=False, env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new", "said", "never"), [
    ("", "", "Leave out `expects` where you are less sure", "not for this study"),
    ("cuts = [30, 50]", "bins = 3", "the rule needs declared cuts; age have none", "less sure"),
    ("expects = 1\n", "", "Made-up studies differ", "The declared rule"),
])
def test_a_plan_says_of_the_declared_rule_what_its_figures_take_or_why_it_has_none(
    tmp_path: Path, old: str, new: str, said: str, never: str
) -> None:
    file = tmp_path / "study.toml"
    file.write_text(directed("bits").replace(old, new) if old else directed("bits"), "utf-8")
    text = " ".join(_planned(file).split())
    assert said in text and never not in text


@pytest.mark.slow
def test_the_command_writes_the_rule_where_it_is_best_and_names_the_window_that_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, made = tmp_path / "study.toml", tmp_path / "made.toml"
    file.write_text(directed("bits").replace('binning = "100s"\n', ""), "utf-8")
    monkeypatch.setattr(plan, "candidates", lambda *given: candidates.candidates(*given)[-1:])
    text = " ".join(_planned(file, "--write", str(made)).split())
    assert '[design] asks: "bits" -> "rule"' in text and "[schedule] binning: 0 -> 100" in text
    assert "With 60 people the model ranks about as your own belief" in text
    assert load_proposal(made).design == OnePacket("one-packet", 1.0, asks="rule")


@pytest.mark.slow
def test_the_command_compares_both_for_a_study_of_either_kind(tmp_path: Path) -> None:
    told = json.loads(_planned(CENSUS / "sums.toml", "--json"))["sum"]
    assert (told["delta"], told["tellers"], told["cohort"]) == ("0.000001", 2, 60) and 0.3 < told["auc"] < 0.9
    rule = tmp_path / "rule.toml"
    rule.write_text(sum_study(RULE, tellers(entries=False)), "utf-8")
    said = _planned(rule)
    assert "the declared rule" in said and "exact sums of tables" in said
    text = " ".join(_planned(CENSUS / "study.toml").split())
    assert "sum │ exact sums of tables" in text and "equal parts of the range stand in" in text
    assert "Nobody else needs to be honest" in text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sums.toml", "study.toml"])
def test_exact_sums_are_written_as_a_study_file(tmp_path: Path, name: str) -> None:
    target = tmp_path / "planned.toml"
    text = " ".join(_planned(CENSUS / name, "--write", str(target), "--exact-sums").split())
    kept = load_proposal(target)
    assert kept == summed(load_proposal(CENSUS / name), 1.0)[0] and kept.design.has_tellers
    assert "a trusted party" in text and "written with exact sums of tables" in text
    assert ("stand in: write names and addresses" in text) is (name == "study.toml")
    assert plan_of(kept).manifest.surveys[0].exact


@pytest.mark.slow
def test_a_plan_has_a_trusted_party_above_its_sums() -> None:
    little, much = found(0.05), found(8.0)
    assert little.trusted is not None and much.trusted is not None
    assert little.trusted + 0.02 < much.trusted and much.trusted >= much.sums.auc - 0.01
    assert much.figures()["trusted_party_auc"] == much.trusted


@pytest.mark.slow
def test_a_study_that_cannot_be_one_of_sums_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anon.protocols.sum.sections.FEWEST_TELLERS", 3)
    text = " ".join(_planned(CENSUS / "study.toml").split())
    assert "Exact sums: not for this study as it stands. tellers: expected 3 to 4, got 2" in text


@pytest.mark.slow
def test_lint_and_the_desks_forecast_know_summed_tables() -> None:
    manifest = plan_of(WRITTEN).manifest
    told = outlook.outlook_of(WRITTEN, manifest, 300)
    expected = forecast(manifest.to_bytes(), 300)
    assert told is not None and told.epsilon == 1 and expected.outlook == told and expected.table_auc is None
    linear = parse_proposal(sum_study(MOMENTS, tellers(entries=False)))
    assert outlook.outlook_of(linear, plan_of(linear).manifest) is None
    with pytest.raises(Refused, match="`anonml simulate` tells"):
        forecast(plan_of(linear).manifest.to_bytes(), 300)


@pytest.mark.slow
def test_a_plan_with_a_spare_says_that_two_tellers_must_be_honest() -> None:
    said = " ".join(Beside(found().sums, 2, (), None, None, spare=True).sentences(1.0))
    assert "at least two of the three tellers are honest" in said and "The noise of 2 of three tellers" in said
    assert "If any two tellers work together it does not hold" in said and "at least one teller" not in said


@pytest.mark.slow
def test_the_spare_of_a_study_file_stays_in_its_plan() -> None:
    written = 'name = "{}"\naddress = "127.0.0.1:900{}"\n'
    three = "".join("[[tellers]]\n" + written.format(name, at) for at, name in enumerate("abc")) + "spare = true\n"
    spared, _ = summed(parse_proposal(sum_study(TABLES, three)), 1.0)
    assert spared.has_spare
    plain = plan_of(WRITTEN, 1).manifest
    assert plan_of(spared, 1).manifest.surveys[0].epsilon == pytest.approx(plain.surveys[0].epsilon, rel=0.02)
