"""The benchmark of declared directions: its declarations fit their studies, and a further run goes on from kept
trials."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from benchmarks.declared import ADULT, SETS, DataSet
from benchmarks.directions import SIGNS, Cell, measure, people_of, rule_auc, signs_of, study_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("of", SETS, ids=lambda of: str(of.name))
def test_every_declaration_fits_its_feature(of: DataSet) -> None:
    """Also turned around. The features of the study check signs and cuts themselves."""
    for cuts in (False, True):
        study = study_of(of, cuts)
        for around in (False, True):
            signs = signs_of(of, np.full(len(of.columns), around))
            told = [evolve(feature, expects=own) for feature, own in zip(study.features, signs, strict=True)]
            assert [one.expects for one in told] == list(signs)
        assert (study.binned == ()) == cuts
    assert all(column.reason.endswith(".") for column in of.columns)
    assert any(signs_of(of, np.zeros(len(of.columns), dtype=bool)))


def _written(folder: Path, rows: int) -> None:
    """Adult's two files, made up: those who work long hours earn more."""
    generator = np.random.default_rng(1)
    for name in ADULT.files:
        with gzip.open(folder / name, "wt", newline="") as file:
            writer = csv.DictWriter(file, [*(column.name for column in ADULT.columns), "income"])
            writer.writeheader()
            for _ in range(rows):
                hours = int(generator.integers(10, 80))
                cells = {column.name: "0" if not column.categories else "?" for column in ADULT.columns}
                rich = generator.random() < hours / 100
                writer.writerow(
                    cells | {"age": "40", "hours-per-week": str(hours), "income": ">50K" if rich else "<=50K"}
                )


def test_a_further_run_goes_on_from_kept_trials(tmp_path: Path) -> None:
    _written(tmp_path, 600)
    data, kept = people_of(ADULT, tmp_path), tmp_path / "trials.jsonl"
    cell = Cell(ADULT, 300, 2.0, True, False)
    first = measure(cell, data, 2, kept)
    lines = kept.read_text().splitlines()
    assert [json.loads(line)["trial"] for line in lines] == [0, 1]
    more = measure(cell, data, 3, kept)
    assert kept.read_text().splitlines()[:2] == lines and len(kept.read_text().splitlines()) == 3
    kept.write_text(lines[1] + "\n")
    assert measure(cell, data, 2, kept) == first, "a trial's chance depends on its cell and number alone"
    assert more["trials"] == 3 and {*SIGNS} <= {*more}


def test_what_asks_nobody_ranks(tmp_path: Path) -> None:
    _written(tmp_path, 600)
    assert rule_auc(ADULT, people_of(ADULT, tmp_path)[1]) > 0.6
