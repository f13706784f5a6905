"""The group's model, answer by answer: on a study's page and beside the prediction, drawn on this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import exp

import pytest
from attrs import evolve

from anon.protocols.categories import Value
from anon.protocols.models.chart import MOST_ANSWERS, MOST_FEATURES, ModelChart, chart_of
from anon.protocols.models.ensemble import EnsembleModel, GroupModel
from anon.protocols.models.published import PublishedModel
from anon.protocols.models.tables import Model, ModelTable, from_json
from anon.protocols.vectors.columns import Column
from peer.data.importing import import_rows
from peer.web.languages import COOKIE
from peer.web.site import LIVE
from tests.support.browsing_model import model_of
from tests.support.linear import CLASS, LOG, NUMBER
from tests.support.visiting import Visited

TABLES = from_json(model_of("ab" * 32).decode())


def drawn(model: PublishedModel, own: Mapping[str, Value] | None = None) -> ModelChart:
    chart = chart_of(model, own)
    assert chart is not None
    return chart


def said(chart: ModelChart) -> dict[str, list[tuple[str, str]]]:
    return {one.feature.name: [(str(bar.name), str(bar.figure)) for bar in one.bars] for one in chart.features}


# The bars


def test_each_answer_of_a_table_alone_moves_the_base_rate() -> None:
    chart = drawn(TABLES)
    assert said(chart) == {
        "cups": [("“none”", "11.4"), ("“some”", "32.1"), ("“many”", "74.1"), ("not known", "30.0")],
        "age": [("up to 30", "22.3"), ("above 30, up to 60", "34.4"), ("above 60", "43.8"), ("not known", "30.0")],
    }
    assert chart.mark == 0.4 and not chart.together and not chart.number
    assert chart.features[0].bars[2].length == pytest.approx(1 / (1 + 7 / 3 * exp(-1.9)))


def test_a_bar_is_the_models_own_score_where_no_other_answer_says_anything() -> None:
    for category, bar in enumerate(drawn(TABLES).features[0].bars):
        assert bar.length == pytest.approx(TABLES.probability({"cups": category, "age": 3}))


def test_answers_that_are_read_together_are_drawn_as_the_mean_over_the_other_ones() -> None:
    pair = ModelTable(("cups", "age"), (4, 4), 9, 0.5, 0.5, 1.0, tuple(float(cell) for cell in range(16)), (0,) * 16)
    chart = drawn(evolve(TABLES, tables=(pair,), base_rate=0.5))
    by_name = {one.feature.name: [bar.length for bar in one.bars] for one in chart.features}
    assert chart.together
    assert by_name["cups"] == pytest.approx([1 / (1 + exp(-mean)) for mean in (1.5, 5.5, 9.5, 13.5)])
    assert by_name["age"] == pytest.approx([1 / (1 + exp(-mean)) for mean in (6, 7, 8, 9)])


def test_a_vote_is_drawn_as_the_share_of_weights() -> None:
    age, cups = TABLES.tables[1], TABLES.tables[0]
    chart = drawn(evolve(TABLES, ensemble="vote", tables=(evolve(cups, weight=3.0), age)))
    assert [bar.length for bar in chart.features[0].bars] == [0.125, 0.125, 0.875, 0.125]


@pytest.mark.parametrize("model", [CLASS, NUMBER, LOG])
def test_a_column_is_drawn_over_its_range_with_the_others_at_their_centres(model: PublishedModel) -> None:
    chart = drawn(model)
    assert all(len(one.bars) == 6 for one in chart.features)
    for one in chart.features:
        middle, unknown = one.bars[2], one.bars[5]
        assert middle.length == pytest.approx(unknown.length) == pytest.approx(model.predict({}).probability)
    assert chart.number is (model is not CLASS)


def test_the_words_of_a_columns_parts() -> None:
    names = {one.feature.name: [str(bar.name) for bar in one.bars] for one in drawn(CLASS).features}
    assert names["age"] == [
        "up to 16", "above 16, up to 32", "above 32, up to 48", "above 48, up to 64", "above 64", "not known",
    ]  # fmt: skip
    assert said(drawn(NUMBER))["age"][0] == ("up to 16", "4.15")


def test_models_of_groups_are_drawn_by_their_mean() -> None:
    groups = (GroupModel(1, 1, 5, (1.5, -2.0), 0.25), GroupModel(1, 2, 5, (-1.5, 2.0), 0.25))
    model = EnsembleModel(CLASS.study, CLASS.title, CLASS.label, CLASS.features, CLASS.columns, groups)
    bars = drawn(model).features[0].bars
    assert bars[0].length == pytest.approx(model.predict({"cups": 0.4}).probability)


def test_a_bar_reads_one_column_of_each_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """All columns of 500 groups took 8 s for 60 columns, at each view of the page."""
    asked: list[str] = []
    real = Column.real
    monkeypatch.setattr(Column, "real", lambda column, value: asked.append(column.name) or real(column, value))
    groups = tuple(GroupModel(1, number, 5, (1.5, -2.0), 0.25) for number in range(1, 8))
    drawn(EnsembleModel(CLASS.study, CLASS.title, CLASS.label, CLASS.features, CLASS.columns, groups))
    assert len(asked) == len(CLASS.columns) * 6 * len(groups)


def owns(model: PublishedModel, **values: Value) -> dict[str, str]:
    chart = drawn(model, values)
    return {one.feature.name: str(bar.name) for one in chart.features for bar in one.bars if bar.own}


def test_the_owners_answer_is_marked_where_the_model_counts_it() -> None:
    assert owns(TABLES, cups="many", age=30.0) == {"cups": "“many”", "age": "up to 30"}
    assert owns(TABLES, cups="barrels") == {"cups": "not known", "age": "not known"}
    assert owns(CLASS, age=48, cups=900.0) == {"age": "above 32, up to 48", "cups": "above 3.2"}
    assert owns(CLASS, age="48", cups=float("nan")) == {"age": "not known", "cups": "not known"}
    assert not any(bar.own for one in drawn(TABLES).features for bar in one.bars)


def test_a_model_that_was_not_shown_to_beat_a_guess_is_not_drawn() -> None:
    assert chart_of(evolve(TABLES, shown=False)) is None and chart_of(evolve(TABLES, shown=None)) is not None


def wide(features: int, answers: int) -> Model:
    base = TABLES.features[0]
    words = tuple(f"answer {number}" for number in range(answers))
    made = tuple(evolve(base, name=f"feature{number}", categories=words) for number in range(features))
    rising, flat = (*(0.01 * number for number in range(answers)), 0.0), (0.0,) * (answers + 1)
    tables = tuple(
        ModelTable((one.name,), (answers + 1,), 9, 0.5, 0.5, 1.0, rising if number else flat, (0,) * len(flat))
        for number, one in enumerate(made)
    )
    return evolve(TABLES, features=made, cuts=(), tables=tables)


def test_a_page_draws_so_many_bars_at_most_and_names_the_rest() -> None:
    chart = drawn(wide(20, 60), {"feature1": "answer 30"})
    assert len(chart.features) == MOST_FEATURES and len(chart.undrawn) == 8 and "feature0" in chart.undrawn
    first = chart.features[0]
    assert len(first.bars) == MOST_ANSWERS and first.left_out == 61 - MOST_ANSWERS
    assert [str(bar.name) for bar in first.bars if bar.own] == ["“answer 30”"]  # though it moves least


# The pages


async def joined(page: Visited, model: Model = TABLES) -> None:
    page.server.site.invites[page.aggregator.study] = page.aggregator.invite
    await page.submit(page.invite, page.invite, answer="yes")
    page.aggregator.publish("model", evolve(model, study=page.aggregator.study.hex()).to_json().encode())


async def predicted(page: Visited) -> str:
    place = page.study + "/prediction"
    await page.submit(place, place)
    return (await page.get(place)).words


async def test_the_prediction_has_the_bars_with_the_owners_answers_marked(page: Visited) -> None:
    await joined(page)
    words = await predicted(page)
    assert "“some” you 32.1 %" in words and "up to 30 you 22.3 %" in words
    assert "“many” 74.1 %" in words and "How much coffee you drink." in words
    import_rows(page.home.data_path, "person", ("age", "cups", "tired"), [(61, "many", 1)])
    assert "“many” you 74.1 %" in (await page.get(page.study + "/prediction")).words


async def test_the_studys_page_has_the_bars_once_the_model_was_fetched_and_asks_nobody(page: Visited) -> None:
    await joined(page)
    assert "answer by answer" not in (await page.get(page.study)).words
    await predicted(page)
    asked = len(page.aggregator.gets), len(page.aggregator.posts)
    got = await page.get(page.study)
    assert "“some” 32.1 %" in got.words and "“some” you" not in got.words
    assert "marked on the page “Prediction for me”" in got.words
    live = await page.get(page.study, **{LIVE: "1"})
    assert "answer by answer" not in live.words  # it lies in no part that a page refreshes
    assert (len(page.aggregator.gets), len(page.aggregator.posts)) == asked
    inside = re.findall(r"<div id=\"[a-z]+\" data-live>.*?\n</div>", got.text, re.DOTALL)
    assert inside and not any("answer by answer" in part for part in inside)


async def test_a_model_that_may_be_noise_says_so_in_place_of_bars(page: Visited) -> None:
    await joined(page, evolve(TABLES, chance=0.31, shown=False))
    for words in (await predicted(page), (await page.get(page.study)).words):
        assert "so nothing is drawn: its parts may be noise alone" in words and "32.1" not in words
        assert "31 of 100 such studies" in words


@pytest.mark.parametrize(("code", "words"), [("de", "Antwort für Antwort"), ("es", "respuesta a respuesta")])
async def test_the_bars_speak_the_owners_language(page: Visited, code: str, words: str) -> None:
    await joined(page)
    await predicted(page)
    page.session.cookie_jar.update_cookies({COOKIE: code})
    got = (await page.get(page.study)).words
    assert words in got and "32,1 %" in got
