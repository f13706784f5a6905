"""Activities of phones' owners, and malicious addresses: `transfer` where rows are few, and among six classes.

Activities: 10,299 windows of 64 samples of acceleration at 50 Hz, six classes, 30 subjects. Windows of the training
part's 21 subjects are dealt out to 1,000 users, 6 each; the 1,352 left over are public. Subjects of the test part are
others. Features of time and frequency are standardised by the public rows, and projected to the public rows' first 50
principal components. With a constant they are scaled to norm 1.

A vote among classes is 1 at one class. s has an entry for each column and class, the mean over rows of votes times x.
One party in another's place changes on each row, of norm 1, at most two classes' votes, one by 1 and one by -1. So it
moves the mean over M parties by at most the root of 2, over M: attained where all rows are alike.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from attrs import evolve, frozen

from benchmarks.figures import Figure
from benchmarks.parties.modes import Crowd, Scored, measured, row_of
from benchmarks.parties.noise import Array, chance
from benchmarks.parties.solving import BINARY, CLASSES, Loss, own_models, published

WINDOWS, ADDRESSES = "har_smartphone_acc_50hz.csv.gz", "malicious_url_sample.svm.gz"
WINDOW, HERTZ, COMPONENTS = 64, 50, 50
FURTHEST, BATCH_STRENGTH = 5.0, 0.0001
_ORDER = 20
LAGS = (1, 2, 4, 8, 16)


@frozen(eq=False)
class Task:
    """Rows (n, columns) with labels, which are public, of parties one after the other, and of the test.

    `records`: of a party. `strength`: lambda of a party's own model.
    """

    name: str
    loss: Loss
    rows: Array
    labels: Array
    public: Array
    private: Array
    test: Array
    records: int
    strength: float

    @property
    def votes(self) -> Array:
        """Each row's label as a vote."""
        if self.loss is BINARY:
            return self.labels[:, None] - 0.5
        found: Array = np.eye(int(self.labels.max()) + 1)[self.labels]
        return found

    def crowd(self, private: Array, public: Array, test: Array) -> tuple[Crowd, Array]:
        """The parties' votes on the public rows, and their own models."""
        held = private[: len(private) // self.records * self.records].reshape(-1, self.records)
        own = own_models(self.loss, self.rows[held], self.votes[held], self.strength)
        scores = np.einsum("nd,mdk->nmk", self.rows[public], own)
        cast = np.where(scores > 0, 0.5, -0.5) if self.loss is BINARY else np.eye(scores.shape[2])[scores.argmax(2)]
        given = Scored(self.rows[test], self.labels[test], np.full(len(test), 1 / len(test)))
        weights = np.full(len(public), 1 / len(public))
        return Crowd(self.loss, self.rows[public], weights, cast.mean(axis=1), len(held), given), own

    def figures(self, draws: int) -> Iterator[Figure]:
        """The baselines' rows and those of all modes. A rehearsal gives half of the public rows to parties."""
        crowd, own = self.crowd(self.private, self.public, self.test)
        half = len(self.public) // 2
        practice, _own = self.crowd(self.public[:half], self.public[half:], self.public[half:])
        sums = (self.rows[self.private].T @ self.votes[self.private] / len(self.private))[None]
        weights = np.full(len(self.private), 1 / len(self.private))
        batch = published(self.loss, self.rows[self.private], weights, sums, BATCH_STRENGTH)
        counts = np.bincount(self.labels[self.test])
        for mode, found in (
            ("batch", crowd.scored.accuracy(self.loss, batch)),
            ("indiv", crowd.scored.accuracy(self.loss, own)),
            ("majority", np.array([counts.max() / counts.sum()])),
        ):
            yield {"task": self.name, **row_of(crowd.parties, mode, None, None, None, found)}
        for row in measured(crowd, practice, draws, rehearsed=5 * draws):
            yield {"task": self.name, **row}


def activities(path: Path) -> Task:
    """Read the windows and make the task."""
    with gzip.open(path, "rt") as file:
        lines = list(csv.DictReader(file))
    windows = np.array([[line[f"acc{axis}"] for axis in "xyz"] for line in lines], dtype=float)
    heads = lines[::WINDOW]
    names = sorted({head["activity"] for head in heads})
    labels = np.array([names.index(head["activity"]) for head in heads])
    tested = np.array([head["split"] == "test" for head in heads])
    order = np.flatnonzero(~tested)[chance(_ORDER).permutation(int(np.sum(~tested)))]
    private, public = order[:6_000], order[6_000:]
    rows = components(features(windows.reshape(-1, WINDOW, 3)), public)
    return Task("activity", CLASSES, rows, labels, public, private, np.flatnonzero(tested), 6, 0.01)


def features(windows: Array) -> Array:
    """Features of time and frequency (windows, columns) of windows of samples of three axes."""
    size = np.linalg.norm(windows, axis=2, keepdims=True)
    signal = np.concatenate([windows, size], axis=2)
    found = [_of_time(signal), _of_time(np.diff(signal, axis=1) * HERTZ)]
    centred = signal - signal.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(centred * np.hanning(WINDOW)[:, None], axis=1))[:, 1:] ** 2
    shares = power / (power.sum(axis=1, keepdims=True) + 1e-9)
    pitch = np.einsum("nfc,f->nc", shares, np.arange(power.shape[1]))
    found += [np.log1p(power[:, :16]).reshape(len(power), -1), pitch, -(shares * np.log(shares + 1e-12)).sum(axis=1)]
    spread = centred.std(axis=1)
    for one in range(4):
        for other in range(one):
            product = (centred[..., one] * centred[..., other]).mean(axis=1)
            found.append((product / (spread[:, one] * spread[:, other] + 1e-6))[:, None])
    lean = windows.mean(axis=1)
    lean /= np.linalg.norm(lean, axis=1, keepdims=True)
    return np.concatenate([*found, lean, np.arctan2(lean[:, [1]], lean[:, [2]])], axis=1)


def _of_time(signal: Array) -> Array:
    mean = signal.mean(axis=1)
    centred = signal - mean[:, None]
    parts = np.quantile(signal, (0.1, 0.25, 0.5, 0.75, 0.9), axis=1)
    ends = [signal.min(axis=1), signal.max(axis=1), *parts, parts[3] - parts[1]]
    power = (centred**2).mean(axis=1)
    again = [(centred[:, lag:] * centred[:, :-lag]).mean(axis=1) / (power + 1e-6) for lag in LAGS]
    crossed = (np.sign(centred[:, 1:]) != np.sign(centred[:, :-1])).mean(axis=1)
    apart = np.abs(centred).mean(axis=1)
    return np.concatenate([mean, np.sqrt(power), apart, np.log1p(power), crossed, *ends, *again], axis=1)


def components(table: Array, public: Array, most: int = COMPONENTS) -> Array:
    """The first principal components of the public rows, each divided by the root of its spread; and a constant."""
    spread = table[public].std(axis=0)
    scaled = np.clip((table - table[public].mean(axis=0)) / np.where(spread > 0, spread, 1), -FURTHEST, FURTHEST)
    scaled -= scaled[public].mean(axis=0)
    _left, sizes, axes = np.linalg.svd(scaled[public], full_matrices=False)
    kept = scaled @ axes[:most].T / np.sqrt(sizes[:most])
    kept /= np.sqrt((kept[public] ** 2).sum(axis=1).mean())
    whole = np.column_stack([kept, np.full(len(kept), 0.5)])
    rows: Array = whole / np.linalg.norm(whole, axis=1, keepdims=True)
    return rows


def addresses(path: Path) -> Task:
    """Malicious addresses: 9 a party of days 0 to 3, 200 public ones of those days, and the test of days 4 and 5."""
    days, labels, cells = [], [], []
    with gzip.open(path, "rt") as file:
        for line in file:
            if line.startswith("#"):
                day = int(line.split()[-1])
            elif line.strip():
                label, *rest = line.split()
                days.append(day)
                labels.append(int(label) > 0)
                cells.append([cell.split(":") for cell in rest])
    columns = {name: at for at, name in enumerate(sorted({name for row in cells for name, _value in row}))}
    table = np.zeros((len(cells), len(columns)))
    for at, row in enumerate(cells):
        table[at, [columns[name] for name, _value in row]] = [float(value) for _name, value in row]
    early = np.flatnonzero(np.array(days) < 4)
    order = early[chance(_ORDER).permutation(len(early))]
    public, private, test = order[:200], order[200:], np.flatnonzero(np.array(days) >= 4)
    rows = components(table, public)
    task = Task("addresses", BINARY, rows, np.array(labels, dtype=int), public, private, test, 9, 0.01)
    return evolve(task, private=private[: len(private) // 9 * 9])
