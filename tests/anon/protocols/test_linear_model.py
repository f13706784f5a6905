"""The linear form of a published model: one spelling, valid once built, total over values."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from anon.errors import Malformed, Refused
from anon.protocols.models.linear import LinearModel, from_json
from anon.protocols.models.tables import demand_tables
from anon.protocols.models.tables import from_json as tables_from_json
from peer.cli.show import prediction_json, show_prediction
from peer.data.importing import import_rows
from peer.predict import Prediction, caution, predict_own, predicted_name, write_predictions
from tests.support.browsing_model import model_of
from tests.support.linear import CLASS, LOG, NUMBER
from tests.support.protocols import read_model

ANY = st.one_of(
    st.none(), st.floats(), st.text(max_size=3), st.integers().map(float), st.sampled_from([math.nan, math.inf])
)


@pytest.mark.parametrize("model", [CLASS, NUMBER, LOG], ids=["class", "number", "log"])
def test_a_model_has_one_spelling_and_is_read_by_its_form(model: LinearModel) -> None:
    text = model.to_json()
    assert read_model(text) == from_json(text) == model and read_model(text).to_json() == text
    assert json.loads(text)["form"] == "linear"
    with pytest.raises(Malformed):
        tables_from_json(text)
    with pytest.raises(Refused, match="not made of tables"):
        demand_tables(model)


def test_tables_carry_no_form_and_an_unknown_one_is_refused() -> None:
    tables = model_of("ab" * 32).decode()
    assert "form" not in json.loads(tables) and read_model(tables).to_json() == tables
    for form in ('"tables"', '"ensemble"', "7", '["linear"]'):
        with pytest.raises(Malformed):
            read_model(tables.replace("{", f'{{"form":{form},', 1))


def test_the_log_odds_add_up() -> None:
    found = CLASS.predict({"age": 60.0, "cups": 1.0})
    total = 0.25 + 1.5 * 0.5 - 2.0 * (1 - 2) / 2
    assert found.probability == pytest.approx(1 / (1 + math.exp(-total))) and found.positive is True
    assert [(part.features, part.amount) for part in found.moved_by] == [(("age",), 0.75), (("cups",), 1.0)]
    assert found.value is None


def test_what_is_missing_counts_as_the_centre_and_what_is_beyond_as_the_end() -> None:
    centre, end = CLASS.predict({}), CLASS.predict({"age": 1e9, "cups": 2.0})
    assert centre.probability == pytest.approx(1 / (1 + math.exp(-0.25)))
    assert end.moved_by[0].amount == 1.5


def test_a_number_is_told_in_its_own_unit() -> None:
    found = NUMBER.predict({"age": 60.0, "cups": 2.0})
    assert found.value == pytest.approx(7 + 3 * (0.25 + 0.75)) and found.positive is None
    assert (
        found.probability == pytest.approx(1.0)
        and predicted_name(NUMBER) == "sleep"
        and predicted_name(CLASS) == "tired"
    )


def test_on_a_log_scale_the_logarithm_is_centred_and_a_number_told_in_its_own_unit() -> None:
    cups = (None, 2, 8, 80, 0, -1, -math.inf, math.sqrt(27) - 1)
    said = [LOG.predict({"cups": number}).moved_by[1].amount for number in cups]
    assert said == pytest.approx([0, 0, -2, -2, 2, 2, 0, -1])
    assert LOG.predict({"age": 60.0}).value == pytest.approx(math.expm1(math.log(5) + math.log(2)))
    assert [evolve(LOG, intercept=way).predict({}).value for way in (-9.0, 1e9)] == [0, pytest.approx(2**53)]


def test_a_linear_scale_is_not_spelled_and_no_other_is_known() -> None:
    assert CLASS.to_json().count("scale") == len(CLASS.features) and '"scale":"log"' in LOG.to_json()
    with pytest.raises(Malformed, match="scale"):
        from_json(LOG.to_json().replace('"scale":"log"', '"scale":"root"'))


@pytest.mark.parametrize("model", [CLASS, NUMBER], ids=["class", "number"])
def test_a_model_that_was_not_shown_says_nothing_of_a_person(model: LinearModel) -> None:
    found = evolve(model, shown=False, chance=0.4).predict({"age": 60.0})
    assert found.positive is None and found.value is None and found.moved_by == ()


@given(st.dictionaries(st.sampled_from(["age", "cups", "other"]), ANY))
def test_no_value_makes_it_raise(values) -> None:
    for model in (CLASS, NUMBER, LOG):
        found = model.predict(values)
        assert 0 <= found.probability <= 1 and all(map(math.isfinite, (part.amount for part in found.moved_by)))


@pytest.mark.parametrize(
    "change",
    [
        {"weights": (1.0,)},
        {"weights": (1.0, math.nan)},
        {"intercept": math.inf},
        {"columns": CLASS.columns[:1]},
        {"columns": CLASS.columns[:1] * 2},
        {"columns": (), "weights": (), "features": ()},
        {"threshold": 1.5},
        {"chance": -0.1},
        {"form": "tables"},
        {"version": 2},
        {"target": CLASS.columns[0]},
        {
            "features": (
                CLASS.features[0],
                evolve(CLASS.features[1], kind="categorical", categories=("a", "b"), range=(), cuts=()),
            )
        },
    ],
)
def test_a_model_that_cannot_be(change: dict[str, object]) -> None:
    with pytest.raises(Malformed):
        evolve(CLASS, **change)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"intercept":0.25', '"intercept":NaN'),
        lambda text: text.replace('"intercept":0.25', '"intercept":0.25,"intercept":0.25'),
        lambda text: text.replace('"intercept":0.25', '"intercept":0.25,"bias":1'),
        lambda text: text.replace('"width":40.0', '"width":0.0'),
        lambda text: text.replace('"width":40.0', '"width":1e300'),
        lambda text: text[:-20],
        lambda text: "[" * 100_000,
    ],
)
def test_a_text_that_is_no_model(change) -> None:
    with pytest.raises(Malformed):
        from_json(change(CLASS.to_json()))


def test_the_owner_predicts_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import_rows(tmp_path / "data.sqlite", "person", ("age", "cups", "tired"), [(60, 2, 1)])
    number, answer = (predict_own(model, tmp_path / "data.sqlite", 1) for model in (NUMBER, CLASS))
    show_prediction(number, predicted_name(NUMBER), False, 1)
    show_prediction(answer, predicted_name(CLASS), False, 0)
    assert capsys.readouterr().out.splitlines() == [
        "“sleep”: 10",
        "  “age”: +0.75",
        "“tired”: score 73.1 %, threshold 50.0 %: yes",
    ]
    assert prediction_json(number)["value"] == pytest.approx(10.0) and "value" not in prediction_json(answer)


def test_a_model_without_a_test_says_so_before_its_answer() -> None:
    assert "not tested against noise" in caution(CLASS)
    assert "did not show" in caution(evolve(CLASS, shown=False)) and not caution(evolve(CLASS, shown=True))


def test_a_file_of_numbers_has_a_column_of_numbers(tmp_path: Path) -> None:
    number, answer = Prediction("a", 0.5, 0.5, None, (), 10.25), Prediction("b", 0.25, 0.5, False, ())
    for name, rows, expected in (
        ("numbers", [number], "who,value\na,10.25\n"),
        ("answers", [answer], "who,probability,positive\nb,0.250000,0\n"),
        ("none", [], "who,probability,positive\n"),
    ):
        assert write_predictions(rows, tmp_path / name) == len(rows)
        assert (tmp_path / name).read_text().replace("\r\n", "\n") == expected
