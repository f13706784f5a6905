"""A member's own model beside those of groups: what has a say, what is left out with its reason, and nothing leaves."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from attrs import evolve

from anon.errors import Refused
from anon.protocols.models.beside import FEWEST, beside, errors_of, weights_of
from anon.protocols.models.ensemble import EnsembleModel, GroupModel
from anon.protocols.models.linear import LinearModel
from anon.protocols.sum.design import column_of
from peer.predict import own_beside
from tests.support.peer_command import Command
from tests.support.sums import MOMENTS, manifest_of, many

STUDY = manifest_of(MOMENTS, keys=many(6))
GOOD, FLIPPED = (2.0, 0.0), (-2.0, 0.0)


def ensemble(*weights: tuple[float, float]) -> EnsembleModel:
    models = tuple(GroupModel(1, number, 4, pair, 0.0) for number, pair in enumerate(weights, 1))
    columns = tuple(map(column_of, STUDY.features))
    return EnsembleModel("00" * 32, "Sleep", STUDY.label, STUDY.features, columns, models, many=True)


def rows_of(seed: int, number: int) -> list[tuple[int, float, float, int]]:
    """Records (day, age, sleep, tired): old ones are tired, but for one of ten."""
    spring = Random(seed)
    found = []
    for day in range(number):
        age = spring.uniform(0, 100)
        found.append((day, age, spring.uniform(0, 12), int((age > 50) != (spring.random() < 0.1))))
    return found


def records(seed: int, number: int) -> list[tuple[dict[str, float], float]]:
    return [({"age": age, "sleep": sleep}, float(tired)) for _day, age, sleep, tired in rows_of(seed, number)]


def test_all_have_the_same_say_where_nothing_is_weighed() -> None:
    found = beside(ensemble(GOOD, (0.5, 0.5)), records(1, 80), weighted=False)
    assert [one.weight for one in found.judged] == [pytest.approx(1 / 3)] * 3 and found.left_out == ()
    assert found.held_back == 20 and str(found.judged[0].name) == "your own model"
    values = {"age": 90.0, "sleep": 6.0}
    score = found.predict(values)
    each = [one.model.predict(values).probability for one in found.judged]
    assert score.probability == pytest.approx(sum(each) / 3) and score.positive is True
    assert [part.features[0] for part in score.moved_by] == [
        "your own model", "model 1 of aggregation 1", "model 2 of aggregation 1"
    ]  # fmt: skip
    assert sum(part.amount for part in score.moved_by) == pytest.approx(2 * score.probability - 1)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_a_model_turned_round_is_left_out_with_the_reason(weighted: bool) -> None:
    """Of the same length as a right one: no check of lengths can see it."""
    found = beside(ensemble(GOOD, FLIPPED), records(2, 200), weighted)
    own, good, flipped = found.judged
    assert flipped.weight == 0 < good.weight and own.weight > 0 and own.weight + good.weight == pytest.approx(1)
    (sentence,) = found.left_out
    words = f"model 2 of aggregation 1 is left out: it errs on {flipped.wrong} of 50 records of yours"
    assert sentence.startswith(words)
    assert flipped.wrong > 40 and good.wrong < 12
    same = beside(ensemble(GOOD), records(2, 200), weighted)
    for _values, _label in records(3, 50):
        assert found.predict(_values) == same.predict(_values)


def test_a_worse_model_has_a_smaller_say() -> None:
    """One deviation of 25 guesses is 2.5 errors."""
    assert weights_of([5, 5, 5], 10, 25, True) == [pytest.approx(1 / 3)] * 3
    own, other = weights_of([5, 10], 10, 25, True)
    assert own / other == pytest.approx(2.718281828**2)
    assert weights_of([20, 5], 10, 25, True)[0] > 0, "the own model is never left out"
    assert weights_of([5, 15], 10, 25, False) == [0.5, 0.5] and weights_of([5, 16], 10, 25, False) == [1, 0]
    assert weights_of([2, 2], 0, 2, True) == [0.5, 0.5], "few records leave nobody out"


@pytest.mark.slow
def test_the_own_model_learns_from_records_that_are_not_held_back() -> None:
    rows = records(4, 200)
    found = beside(ensemble((0.0, 0.0)), rows, True)
    own = found.judged[0]
    assert isinstance(own.model, LinearModel) and own.model.weights[0] > 1 and abs(own.model.weights[1]) < 1
    assert own.wrong == errors_of(own.model, [(values, int(label)) for values, label in rows[::4]]) < 10
    moved = [(values, 1 - label) if at % 4 == 0 else (values, label) for at, (values, label) in enumerate(rows)]
    again = beside(ensemble((0.0, 0.0)), moved, True).judged[0]
    assert again.wrong > 30, "the labels of those held back are turned, and the model is not"


def test_a_study_that_showed_nothing_gives_no_answer() -> None:
    found = beside(evolve(ensemble(GOOD), shown=False, chance=0.5), records(5, 40), True)
    assert found.predict({"age": 90.0}).positive is None and found.predict({"age": 90.0}).moved_by == ()


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_records_of_one_label_give_a_model_that_says_it(label: float) -> None:
    found = beside(ensemble(GOOD), [(values, label) for values, _ in records(6, 40)], True)
    assert found.guess == 0 and found.judged[0].wrong == 0
    assert found.predict({"age": 50.0}).positive is bool(label)


def test_too_few_records_are_told() -> None:
    with pytest.raises(Refused, match=f"at least {FEWEST} of your records, and {FEWEST - 1} were found"):
        beside(ensemble(GOOD), records(7, FEWEST - 1), False)
    assert beside(ensemble(GOOD), records(7, FEWEST), False).held_back == 2


def test_another_model_has_nothing_beside_it(tmp_path: Path) -> None:
    linear = ensemble(GOOD).linear[0]
    with pytest.raises(Refused, match="leave --own out"):
        own_beside(linear, tmp_path / "data.sqlite", 0, False)


def test_the_owner_reads_each_say(command: Command, tmp_path: Path) -> None:
    """By the command, with a home of real tables: the published model is a file, and no address is asked."""
    model, people, held = (tmp_path / name for name in ("model.json", "people.csv", "held.csv"))
    rows = "\n".join(",".join(map(str, row)) for row in rows_of(8, 120))
    held.write_text(f"day,age,sleep,tired\n{rows}\n", "utf-8")
    model.write_text(ensemble(GOOD, FLIPPED).to_json(), "utf-8")
    people.write_text("day,age,sleep,tired\n1,95,6,\n2,5,6,\n", "utf-8")
    assert command("predict", model, "--people", people, "--own").code == 4, "no records of the owner's own"
    assert command("import", held, "--table", "person").code == 0
    done = command("predict", model, "--people", people, "--own", "--weighted")
    assert done.code == 0 and "model 2 of aggregation 1 is left out: it errs on" in done.err
    assert done.out.count("your own model") == 2 and done.out.count(": yes") == done.out.count(": no") == 1
    assert done.out.count("model 1 of aggregation 1") == 2 and "model 2 of" not in done.out
    for call in (("--people", people, "--weighted"), ("--own",)):
        assert command("predict", model, *call).code == 4
