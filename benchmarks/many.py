"""How well exact sums over many records learn: a9a, held by five members, through a study's own code.

    python -m benchmarks.many --data DIR [--trials 20] [--parts moments gradient]

DIR holds a9a_train and a9a_test (.csv.gz). Five members hold all rows, a fifth each, and the unit is a record. Goals,
test error: ridge regression from one round at most 0.165 at epsilon 1 and 0.19 at 0.1, logistic regression in 60 rounds
at most 0.158 at epsilon 1, with the noise of one teller. That of two stands beside it. Majority is 0.236. Each epsilon
is central at delta 1e-6, replace-one.

A study file is resolved to a manifest. Each member's rows are imported, evaluated in the sandbox and become the vector
of the peer's part of the protocol. Noise is drawn as tellers draw it, from the operating system. The model is that of
the aggregator's part. One thing is faster than in a study: gradients are summed by numpy. In some rounds all members'
own vectors are made too, and must be equal. Shares and proofs are left out: they change no sum.

Prints a table, writes benchmarks/out/many.json, and fails where a goal is missed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import sys
import tempfile
import time
from math import sqrt
from pathlib import Path

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aggregator.protocols.sum.part import LearnedLinear, learned_from
from anon.crypto.sealing import PUBLIC_KEY_SIZE
from anon.noise.discrete_gaussian import DiscreteGaussian
from anon.noise.scaling import shrunk
from anon.protocols.contract import Record
from anon.protocols.models.linear import LinearModel
from anon.protocols.registry import check_study
from anon.protocols.resolve import StudyKeys, resolve
from anon.protocols.sum.design import GRADIENT, SCALE, shape_of
from anon.protocols.sum.standing import RoundSum, arrangement_of, standing_after
from anon.protocols.sum.vector import vector_of
from anon.protocols.vectors.gradient import WEIGHT, GradientSums
from anon.sharing.drafts import drafted
from anon.study.manifest import Manifest
from benchmarks.data import data_folder
from benchmarks.figures import Figure, publish
from examples.protocols import PROTOCOLS
from peer.data.evaluate import evaluated
from peer.data.importing import import_rows

Integers = NDArray[np.int64]

MEMBERS, ROUNDS = 5, 60
TARGET = 2
"""The reach of the label beside that of a feature, 1."""
NORM = 0.386
"""Of a record with 14 features, the constant and the label: 19 of the 128 of all columns."""
DESIGNS = {
    "moments": f'kind = "moments"\nreach = 1\ntarget_weight = {TARGET}\nnorm = {NORM}\n',
    "gradient": f'kind = "gradient"\nrounds = {ROUNDS}\nstep = 2.0\nmomentum = 0.9\nclip = 1.0\nlast = 20\n',
}
GOALS = {("moments", "1"): 0.165, ("moments", "0.1"): 0.19, ("gradient", "1"): 0.158}
TOKEN, PER_PACKET = 832, 32
"""Bytes of a token for one packet, and of each further packet of a member."""


@frozen(eq=False)
class Rows:
    """a9a: features 0 or 1 (rows, 123) and labels -1 or +1."""

    features: Integers
    labels: Integers

    @staticmethod
    def of(path: Path) -> Rows:
        """Read a file with a header line that names the label y."""
        with gzip.open(path, "rt") as file:
            names = next(csv.reader(file))
            table = np.loadtxt(file, delimiter=",", dtype=np.int64)
        at = names.index("y")
        return Rows(np.delete(table, at, axis=1), table[:, at])

    def error(self, model: LinearModel) -> float:
        """The share of rows on whose label the model is wrong. Some rows are also predicted one by one."""
        scores = model.intercept + self.features @ np.array(model.weights)
        for at in range(0, len(self.labels), 1609):
            values = {f"f{place}": float(value) for place, value in enumerate(self.features[at])}
            assert (model.predict(values).probability > 0.5) == (scores[at] > 0)
        return float(np.mean(np.where(scores > 0, 1, -1) != self.labels))


def study(design: str, epsilon: str, rows: int, columns: int) -> Manifest:
    """The manifest of five members with at most a fifth of the rows each. A range from -1 to 1 leaves 0 in its middle.
    """
    names = [f"f{at}" for at in range(columns)]
    head = (
        'version = 1\nprotocol = "sum"\ntitle = "a9a"\npurpose = "To measure."\ncontact = "staff"\nrecords = "many"\n'
        f'most_records = {-(-rows // MEMBERS)}\nunit = "record"\n[tables]\nheld = ["number", "y", '
        + ", ".join(f'"{name}"' for name in names)
        + ']\n[label]\nname = "y"\ndescription = "Income."\nquery = "SELECT number, y FROM held"\npositive = [1]\n'
        'negative = [-1]\nmissing = "negative"\n'
    )
    features = "".join(
        f'[[features]]\nname = "{name}"\nkind = "numeric"\ndescription = "{name}"\n'
        f'query = "SELECT number, {name} FROM held"\nrange = [-1, 1]\ncuts = [0]\nmissing = "own"\n'
        for name in names
    )
    rest = f"[design]\nepsilon = {epsilon}\n{DESIGNS[design]}"
    rest += '[schedule]\nenrol = "1h"\nsettle = "10m"\ncollect = "1h"\n[cohort]\nminimum = 5\n'
    tellers = (("clinic", 9001), ("students", 9002))
    rest += "".join(f'[[tellers]]\nname = "{name}"\naddress = "127.0.0.1:{port}"\n' for name, port in tellers)
    keys = StudyKeys(bytes(32), bytes(PUBLIC_KEY_SIZE), bytes(96), bytes(32))
    found = resolve(drafted(PROTOCOLS.proposal(head + features + rest)), keys, 1_800_000_000)
    check_study(found)
    return found


def members(manifest: Manifest, train: Rows, folder: Path) -> list[Record]:
    """Each member's records, imported and evaluated in the sandbox."""
    found = []
    for member in range(MEMBERS):
        chosen = slice(member, None, MEMBERS)
        table = np.column_stack([np.arange(len(train.labels))[chosen], train.labels[chosen], train.features[chosen]])
        columns = ("number", "y", *(f"f{at}" for at in range(train.features.shape[1])))
        file = folder / f"member {member}.sqlite"
        if not file.exists():
            import_rows(file, "held", columns, [tuple(row) for row in table.tolist()], durable=False)
        record = evaluated(manifest, file, 600.0, os.urandom(32)).record
        assert len(record.rows) == len(table)
        found.append(record)
    return found


def noisy(manifest: Manifest, exact: Integers, number: int, tellers: int) -> RoundSum:
    """A round's sum with the noise of so many tellers, as they draw it."""
    sigma_squared = arrangement_of(manifest).sums[number].sigma_squared
    noise = DiscreteGaussian(sigma_squared)
    total: Integers = exact + sum(np.array(noise.vector(len(exact), os.urandom)) for _ in range(tellers))
    return RoundSum(tuple(int(value) for value in total), MEMBERS, sigma_squared * tellers)


def model_of(manifest: Manifest, sums: list[RoundSum]) -> LinearModel:
    """The model of the aggregator's part."""
    learned = learned_from(manifest, sums)
    assert isinstance(learned, LearnedLinear)
    return learned.model


def own_sum(manifest: Manifest, held: list[Record], number: int, weights: tuple[int, ...]) -> Integers:
    """The exact sum of all members' vectors, by the peers' own code."""
    survey = manifest.survey(number)
    vectors = [np.array(vector_of(manifest, survey, record, weights), dtype=np.int64) for record in held]
    found: Integers = np.sum(vectors, axis=0, dtype=np.int64)
    return found


def fast_sum(design: GradientSums, train: Rows, weights: tuple[int, ...]) -> Integers:
    """The same of gradients: a row's is its error, rounded and clipped, times its ones and the constant."""
    table = np.column_stack([np.ones(len(train.labels), dtype=np.int64), train.features])
    log_odds = table @ np.array(weights, dtype=np.int64) / WEIGHT
    chance = np.where(log_odds >= 0, 1 / (1 + np.exp(-np.abs(log_odds))), 0.0)
    small = np.exp(-np.abs(log_odds))
    chance = np.where(log_odds >= 0, chance, small / (1 + small))
    scaled = np.rint((chance - (train.labels > 0)) * design.scale).astype(np.int64)
    ones = table.sum(axis=1)
    for at in np.flatnonzero(scaled**2 * ones > design.scaling.norm_squared):
        scaled[at] = shrunk([int(scaled[at])] * int(ones[at]), design.scaling.norm_squared)[0]
    return np.append(scaled @ table, len(train.labels) * design.scale)


def row_of(part: str, epsilon: str, tellers: int, found: list[float], manifest: Manifest) -> Figure:
    """One row of the table. `spread`: the standard deviation over trials."""
    one, packets = arrangement_of(manifest).sums[0], len(manifest.slots)
    return {
        "part": part, "epsilon": epsilon, "tellers": tellers, "trials": len(found),
        "error": round(float(np.mean(found)), 4), "spread": round(float(np.std(found)), 4),
        "worst": round(max(found), 4), "goal": GOALS.get((part, epsilon)) if tellers == 1 else None,
        "entries": manifest.surveys[0].m, "sigma": round(sqrt(one.sigma_squared), 1), "proof": str(one.parameters),
        "N": packets, "token_bytes": TOKEN + PER_PACKET * (packets - 1),
    }  # fmt: skip


def moments(train: Rows, test: Rows, trials: int, folder: Path) -> list[Figure]:
    """Ridge regression of the label from one noisy sum."""
    rows, exact = list[Figure](), None
    for epsilon in ("1", "0.1"):
        manifest = study("moments", epsilon, *train.features.shape)
        if exact is None:
            exact = own_sum(manifest, members(manifest, train, folder), 0, ())
        for tellers in (1, 2):
            sums = ([noisy(manifest, exact, 0, tellers)] for _ in range(trials))
            found = [test.error(model_of(manifest, one)) for one in sums]
            rows.append(row_of("moments", epsilon, tellers, found, manifest))
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def gradient(train: Rows, test: Rows, trials: int, folder: Path, checked: set[int]) -> list[Figure]:
    """Logistic regression in rounds. In the checked rounds of the first trial the members' own vectors are made."""
    manifest = study("gradient", "1", *train.features.shape)
    assert manifest.surveys[0].kind == GRADIENT
    held, rows = members(manifest, train, folder), list[Figure]()
    design = shape_of(manifest.surveys[0])
    assert isinstance(design, GradientSums) and design.scale == SCALE
    for tellers in (1, 2):
        found = []
        for trial in range(trials):
            sums = list[RoundSum]()
            for number in range(ROUNDS):
                weights = standing_after(manifest, sums).weights
                exact = fast_sum(design, train, weights)
                if not trial and number in checked:
                    assert (own_sum(manifest, held, number, weights) == exact).all()
                sums.append(noisy(manifest, exact, number, tellers))
            found.append(test.error(model_of(manifest, sums)))
        rows.append(row_of("gradient", "1", tellers, found, manifest))
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def main() -> int:
    """Measure; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description="How well exact sums over many records learn.")
    parser.add_argument("--data", type=data_folder, required=True)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--parts", nargs="+", default=["moments", "gradient"], choices=["moments", "gradient"])
    parser.add_argument("--checked", nargs="*", type=int, default=[0, ROUNDS // 2, ROUNDS - 1], help="rounds")
    options = parser.parse_args()
    start, rows = time.process_time(), list[Figure]()
    train, test = (Rows.of(options.data / f"a9a_{part}.csv.gz") for part in ("train", "test"))
    with tempfile.TemporaryDirectory() as folder:
        if "moments" in options.parts:
            rows += moments(train, test, options.trials, Path(folder))
        if "gradient" in options.parts:
            rows += gradient(train, test, max(options.trials // 4, 5), Path(folder), {*options.checked})
    majority = round(float(np.mean(test.labels > 0)), 4)
    publish("many", rows, {"majority": majority, "members": MEMBERS, "cpu_seconds": round(time.process_time() - start)})
    return int(any(float(str(row["error"])) > float(str(row["goal"] or 1)) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
