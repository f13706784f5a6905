"""The published model: strict JSON, predictions by hand, raw values by the protocol's own map, no numpy."""

from __future__ import annotations

import json
import subprocess
import sys
from math import exp, log

import pytest
from attrs import evolve

from anon.errors import InvalidValue, Malformed
from anon.protocols.models.tables import VERSION, Cuts, Model, ModelTable, from_json
from anon.study.features import Feature, Label

MODEL = Model(
    version=VERSION,
    study="ab" * 32,
    title="Who leaves?",
    label=Label("left", "You left.", "SELECT left FROM log", (1,), (0,), "negative"),
    features=(
        Feature("age", "numeric", "Your age.", "SELECT age FROM log", "own", range=(0.0, 100.0), bins=3),
        Feature("sex", "categorical", "Your sex.", "SELECT sex FROM log", "m", categories=("f", "m")),
    ),
    cuts=(Cuts("age", (20.0, 40.0)),),
    ensemble="soft",
    classifier="soft",
    base_rate=0.2,
    threshold=0.2,
    tables=(
        ModelTable(("age",), (4,), 50, 0.5, 0.7, 0.5, (-1.0, 0.25, 1.0, 0.0), (0, 1, 1, 0)),
        ModelTable(
            ("sex", "age"), (2, 4), 50, 0.3, 0.6, 0.3, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0), (0,) * 7 + (1,)
        ),
    ),
)


def test_soft_probability_by_hand():
    log_odds = log(0.2 / 0.8) + 1.0
    assert MODEL.probability({"age": 2, "sex": 0}) == pytest.approx(exp(log_odds) / (1 + exp(log_odds)))
    assert MODEL.probability({"age": 3, "sex": 1}) == pytest.approx(1 / (1 + exp(-log(0.25) - 2)))
    assert [part.amount for part in MODEL.contributions({"age": 3, "sex": 1})] == [0.0, 2.0]
    assert MODEL.decide({"age": 3, "sex": 0})
    assert not MODEL.decide({"age": 0, "sex": 0})


def test_vote_probability_by_hand():
    voting = evolve(MODEL, ensemble="vote", threshold=0.5)
    assert voting.probability({"age": 1, "sex": 0}) == pytest.approx(0.5 / 0.8)
    assert voting.decide({"age": 1, "sex": 0})
    assert not voting.decide({"age": 3, "sex": 1})
    weightless = evolve(voting, tables=tuple(evolve(table, weight=0.0) for table in voting.tables))
    assert weightless.probability({"age": 1, "sex": 0}) == 0.2


def test_raw_values_go_through_the_protocols_map():
    assert MODEL.categories({"age": 20, "sex": "f"}) == {"age": 0, "sex": 0}
    assert MODEL.categories({"age": 20.5, "sex": "m"}) == {"age": 1, "sex": 1}
    assert MODEL.categories({"age": 1e9, "sex": "x"}) == {"age": 2, "sex": 1}
    assert MODEL.categories({}) == {"age": 3, "sex": 1}
    assert MODEL.categories({"age": float("nan"), "sex": None}) == {"age": 3, "sex": 1}


def test_json_comes_back_and_has_one_spelling():
    text = MODEL.to_json()
    assert from_json(text) == MODEL
    assert from_json(text).to_json() == text
    assert from_json(json.dumps(json.loads(text), indent=2)) == MODEL


@pytest.mark.parametrize(
    "change",
    [
        lambda plain: plain.update(extra=1),
        lambda plain: plain["tables"][0].update(extra=1),
        lambda plain: plain.pop("base_rate"),
        lambda plain: plain.update(version=2),
        lambda plain: plain.update(base_rate=0),
        lambda plain: plain.update(base_rate=True),
        lambda plain: plain.update(ensemble="stack"),
        lambda plain: plain.update(cuts=[]),
        lambda plain: plain["cuts"][0].update(cuts=[40, 20]),
        lambda plain: plain["cuts"][0].update(cuts=[40]),
        lambda plain: plain["tables"][0].update(log_odds=[0, 0, 0]),
        lambda plain: plain["tables"][0].update(votes=[0, 1, 2, 0]),
        lambda plain: plain["tables"][0].update(weight=-1),
        lambda plain: plain["tables"][0].update(features=["age", "age"]),
        lambda plain: plain["tables"][0].update(features=["height"]),
        lambda plain: plain["tables"][0].update(log_odds="0000"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(change):
    plain = json.loads(MODEL.to_json())
    change(plain)
    with pytest.raises(Malformed, match="model"):
        from_json(json.dumps(plain))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"version":1,"version":1}', "[" * 100_000])
def test_text_that_is_no_model_is_refused(text):
    with pytest.raises(Malformed, match="model"):
        from_json(text)


def test_a_repeated_key_is_refused():
    with pytest.raises(Malformed, match="repeated"):
        from_json('{"base_rate":0.1,' + MODEL.to_json()[1:])


def test_numbers_that_are_not_finite_are_refused():
    text = MODEL.to_json()
    for bad in ("NaN", "Infinity", "1e999"):
        with pytest.raises(Malformed):
            from_json(text.replace('"base_rate":0.2', f'"base_rate":{bad}'))


def test_impossible_categories_are_refused():
    for categories in ({"age": 4, "sex": 0}, {"age": -1, "sex": 0}, {"sex": 0}):
        with pytest.raises(Malformed, match="age"):
            MODEL.probability(categories)


def test_a_model_cannot_be_built_inconsistent():
    with pytest.raises(InvalidValue):
        evolve(MODEL, cuts=(Cuts("sex", ()),))


def test_extreme_log_odds_do_not_overflow():
    for amount in (-1e4, 1e4):
        table = evolve(MODEL.tables[0], log_odds=(amount,) * 4)
        assert evolve(MODEL, tables=(table,)).probability({"age": 0}) in (0.0, 1.0)


@pytest.mark.slow
def test_predicting_needs_no_numpy():
    program = (
        "import sys; from anon.protocols.models.tables import from_json;"
        "m = from_json(sys.stdin.read()); print(m.probability(m.categories({'age': 30, 'sex': 'f'})));"
        "assert not {'numpy', 'sklearn'} & set(sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], input=MODEL.to_json(), capture_output=True, text=True, check=True
    )
    assert float(run.stdout) == pytest.approx(MODEL.probability({"age": 1, "sex": 0}))


def test_a_model_by_a_newer_program_says_to_update() -> None:
    newer = json.dumps(json.loads(MODEL.to_json()) | {"mood": 1})
    with pytest.raises(Malformed, match=r"unknown key.*update this one"):
        from_json(newer)
    with pytest.raises(Malformed) as other:
        from_json(json.dumps(json.loads(MODEL.to_json()) | {"chance": 2.0}))
    assert "update" not in str(other.value)
