"""How far the estimator's probabilities are from what happens, on Adult at epsilon 1.

    python -m benchmarks.calibration --data FOLDER [--epsilon 1] [--trials 20]

FOLDER holds adult_train.csv.gz and adult_test.csv.gz. Each trial fits `LocallyPrivateClassifier` on the train part with
ranges and categories read from public knowledge of the census where stated below, else from the data, and predicts the
test part. Expected calibration error: people in 10 (and 15) parts of equal size by predicted probability, |mean
prediction - share of positives| averaged over people. Goal: the mean over trials below 0.05 in both. Prints a table,
writes benchmarks/out/calibration.json, and fails where the goal is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aggregator.estimator.classifier import LocallyPrivateClassifier, NotShownWarning, PrivacyLeakWarning
from aggregator.lab.simulation.csv_file import read_columns
from aggregator.lab.simulation.evaluation import roc_auc
from aggregator.protocols.additive.reconstruct import Floats
from anon.tables.streams import Cell
from benchmarks.data import data_folder
from benchmarks.figures import Figure, publish

GOAL = 0.05
COLUMNS = (
    "age", "workclass", "education_num", "marital_status", "relationship", "race", "sex", "capital_gain",
    "capital_loss", "hours_per_week", "native_country",
)  # fmt: skip
RANGES = {"age": (17, 90), "education_num": (1, 16), "hours_per_week": (1, 99)}


def expected_error(predicted: Floats, positive: NDArray[np.bool_], parts: int) -> float:
    """Over `parts` parts of equal size by predicted probability; each person weighs the same."""
    order = np.argsort(predicted, kind="stable")
    gaps = [abs(float(np.sum(predicted[one] - positive[one]))) for one in np.array_split(order, parts)]
    return sum(gaps) / len(predicted)


def read(path: Path) -> tuple[NDArray[np.object_], NDArray[np.bool_]]:
    """The eleven census columns, with missing values as None, and who earns more than 50,000 dollars."""
    columns = read_columns(path)
    cells: list[list[Cell]] = [[None if cell == "?" else cell for cell in columns[name]] for name in COLUMNS]
    table = np.array(cells, dtype=object).T
    return table, np.array([str(cell).startswith(">50K") for cell in columns["income"]])


def measure(
    epsilon: float, trials: int, train: tuple[NDArray[np.object_], NDArray[np.bool_]],
    test: tuple[NDArray[np.object_], NDArray[np.bool_]],
) -> Figure:  # fmt: skip
    """One row: means over trials, and how single trials spread."""
    ranges = {COLUMNS.index(name): limits for name, limits in RANGES.items()}
    errors: dict[int, list[float]] = {10: [], 15: []}
    aucs, start = [], time.process_time()
    for seed in range(trials):
        learned = LocallyPrivateClassifier(epsilon, ranges=ranges, random_state=seed).fit(*train)
        predicted = learned.predict_proba(test[0])[:, 1]
        aucs.append(roc_auc(predicted, test[1]))
        for parts, found in errors.items():
            found.append(expected_error(predicted, test[1], parts))
    row: Figure = {"epsilon": epsilon, "trials": trials, "auc_mean": round(float(np.mean(aucs)), 4)}
    for parts, found in errors.items():
        row[f"ece_{parts}_mean"] = round(float(np.mean(found)), 4)
        row[f"ece_{parts}_sd"] = round(float(np.std(found, ddof=1)), 4)
        row[f"ece_{parts}_max"] = round(float(np.max(found)), 4)
    return row | {"cpu_seconds": round(time.process_time() - start, 1)}


def main() -> int:
    """Measure; 1 if the goal is missed at epsilon 1."""
    parser = argparse.ArgumentParser(description="Calibration of the estimator's probabilities on Adult.")
    parser.add_argument("--data", type=data_folder, required=True)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--trials", type=int, default=20)
    options = parser.parse_args()
    if options.trials < 2:
        parser.error("--trials: expected at least 2")
    warnings.simplefilter("ignore", PrivacyLeakWarning)
    warnings.simplefilter("ignore", NotShownWarning)
    train, test = (read(options.data / f"adult_{part}.csv.gz") for part in ("train", "test"))
    rows = [measure(epsilon, options.trials, train, test) for epsilon in options.epsilon]
    publish("calibration", rows, {"goal": GOAL, "people": len(train[1]), "scored": len(test[1])})
    asked = [row for row in rows if row["epsilon"] == 1.0]
    return 1 if any(float(row[key] or 0) >= GOAL for row in asked for key in ("ece_10_mean", "ece_15_mean")) else 0


if __name__ == "__main__":
    sys.exit(main())
