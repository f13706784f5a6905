"""The benchmark of parties with many records: its minima, its sensitivities, and its page from tiny files."""

from __future__ import annotations

import gzip
from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from benchmarks.figures import Figure
from benchmarks.parties import __main__ as program
from benchmarks.parties import activity, averaging, modes, network
from benchmarks.parties.modes import Crowd, Scored
from benchmarks.parties.noise import Array, chance, deviation, radial
from benchmarks.parties.solving import BINARY, CLASSES, Loss, newton, own_models, published


def rows_and_labels(count: int, columns: int = 4) -> tuple[Array, Array]:
    """Rows of norm 1 whose first column goes with the label, -1 or 1."""
    generator = chance(count, columns)
    labels = np.where(generator.random(count) < 0.4, 1.0, -1.0)
    rows = generator.standard_normal((count, columns)) + np.eye(columns)[0] * labels[:, None]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True), labels


def crowd(loss: Loss, votes: Array) -> Crowd:
    """Three parties' mean votes on five public rows that are alike."""
    rows = np.tile([0.6, 0.8], (5, 1))
    weights = np.full(5, 0.2)
    return Crowd(loss, rows, weights, votes, 3, Scored(rows, np.zeros(5), weights))


def test_numpys_minimum_is_that_of_the_peers_own_solver() -> None:
    assert averaging.agrees(averaging.Table(*rows_and_labels(80))) < 1e-6


def test_many_parties_at_once_find_what_one_finds() -> None:
    rows, labels = rows_and_labels(60)
    found = own_models(BINARY, rows.reshape(6, 10, -1), labels.reshape(6, 10, 1) / 2, 0.05)
    for party in range(6):
        part = slice(10 * party, 10 * party + 10)
        assert found[party, :, 0] == pytest.approx(newton(rows[part], labels[part], 0.05), abs=1e-6)


def test_a_model_from_s_is_that_of_the_votes_as_labels() -> None:
    rows, labels = rows_and_labels(50)
    sums = (rows.T @ labels / 2 / 50)[None, :, None]
    found = published(BINARY, rows, np.full(50, 1 / 50), sums, 0.01)
    assert found[0, :, 0] == pytest.approx(newton(rows, labels, 0.01), abs=1e-3)


def test_two_classes_are_the_binary_loss() -> None:
    """The difference of both classes' weights is the binary model, at half its lambda."""
    rows, labels = rows_and_labels(50)
    weights, votes = np.full(50, 1 / 50), np.stack([labels < 0, labels > 0], axis=1) * 1.0
    classes = published(CLASSES, rows, weights, (rows.T @ votes / 50)[None], 0.02)
    binary = published(BINARY, rows, weights, (rows.T @ labels / 100)[None, :, None], 0.01)
    assert classes[0, :, 1] - classes[0, :, 0] == pytest.approx(binary[0, :, 0], abs=1e-3)


def test_one_party_moves_s_by_what_the_noise_is_for() -> None:
    """Attained where it turns every vote on rows that are alike, of norm 1."""
    no, yes = (crowd(BINARY, np.full((5, 1), share - 0.5)) for share in (0, 1 / 3))
    moved = np.linalg.norm(yes.sums(yes.votes) - no.sums(no.votes))
    assert moved == pytest.approx(sqrt(BINARY.moved) / 3)
    first, second = (crowd(CLASSES, np.tile(shares, (5, 1))) for shares in ([1, 0, 0], [2 / 3, 1 / 3, 0]))
    moved = np.linalg.norm(first.sums(first.votes) - second.sums(second.votes))
    assert moved == pytest.approx(sqrt(CLASSES.moved) / 3)


def test_without_noise_two_modes_are_one() -> None:
    """The third hears the majority alone."""
    one = crowd(BINARY, np.full((5, 1), 0.1))
    nothing = np.zeros((2, 2, 1))
    statistic, soft, vote = (one.models(mode, 0.1, nothing) for mode in modes.MODES)
    assert statistic == pytest.approx(soft, abs=1e-5) and (vote[0] > statistic[0]).all()


@pytest.mark.slow
def test_noise_has_the_stated_length() -> None:
    """A Gamma(d, 1) radius has mean d, and the Gaussian's sigma is a little above the root of 2 log(1 / delta)."""
    lengths = np.linalg.norm(radial(chance(1), 4_000, 20), axis=1)
    assert lengths.mean() == pytest.approx(20, abs=5 * sqrt(20 / 4_000))
    one, two = deviation(20, "1"), deviation(20, "1", 2)
    assert 4 < one < 4.5 and two == pytest.approx(sqrt(2) * one, rel=0.01)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Two lambdas, one epsilon, and noise by a formula: a few seconds in place of minutes."""
    monkeypatch.setattr(program, "OUT", tmp_path)
    monkeypatch.setattr("benchmarks.figures.OUT", tmp_path)
    monkeypatch.setattr(averaging, "STRENGTHS", (Fraction(1), Fraction(1, 1000)))
    monkeypatch.setattr(averaging, "EPSILONS", ("1",))
    monkeypatch.setattr(averaging, "FIGURE_EPSILONS", ("0.1", "0.4"))
    monkeypatch.setattr(averaging, "sigma_of", lambda squared, _changed, epsilon: 4 * sqrt(squared) / float(epsilon))
    return tmp_path


def tiny_a9a(folder: Path) -> None:
    """Files with three columns, the first of which goes with the label."""
    for seed, name in enumerate(("train", "test")):
        rows, labels = rows_and_labels(400 + seed, 3)
        table = np.column_stack([labels, rows > 0]).astype(int)
        lines = [",".join(map(str, row)) for row in table]
        with gzip.open(folder / f"a9a_{name}.csv.gz", "wt") as file:
            file.write("\n".join(["y,f1,f2,f3", *lines]))


def test_averaging_from_files_to_the_page(quick: Path) -> None:
    tiny_a9a(quick)
    program.main(["--data", str(quick), "--output", str(quick / "page.md"), "--parts", "averaging", "--draws", "3"])
    found = program.kept()
    train, test = (averaging.Table.of(quick / f"a9a_{name}.csv.gz") for name in ("train", "test"))
    parties = averaging.Parties(train.take(chance(averaging._ORDER).permutation(400)), averaging.SPLITS[averaging.EVEN])
    strength = Fraction(1, 1000)
    error = test.errors(parties.weights(strength).mean(axis=0)[None])[0]
    free = found.one("averaging", noise="noise-free", shares=averaging.EVEN, **{"lambda": 0.001})
    assert free["error"] == pytest.approx(error, abs=1e-5) and parties.fewest == 80
    assert parties.width("printed", strength, "1") == pytest.approx(5 * parties.width("tight", strength, "1"), rel=1e-3)
    text = (quick / "page.md").read_text("utf-8")
    assert "`python -m benchmarks.parties --data FOLDER --parts averaging`" in text and "6 draws" in text
    assert "## Transfer" not in text and "When to choose which\n" not in text
    assert (quick / "results" / program.PICTURE).read_text("utf-8").count("<polyline") == 6


def tiny_network(folder: Path) -> Path:
    """Connections in which a number, and a text, tell an attack."""
    generator = chance(9)
    lines = ["duration,protocol_type,service,flag,count,label"]
    for _ in range(400):
        attack = generator.random() < 0.6
        text = ("icmp" if generator.random() < 0.8 else "tcp") if attack else "udp"
        number = int(generator.integers(3, 9) if attack else generator.integers(0, 5))
        lines.append(f"{int(generator.integers(4))},{text},http,SF,{number},{'smurf' if attack else 'normal'}")
    with gzip.open(folder / network.FILE, "wt") as file:
        file.write("\n".join(lines) + "\n")
    return folder / network.FILE


@pytest.mark.slow
def test_transfer_on_a_tiny_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PUBLIC", 200), ("REHEARSED", 88), ("PARTIES", (5,)), ("ALONE", 3)):
        monkeypatch.setattr(network, name, value)
    for name, value in (("EPSILONS", ("1",)), ("STRENGTHS", (0.01, 1.0))):
        monkeypatch.setattr(modes, name, value)
    data = network.Connections.of(tiny_network(tmp_path))
    assert np.linalg.norm(data.rows, axis=1) == pytest.approx(1, abs=1e-5)
    assert np.linalg.norm(data.columns, axis=1).max() <= 1 and data.rows.shape == data.columns.shape
    rows = list(network.figures(data, 4, (5,)))
    by_mode: dict[tuple[object, ...], Figure] = {(row["local"], row["mode"], row["noise"]): row for row in rows}
    for local in network.LOCAL:
        free = float(str(by_mode[local, "noise-free", None]["accuracy"]))
        assert free > 0.75 and all(by_mode[local, mode, "pure"]["trials"] == 4 for mode in modes.MODES)
    assert float(str(by_mode["", "batch", None]["accuracy"])) > float(str(by_mode["", "majority", None]["accuracy"]))
    assert {row["tested"] for row in rows} == {400 - 200 - 5 * network.RECORDS}
    many = evolve(data.crowd(5, data.order[200:], data.order[:200], data.order[310:], "logistic"), parties=10**9)
    silent = many.models("statistic", 0.01, np.ones((1, *many.sums(many.votes).shape[1:])))
    assert silent == pytest.approx(many.clean("statistic", 0.01), abs=1e-5)


def test_features_of_windows_tell_a_still_phone_from_a_shaken_one() -> None:
    generator = chance(7)
    still = np.tile([0.0, 0.0, 1.0], (30, activity.WINDOW, 1)) + generator.normal(0, 0.01, (30, activity.WINDOW, 3))
    shaken = still + np.sin(np.arange(activity.WINDOW) / 3)[None, :, None] * 0.5
    table = activity.features(np.concatenate([still, shaken]))
    rows = activity.components(table, np.arange(0, 60, 2), 5)
    assert np.isfinite(table).all() and rows.shape == (60, 6)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1)
    assert (rows[:30] @ rows[:30].mean(axis=0)).min() > (rows[30:] @ rows[:30].mean(axis=0)).max()
