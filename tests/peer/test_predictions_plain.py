"""The CSV of predictions names people as their log does, and a spreadsheet program computes none of it."""

from __future__ import annotations

import csv
from pathlib import Path

from peer.predict import Prediction, write_predictions


def test_a_name_out_of_a_log_is_no_formula_among_predictions(tmp_path: Path) -> None:
    made = [Prediction("=cmd", 0.5, 0.5, True, ()), Prediction("ann", 0.25, 0.5, False, ())]
    assert write_predictions(iter(made), tmp_path / "out.csv") == 2
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as stream:
        assert [row[0] for row in csv.reader(stream)] == ["who", "'=cmd", "ann"]
