"""Local prediction with a model of single records: for each row of a file, and never for a person of several."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from anon.errors import Malformed, Refused
from anon.protocols.models.linear import LinearModel
from anon.protocols.sum.design import column_of
from peer.predict import predict_own, predict_people, unfit
from tests.support.protocols import read_model
from tests.support.sums import MOMENTS, manifest_of, many

STUDY = manifest_of(MOMENTS, keys=many(6))
MODEL = LinearModel(
    "00" * 32, "Sleep", STUDY.label, STUDY.features, tuple(map(column_of, STUDY.features)), (0.5, -2.0), 0.25, many=True
)


def file_of(folder: Path, *rows: str) -> Path:
    path = folder / "people.csv"
    path.write_text("\n".join(("day,age,sleep,cups,tired", *rows)) + "\n", "utf-8")
    return path


def test_a_model_says_that_it_is_of_single_records() -> None:
    assert read_model(MODEL.to_json()) == MODEL and '"many":true' in MODEL.to_json()
    assert "many" not in evolve(MODEL, many=False).to_json()


def test_each_row_is_a_record(tmp_path: Path) -> None:
    found = list(predict_people(MODEL, file_of(tmp_path, "1,100,12,x,", "1,0,0,x,", "3,,,x,1", ",100,12,x,"), None, 0))
    values = [{"age": 100.0, "sleep": 12.0}, {"age": 0.0, "sleep": 0.0}, {}, {}]
    assert [one.probability for one in found] == [MODEL.predict(one).probability for one in values]  # type: ignore[arg-type]
    assert len({one.probability for one in found}) == 3


def test_people_of_several_records_are_refused_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="leave --person out"):
        list(predict_people(MODEL, file_of(tmp_path, "1,100,12,x,1"), "cups", 0))
    with pytest.raises(Refused, match="--people"):
        predict_own(MODEL, tmp_path / "data.sqlite", 0)


def test_columns_that_are_not_there_are_named(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("day,age\n1,5\n", "utf-8")
    with pytest.raises(Malformed, match="sleep"):
        list(predict_people(MODEL, path, None, 0))
    assert len(unfit(MODEL, tmp_path / "none.sqlite")) == 2
