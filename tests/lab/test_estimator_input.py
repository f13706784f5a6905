"""Rows as researchers write them: mixed lists, numbers as text, names in another order; and a model that shows
nothing."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from attrs import evolve

import anonml
from aggregator.estimator import LocallyPrivateClassifier, NotShownWarning, PublishedClassifier
from anon.errors import Malformed
from anon.protocols.models.tables import VERSION, Cuts, Model, ModelTable
from anon.study.features import Feature, Label

MODEL = Model(
    version=VERSION,
    study="ab" * 32,
    title="Who earns much?",
    label=Label("much", "You earn much.", "SELECT much FROM person", (1,), (0,), "negative"),
    features=(
        Feature("hours", "numeric", "Your hours.", "SELECT hours FROM person", "own", range=(0.0, 100.0), bins=2),
        Feature("work", "categorical", "Your work.", "SELECT work FROM person", "own", categories=("private", "state")),
    ),
    cuts=(Cuts("hours", (40.0,)),),
    ensemble="soft",
    classifier="additive",
    base_rate=0.5,
    threshold=0.5,
    tables=(
        ModelTable(("hours",), (3,), 9, 0.5, 0.5, 0.5, (-1.0, 1.0, 0.25), (0, 1, 0)),
        ModelTable(("work",), (3,), 9, 0.5, 0.5, 0.5, (0.1, -0.1, 0.0), (0, 1, 0)),
    ),
    chance=0.001,
    shown=True,
)
PUBLISHED = PublishedClassifier(MODEL.to_json()).fit()
ROWS = [[60, "private"], [20, "state"]]
LOG_ODDS = [1.1, -1.1]


@pytest.mark.parametrize("rows", [
    ROWS, [tuple(row) for row in ROWS], np.array(ROWS), np.array(ROWS, dtype=object),
    [["60", "private"], [" 2e1", "state"]], pd.DataFrame(ROWS, columns=["hours", "work"]),
    pd.DataFrame({"work": ["private", "state"], "name": ["a", "b"], "hours": ["60", 20]}),
], ids=["list", "tuples", "text array", "objects", "texts", "frame", "frame in another order with more"])
def test_a_number_is_that_number_however_it_is_written(rows: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PUBLISHED.decision_function(rows).tolist() == pytest.approx(LOG_ODDS)


@pytest.mark.parametrize("missing", [None, float("nan"), "", " ", "nan"])
def test_a_missing_value_is_missing(missing: object) -> None:
    assert PUBLISHED.decision_function([[missing, "private"]]).tolist() == pytest.approx([0.35])
    assert PUBLISHED.decision_function(np.array([[missing, "private"]])).tolist() == pytest.approx([0.35])


@pytest.mark.parametrize("text", ["many", "1,5", "1_000", "0x10", "٤٠", "inf"])
def test_text_that_is_no_number_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="hours: expected numbers, got text that is none in 1 of 2 rows") as caught:
        PUBLISHED.predict([[text, "private"], [3, "state"]])
    assert text not in str(caught.value)


def test_columns_that_are_not_there_are_named() -> None:
    with pytest.raises(ValueError, match="hours are missing"):
        PUBLISHED.predict(pd.DataFrame({"work": ["private"]}))
    with pytest.raises(ValueError, match="expected the 2 columns hours, work, got 3"):
        PUBLISHED.predict([[1, "private", 3]])
    with pytest.raises(ValueError):
        PUBLISHED.predict([[1, "private"], [1]])


@pytest.mark.filterwarnings(
    "ignore::aggregator.estimator.PrivacyLeakWarning", "ignore::aggregator.estimator.NotShownWarning"
)
def test_the_estimator_reads_rows_alike_in_fit_and_predict() -> None:
    generator = np.random.default_rng(3)
    rows = [[int(hours), str(generator.choice(["private", "state"]))] for hours in generator.integers(0, 100, 4000)]
    target = [int(row[0] > 50) for row in rows]
    for given in (rows, np.array(rows)):
        fitted = LocallyPrivateClassifier(
            15.0, ranges={0: (0, 100)}, categories={1: ["private", "state"]}, random_state=1
        ).fit(given, target)
        assert fitted.read_from_data_ == () and fitted.score(given, target) > 0.9
        assert fitted.predict([[60, "private"], [20, "state"]]).tolist() == [1, 0]
        with pytest.raises(ValueError, match="x0: expected numbers"):
            fitted.predict([["sixty", "private"]])
    with pytest.raises(ValueError, match="x0: expected numbers"):
        fitted.fit([["sixty", "private"], *rows], [1, *target])


def test_names_in_another_order_than_in_fit_are_refused_as_in_scikit_learn() -> None:
    frame = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0) % 2})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = LocallyPrivateClassifier(15.0, ranges={"a": (0, 40), "b": (0, 1)}).fit(frame, np.arange(40) > 20)
    with pytest.raises(ValueError, match="same order"):
        fitted.predict(frame[["b", "a"]])


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "explain"])
def test_a_model_that_was_not_shown_to_beat_a_guess_warns_where_it_is_asked(method: str) -> None:
    doubtful = PublishedClassifier(evolve(MODEL, shown=False, chance=0.4).to_json()).fit()
    with pytest.warns(NotShownWarning, match="did not show") as caught:
        getattr(doubtful, method)(ROWS)
    assert len(caught) == 1 and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(PUBLISHED, method)(ROWS)
        assert PUBLISHED.predict(ROWS).tolist() == [1, 0]


def test_a_published_model_is_loaded_from_its_file(tmp_path: Path) -> None:
    """The three lines of docs/estimator.md, and one person by name."""
    file = tmp_path / "model.json"
    file.write_text(MODEL.to_json())
    assert anonml.PublishedClassifier.load(str(file)).predict_proba(ROWS)[:, 1].tolist() == pytest.approx(
        [0.750260, 0.249740], abs=1e-6
    )
    one = anonml.load_model(str(file))
    assert one.predict({"hours": 60, "work": "private"}).positive is True
    for wrong in ([60, "private"], (60,), 60):
        with pytest.raises(TypeError, match=r"by feature name, as \{'hours': ..., 'work': ...\}, got"):
            one.predict(wrong)  # type: ignore[arg-type]
    with pytest.raises(Malformed, match="name a model"):
        PublishedClassifier.load(tmp_path / "none.json")
