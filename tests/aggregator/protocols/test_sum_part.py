"""The aggregator's part of `sum`: rounds, documents that are checked, and the models that published sums determine."""

from __future__ import annotations

import hashlib
import html
import re
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from attrs import evolve

from aggregator.lab.simulation.people import people_from_values
from aggregator.lab.simulation.rule import evaluated
from aggregator.lab.simulation.sum_noise import simulated_noise
from aggregator.protocols.additive.noise_test import LEVEL
from aggregator.protocols.additive.results import Subject
from aggregator.protocols.contract import SummingPart, part_of
from aggregator.protocols.sum.gradient_noise_test import chance_of_agreement
from aggregator.protocols.sum.moments import ridge
from aggregator.protocols.sum.moments_noise_test import chance_of_products
from aggregator.protocols.sum.part import SumPart
from aggregator.protocols.sum.published import NoisySum
from aggregator.protocols.sum.tables import learn_tables
from aggregator.report.page import render
from aggregator.rules.counters import Traffic
from anon.errors import AnonmlError, Malformed, Refused, RejectedProof
from anon.protocols.contract import MODEL, DocumentArrived, Place, Record
from anon.protocols.models.linear import LinearModel
from anon.protocols.registry import protocol_of
from anon.protocols.sum.design import summed_of
from anon.protocols.sum.standing import arrangement_of, read_sum
from anon.protocols.vectors.checks import CheckSums
from anon.protocols.vectors.columns import CONSTANT
from anon.protocols.vectors.gradient import Descent, GradientSums
from anon.protocols.vectors.moments import MomentSums
from anon.protocols.vectors.tables import TableSums
from anon.study.manifest import Manifest
from anon.wire.packets import TAG_BYTES
from peer.protocols.sum.part import SumPart as PeerPart
from peer.published_report import as_page
from tests.support.protocols import read_model
from tests.support.sums import GRADIENT, MARGINALS, MOMENTS, SLEEP, TABLES, document, manifest_of

PART = SumPart()
PEOPLE = 4000


def people(seed: int = 3) -> list[Record]:
    """Those who sleep little are tired, and the older sleep less."""
    spring = np.random.default_rng(seed)
    age, cups = spring.uniform(0, 100, PEOPLE), spring.integers(0, 3, PEOPLE)
    sleep = np.clip(9 - age / 20 + spring.normal(0, 1, PEOPLE), 0, 12)
    tired = spring.random(PEOPLE) < 1 / (1 + np.exp(2 * (sleep - 6.5)))
    words = ("none", "some", "many")
    rows = zip(age.tolist(), sleep.tolist(), cups.tolist(), tired.tolist(), strict=True)
    return [Record({"age": a, "sleep": s, "cups": words[c]}, int(t)) for a, s, c, t in rows]


RECORDS = people()


def published(study: Manifest, seed: int = 1) -> tuple[dict[Place, bytes], list[tuple[int, ...]]]:
    """The documents of all rounds, from every peer's own vector and simulated noise of two parties, and the sums. They
    are made once for each study."""
    documents, sums = _published(study, seed)
    return dict(documents), list(sums)


@cache
def _published(study: Manifest, seed: int) -> tuple[dict[Place, bytes], list[tuple[int, ...]]]:
    spring, documents, sums = np.random.default_rng(seed), dict[Place, bytes](), list[tuple[int, ...]]()
    for survey in study.surveys:
        arrived = [DocumentArrived("sums", part, body) for (_, part), body in documents.items()]
        vectors = [PeerPart().answers(study, one, [(survey.round, survey.survey)], arrived)[0] for one in _kinds(study)]
        taken = [vector for at, vector in enumerate(vectors) if PeerPart().takes_part(study, survey, _lot(at))]
        total = np.sum([one.vector.values for one in taken], axis=0)
        noise = simulated_noise(arrangement_of(study).sums[survey.round].sigma_squared, 2, survey.m, spring)
        sums.append(tuple(int(one) for one in total + noise))
        documents["sums", survey.round] = document(study, survey.round, sums[-1], len(vectors))
    return documents, sums


def _lot(member: int) -> bytes:
    return hashlib.sha256(member.to_bytes(2, "big")).digest()


def _kinds(study: Manifest) -> list[Record]:
    return RECORDS[:400] if len(study.surveys) > 1 else RECORDS


def learned(study: Manifest, documents: dict[Place, bytes]):
    return PART.learn(study, documents, {})


@pytest.mark.slow
@pytest.mark.parametrize("design", [TABLES, MARGINALS, MOMENTS, SLEEP, GRADIENT])
def test_a_model_comes_back_from_its_json_and_predicts(design: str) -> None:
    study = manifest_of(design)
    model = learned(study, published(study)[0]).model
    again = read_model(model.to_json())
    assert again == model and len(model.to_json()) <= protocol_of(study).results(study)[MODEL]
    rested, weary = ({"age": 50.0, "sleep": hours, "cups": "some"} for hours in (10.0, 2.0))
    if design != SLEEP:
        assert model.predict(weary).probability > model.predict(rested).probability
    assert all(0 <= model.predict({"age": value}).probability <= 1 for value in (None, float("nan"), "x", -1e300))


@pytest.mark.slow
def test_tables_give_the_model_of_the_learner() -> None:
    study = manifest_of(TABLES)
    documents, (values,) = published(study)
    design = summed_of(study, study.surveys[0])
    assert isinstance(design, TableSums)
    cuts = {one.name: one.cuts for one in study.features if one.kind == "numeric"}
    subject = Subject(study.study_id.hex(), study.title, study.label, study.features, cuts)
    noisy = NoisySum(values, PEOPLE, arrangement_of(study).sums[0].sigma_squared, 2)
    expected = learn_tables(subject, design, noisy, study.learning)
    model = learned(study, documents).model
    assert model == evolve(expected.model, chance=expected.chance, shown=expected.learnable) and model.shown
    assert model.classifier == "additive" and {one.features for one in model.tables} == {
        ("age",),
        ("sleep",),
        ("cups",),
    }


@pytest.mark.slow
def test_moments_give_the_regression_as_log_odds_and_a_number_in_its_own_unit() -> None:
    study = manifest_of(MOMENTS)
    documents, (values,) = published(study)
    design = summed_of(study, study.surveys[0])
    assert isinstance(design, MomentSums)
    noisy = NoisySum(values, PEOPLE, arrangement_of(study).sums[0].sigma_squared, 2)
    linear, model = ridge(design, "tired", noisy), learned(study, documents).model
    assert isinstance(model, LinearModel) and [one.name for one in linear.columns] == [CONSTANT, "age", "sleep"]
    assert (model.intercept, *model.weights) == tuple(2 * weight for weight in linear.weights)
    assert model.chance == chance_of_products(design, noisy) and model.shown
    number = manifest_of(SLEEP)
    model = learned(number, published(number)[0]).model
    assert isinstance(model, LinearModel) and model.target is not None and model.target.name == "sleep"
    assert [one.name for one in model.features] == ["age"]
    young, old = (model.predict({"age": age}).value for age in (10.0, 60.0))
    assert young == pytest.approx(8.5, abs=0.5) and old == pytest.approx(6.0, abs=0.5)


@pytest.mark.slow
def test_products_that_are_noise_alone_make_a_model_that_answers_nothing() -> None:
    study = manifest_of(MOMENTS)
    sigma_squared, spring = arrangement_of(study).sums[0].sigma_squared, np.random.default_rng(2)
    noise = simulated_noise(sigma_squared, 2, study.surveys[0].m, spring)
    found = learned(study, {("sums", 0): document(study, 0, tuple(map(int, noise)), PEOPLE)})
    assert found.model.shown is False and found.model.predict({"age": 50.0}).positive is None
    page = render(study, found, Traffic(10, {}, {}), {0: 10})
    assert "do not show that anything asked goes with “<bdi>tired</bdi>”" in page
    assert "not shown to be more than noise" in page and "95 % interval" in page


@pytest.mark.slow
@pytest.mark.parametrize("design", [MOMENTS, GRADIENT])
def test_the_report_of_a_linear_model_has_its_figures_on_test_people(design: str) -> None:
    study = manifest_of(design)
    found = learned(study, published(study)[0])
    tested = people_from_values(study.label, ((one.values, one.label) for one in RECORDS[:600]))
    evaluation = evaluated(found.model, study, tested, PEOPLE)
    assert evaluation.trusted_auc is not None and 0.7 < evaluation.trusted_auc < 0.95
    assert 0.7 < evaluation.auc < 0.97 and len(evaluation.subgroups) >= 5
    page = render(study, found, Traffic(10, {}, {}), {0: 10}, evaluation)
    assert "commoner answer for everybody" in page and "trusted party" in page and "sleep" in page
    number = manifest_of(SLEEP)
    with pytest.raises(Refused, match="not made of tables"):
        evaluated(learned(number, published(number)[0]).model, number, tested, PEOPLE)


@pytest.mark.slow
def test_a_gradient_gives_the_weights_of_the_descent() -> None:
    study = manifest_of(GRADIENT)
    documents, sums = published(study)
    design, one = summed_of(study, study.surveys[0]), arrangement_of(study).sums[0]
    assert isinstance(design, GradientSums)
    way = Descent(3, Fraction(2), Fraction(9, 10), 300, one.sigma_squared * 2, 1)
    standing = way.start(len(design.columns))
    for values in sums[:3]:
        standing = way.after(standing, values, design.scale)
    model = learned(study, documents).model
    assert isinstance(model, LinearModel) and (model.intercept, *model.weights) == way.final(standing)
    assert model.weights[1] < 0
    check, last = summed_of(study, study.surveys[3]), read_sum(study, 3, documents["sums", 3])
    assert isinstance(check, CheckSums) and model.chance == chance_of_agreement(check, last, 4)
    assert model.shown == (model.chance <= LEVEL)


@pytest.mark.slow
def test_learning_needs_every_document_and_refuses_one_that_was_altered() -> None:
    study = manifest_of(GRADIENT)
    documents, _ = published(study)
    with pytest.raises(Malformed, match="round 1"):
        learned(study, {place: body for place, body in documents.items() if place != ("sums", 1)})
    body = documents["sums", 2]
    with pytest.raises(AnonmlError):
        learned(study, {**documents, ("sums", 2): body[:-70] + bytes([body[-70] ^ 1]) + body[-69:]})
    with pytest.raises(AnonmlError):
        learned(study, {**documents, ("sums", 2): documents["sums", 1]})


def test_rounds_have_the_windows_and_documents_of_the_surveys() -> None:
    assert isinstance(part_of(manifest_of()), SummingPart)
    (only,) = protocol_of(tables := manifest_of(TABLES)).rounds(tables)
    assert (only.state, only.name, only.surveys, only.document) == ("collecting", "collection", (0,), ("sums", 0))
    study = manifest_of(GRADIENT)
    rounds = protocol_of(study).rounds(study)
    assert [one.name for one in rounds] == [f"round {number} of 4" for number in (1, 2, 3, 4)]
    assert [one.window for one in rounds] == [survey.window for survey in study.surveys]
    assert [one.document for one in rounds] == [("sums", number) for number in range(4)]


def test_sums_are_checked_against_the_transcript() -> None:
    study = manifest_of(GRADIENT)
    body = document(study, 1, [1, 2, 3], 4)
    tags = [place.to_bytes(TAG_BYTES, "big") for place in range(6)]
    assert PART.check_sums(study, 1, body, 6, {1: tags}) == {1: 2}
    with pytest.raises(Malformed, match="in no transcript"):
        PART.check_sums(study, 1, body, 6, {1: tags[:3]})
    with pytest.raises((Malformed, RejectedProof)):
        PART.check_sums(study, 0, body, 6, {0: tags})
    with pytest.raises(Malformed, match="at least 2"):
        PART.check_sums(study, 1, document(study, 1, [1, 2, 3], 1), 6, {1: tags})


@pytest.mark.slow
def test_the_desk_is_told_no_estimate_and_no_score() -> None:
    study = manifest_of()
    documents, _ = published(study)
    assert PART.estimate(study, study.surveys[0], documents, PART.tally(study, study.surveys[0], (), b""), True) is None
    assert PART.part_scores(learned(study, documents).model) == ()


@pytest.mark.slow
def test_the_report_tells_what_one_liar_in_a_hundred_could_do_from_a_hundred_members_on() -> None:
    study = manifest_of(TABLES)
    found = learned(study, published(study)[0])
    few, many = (render(study, found, Traffic(enrolled, {}, {}), {0: 10}) for enrolled in (99, 100))
    assert "of the members lied" in many and "of the members lied" not in few


@pytest.mark.slow
@pytest.mark.parametrize("design", [TABLES, MARGINALS, MOMENTS, SLEEP, GRADIENT])
def test_the_report_states_a_central_cost_and_its_condition(design: str) -> None:
    study = manifest_of(design)
    found = learned(study, published(study)[0])
    page = render(study, found, Traffic(10, {}, {}), {0: 10})
    assert "tellers “clinic” and “students” keeps its shares to itself, adds its noise and signs one list only" in page
    opened = html.unescape(re.sub(r"<details>.*?</details>", "", page, flags=re.DOTALL))
    assert not re.search(r"[.?!][A-Z]", re.sub(r"</?bdi>", "", opened)), "a sentence begins right after another"
    assert "central epsilon 1 at delta" in page and "rho 0.02" in page
    assert "rho" not in opened and "delta" not in opened, "one click away"
    assert "<strong>epsilon 1</strong>. Had one member's answers been others, the chances of whatever is" in opened
    assert "by at most a factor of 2.72, and by one in a million more. This holds if at least one" in opened
    added = opened[opened.index("Who added it up") : opened.index("Who took part")]
    assert "One teller alone reads no answer, but can make the sum wrong" in added and "all of them together" in added
    for local in ("local epsilon", "Record-level", "record-level", "perturbed packets", "made noisy before it left"):
        assert local not in page
    assert "exact numbers in sealed shares" in page
    assert b"exact numbers in sealed shares" in as_page(page.encode(), "Report", "above")
    assert "was not tested against noise" not in page
    assert ("The model" in page) and ("What moves a prediction" in page or "weight</th>" in page)
