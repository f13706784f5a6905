"""The ensemble form of a published model: one spelling, valid once built, the mean of its models' probabilities."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from anon.errors import Malformed, Refused
from anon.protocols.models.ensemble import EnsembleModel, GroupModel, from_json, longest_ensemble
from anon.protocols.models.tables import demand_tables
from peer.cli.show import show_prediction
from peer.data.importing import import_rows
from peer.predict import predict_own, predict_people, predicted_name
from tests.support.linear import CLASS
from tests.support.protocols import read_model

ANY = st.one_of(
    st.none(), st.floats(), st.text(max_size=3), st.integers().map(float), st.sampled_from([math.nan, math.inf])
)
MODELS = (
    GroupModel(1, 1, 4, (1.5, -2.0), 0.25), GroupModel(1, 2, 5, (0.0, 0.0), -1.0), GroupModel(3, 1, 1, (3.0, 1.0), 0.0)
)  # fmt: skip
BOTH = EnsembleModel(CLASS.study, CLASS.title, CLASS.label, CLASS.features, CLASS.columns, MODELS)


def test_a_model_has_one_spelling_and_is_read_by_its_form() -> None:
    text = BOTH.to_json()
    assert read_model(text) == from_json(text) == BOTH and read_model(text).to_json() == text
    assert json.loads(text)["form"] == "ensemble"
    assert "many" not in text and '"many":true' in evolve(BOTH, many=True).to_json()
    with pytest.raises(Refused, match="not made of tables"):
        demand_tables(BOTH)


def test_probabilities_are_averaged_and_each_model_has_its_say() -> None:
    values = {"age": 60.0, "cups": 1.0}
    found = BOTH.predict(values)
    scores = [model.predict(values).probability for model in BOTH.linear]
    assert scores[0] == CLASS.predict(values).probability and scores[1] == pytest.approx(1 / (1 + math.e))
    assert found.probability == pytest.approx(sum(scores) / 3) and found.positive is True and found.value is None
    assert sum(part.amount for part in found.moved_by) == pytest.approx(2 * found.probability - 1)
    assert [part.features for part in found.moved_by] == [
        (f"model {group} of aggregation {aggregation}",) for aggregation, group in ((1, 1), (1, 2), (3, 1))
    ]


def test_the_threshold_is_reached_by_the_mean() -> None:
    half = evolve(BOTH, models=(evolve(MODELS[1], intercept=1.0), evolve(MODELS[1], group=3)))
    assert half.predict({}).probability == pytest.approx(0.5) and half.predict({}).positive is True
    assert evolve(half, threshold=0.51).predict({}).positive is False


def test_a_model_that_was_not_shown_says_nothing_of_a_person() -> None:
    found = evolve(BOTH, shown=False, chance=0.4).predict({"age": 60.0})
    assert found.positive is None and found.moved_by == ()


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["age", "cups", "other"]), ANY))
def test_no_value_makes_it_raise(values) -> None:
    found = BOTH.predict(values)
    assert 0 <= found.probability <= 1 and all(abs(part.amount) <= 1 / 3 for part in found.moved_by)


@pytest.mark.parametrize(
    "change",
    [
        {"models": ()},
        {"models": (*MODELS, MODELS[0])},
        {"models": MODELS[::-1]},
        {"models": (evolve(MODELS[0], group=0),)},
        {"models": (evolve(MODELS[0], aggregation=-1),)},
        {"models": (evolve(MODELS[0], members=0),)},
        {"models": (MODELS[0], evolve(MODELS[1], weights=(1.0,)))},
        {"models": (MODELS[0], evolve(MODELS[1], weights=(1.0, math.inf)))},
        {"models": (MODELS[0], evolve(MODELS[1], intercept=math.nan))},
        {"columns": CLASS.columns[:1]},
        {"threshold": 1.5},
        {"chance": -0.1},
        {"form": "linear"},
        {"version": 2},
    ],
)
def test_a_model_that_cannot_be(change: dict[str, object]) -> None:
    with pytest.raises(Malformed):
        evolve(BOTH, **change)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"intercept":0.25', '"intercept":NaN'),
        lambda text: text.replace('"intercept":0.25', '"intercept":0.25,"bias":1'),
        lambda text: text.replace('"members":4', '"members":4.5'),
        lambda text: text.replace('"group":1,', "", 1),
        lambda text: text[:-20],
    ],
)
def test_a_text_that_is_no_model(change) -> None:
    with pytest.raises(Malformed):
        from_json(change(BOTH.to_json()))


def test_no_model_is_longer_than_its_bound() -> None:
    """Beside the texts of a linear one: three models, of numbers as long as they come."""
    long = -1.2345678901234567e-300
    models = tuple(GroupModel(10, number, 1000, (long, long), long) for number in range(100, 103))
    assert len(evolve(BOTH, models=models).to_json()) - len(CLASS.to_json()) < longest_ensemble(3, 2)


def test_the_owner_predicts_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import_rows(tmp_path / "data.sqlite", "person", ("age", "cups", "tired"), [(60, 2, 1)])
    show_prediction(predict_own(BOTH, tmp_path / "data.sqlite", 1), predicted_name(BOTH), False, 1)
    assert capsys.readouterr().out.splitlines() == [
        "“tired”: score 60.6 %, threshold 50.0 %: yes",
        "  “model 1 of aggregation 3”: +0.21",
    ]


def test_one_of_single_records_predicts_for_rows_and_for_nobody(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="--people"):
        predict_own(evolve(BOTH, many=True), tmp_path / "data.sqlite", 0)
    (path := tmp_path / "people.csv").write_text("age,cups\n60,2\n0,9\n", "utf-8")
    found = list(predict_people(BOTH, path, None, 0))
    values = [{"age": 60.0, "cups": 2.0}, {"age": 0.0, "cups": 9.0}]
    assert [one.probability for one in found] == [BOTH.predict(one).probability for one in values]
