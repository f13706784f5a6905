"""The notebook's ten lines, the report's test set, and its PDF."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from aggregator.lab.simulation.evaluation import evaluate_model, model_scores, probabilities, roc_auc, roc_points
from aggregator.notebook import Sample, Study
from aggregator.report import pdf
from anon.errors import Malformed, Refused

pytestmark = pytest.mark.slow

TEMPLATE = Path(__file__).resolve().parents[3] / "aggregator/study/study.toml"


@pytest.fixture(scope="module")
def study() -> Study:
    return Study(TEMPLATE)


@pytest.fixture(scope="module")
def people(study: Study) -> Sample:
    return study.made_up(3000)


def test_a_whole_study_in_a_few_lines(study: Study, people: Sample) -> None:
    result = study.run(people, seed=3)
    assert "record-level epsilon 2" in study._repr_html_() and "dropout" in study._repr_html_()
    assert people._repr_html_().count("<tr>") == 9
    assert "ROC AUC" in str(result) and "to beat a guess" in repr(result) and len(repr(result)) < 400
    assert "ROC AUC" in result._repr_html_() and "<svg" in result._repr_html_()
    assert "Errors by subgroup" in result.report.html and result.report._repr_html_().startswith("<iframe")
    assert result.evaluation.people == 900 and result.evaluation.auc > 0.6
    assert result.model.to_json() == study.run(people, seed=3).model.to_json()


def test_what_is_shuffled_cannot_be_learned(study: Study, people: Sample) -> None:
    """Under no signal the AUC on 900 people has a standard error of about 0.02: 0.1 off is five of them."""
    assert abs(study.run(people.shuffled(), seed=3).evaluation.auc - 0.5) < 0.1


def test_many_runs_and_another_epsilon(study: Study, people: Sample) -> None:
    shown = study.with_design(epsilon=0.5).simulate(people, trials=2)
    assert shown.result.epsilon_record == 0.5 and "standard error" in shown._repr_html_()
    assert "shown to beat a guess in" in repr(shown) and len(repr(shown)) < 600


def test_what_is_shown_is_escaped(people: Sample) -> None:
    text = TEMPLATE.read_text().replace('title = "Course dropout"', 'title = "<script>alert(1)</script>"')
    shown = Study(text)
    assert "<script" not in shown._repr_html_() + shown.run(people, seed=1).report.html


def test_faults_are_named() -> None:
    with pytest.raises(Malformed, match="epsilon"):
        Study(TEMPLATE.read_text().replace("epsilon = 2.0", "epsilon = -1"))
    with pytest.raises(Malformed):
        Study("no/such/file.toml")


def test_the_curve_is_that_of_the_scores(study: Study, people: Sample) -> None:
    """The area under the points equals the share of ordered pairs; subgroups add up to everybody."""
    model = study.run(people, seed=3).model
    test = people.people
    found = evaluate_model(model, test)
    xs, ys = np.array(found.roc).T
    assert found.roc[0] == (0, 0) and found.roc[-1] == (1, 1) and np.all(np.diff(xs) >= 0) and np.all(np.diff(ys) >= 0)
    assert np.trapezoid(ys, xs) == pytest.approx(found.auc, abs=1e-9)
    by_feature = [one for one in found.subgroups if one.name.startswith("forum")]
    assert sum(one.people for one in by_feature) == len(test)
    wrong = sum(one.people * one.error for one in by_feature)
    assert wrong / len(test) == pytest.approx(1 - found.accuracy, abs=1e-9)
    for one in by_feature:
        both = one.positive * (one.false_negative or 0) + (1 - one.positive) * (one.false_positive or 0)
        assert both == pytest.approx(one.error, abs=1e-9)


def test_probabilities_are_the_models(study: Study, people: Sample) -> None:
    model = study.run(people, seed=3).model
    some = people.people.take(np.arange(20))
    values = {name: [column.values[place] for place in column.index] for name, column in some.columns.items()}
    mine = probabilities(model, model_scores(model, some))
    for person in range(20):
        categories = model.categories({name: values[name][person] for name in values})
        assert mine[person] == pytest.approx(model.probability(categories), abs=1e-9)


def test_a_curve_without_both_labels_is_the_diagonal() -> None:
    ranks = np.array([0.1, 0.2])
    assert roc_points(ranks, np.array([True, True])) == ((0, 0), (1, 1))
    assert roc_points(np.array([2.0, 1.0]), np.array([True, False])) == ((0, 0), (0, 1), (1, 1))
    assert roc_auc(np.array([2.0, 1.0]), np.array([True, False])) == 1


def test_the_report_becomes_pdf(study: Study, people: Sample, tmp_path: Path) -> None:
    report = study.run(people, seed=3).report
    report.save(tmp_path / "report.pdf")
    made = (tmp_path / "report.pdf").read_bytes()
    assert made.startswith(b"%PDF-") and len(made) > 20_000
    report.save(tmp_path / "report.html")
    assert not re.search(r"<script|https?://", (tmp_path / "report.html").read_text())


def test_without_a_program_that_makes_pdf_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "_by_weasyprint", lambda page: None)
    monkeypatch.setattr(pdf, "BROWSERS", ())
    with pytest.raises(Refused, match=r"pipx install --force .*pdf"):
        pdf.to_pdf("<p>x</p>")


def test_a_pdf_fetches_nothing() -> None:
    made = pdf.to_pdf('<p>x<img src="http://127.0.0.1:9/x.png"><img src="file:///etc/hostname"></p>')
    assert made.startswith(b"%PDF-")
