"""ONNX and skops predict what the published model predicts, on values of every kind."""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from typer.testing import CliRunner

from aggregator.estimator.classifier import LocallyPrivateClassifier, PublishedClassifier
from aggregator.estimator.export import TRUSTED, from_skops, to_onnx, to_skops
from anon.errors import Malformed, Refused
from anon.protocols.models.tables import VERSION, Cuts, Model, ModelTable
from anon.study.features import Feature, Label
from anonml import application

pytestmark = pytest.mark.slow

FEATURES = (
    Feature("age", "numeric", "Your age.", "SELECT age FROM log", "own", range=(0.0, 100.0), bins=3),
    Feature("sex", "categorical", "Your sex.", "SELECT sex FROM log", "m", categories=("f", "m")),
    Feature("hours", "numeric", "Your hours.", "SELECT hours FROM log", 30.0, range=(10.0, 50.0), cuts=(20.0, 30.0)),
    Feature("town", "categorical", "Your town.", "SELECT town FROM log", "own", categories=("Łódź", "1", "2.5")),
    Feature("never_cut", "numeric", "Nothing.", "SELECT 1 FROM log", 0.5, range=(0.0, 1.0), bins=2),
)
SOFT = Model(
    version=VERSION,
    study="ab" * 32,
    title="Who leaves?",
    label=Label("left", "You left.", "SELECT left FROM log", (1,), (0,), "negative"),
    features=FEATURES,
    cuts=(Cuts("age", (20.1, 40.0)), Cuts("hours", (20.0, 30.0)), Cuts("never_cut", (0.5,))),
    ensemble="soft",
    classifier="soft",
    base_rate=0.2,
    threshold=0.35,
    tables=(
        ModelTable(("age",), (4,), 50, 0.5, 0.7, 0.5, (-1.0, 0.25, 1.0, 0.1), (0, 1, 1, 0)),
        ModelTable(
            ("sex", "age"),
            (2, 4),
            50,
            0.3,
            0.6,
            0.3,
            (0.0, 0.3, 0.1, 0.2, -0.5, 0.4, 0.7, 2.0),
            (0, 1, 1) + (0,) * 4 + (1,),
        ),
        ModelTable(("hours", "town"), (3, 4), 9, 0.3, 0.6, 0.4, tuple(np.linspace(-2, 2, 12).tolist()), (1, 0) * 6),
    ),
)
VOTE = evolve(SOFT, ensemble="vote", threshold=0.5)
WEIGHTLESS = evolve(VOTE, tables=tuple(evolve(table, weight=0.0) for table in VOTE.tables))
NO_TABLES = evolve(SOFT, tables=())
NO_CUTS = evolve(
    SOFT,
    features=(evolve(FEATURES[0], bins=2, missing=3.0),),
    cuts=(Cuts("age", ()),),
    tables=(ModelTable(("age",), (1,), 50, 0.5, 0.7, 0.5, (0.7,), (1,)),),
)
MODELS = {"soft": SOFT, "vote": VOTE, "weightless": WEIGHTLESS, "no tables": NO_TABLES, "no cuts": NO_CUTS}

AGES = (float("nan"), float("inf"), -float("inf"), -5.0, 0.0, 20.1, float(np.nextafter(20.1, 99)), 40.0, 41.0, 1e300)
SEXES = ("f", "m", "", "F", "anything")
HOURS = (float("nan"), 0.0, 20.0, 20.5, 30.0, 30.5, 99.0, -float("inf"))
TOWNS = ("Łódź", "1", "2.5", "", "Lodz", "1.0")
ROWS = [(*row, 0.25) for row in product(AGES, SEXES, HOURS, TOWNS)]


def _ours(model: Model) -> tuple[list[float], list[int]]:
    names = [feature.name for feature in FEATURES]
    found = [model.categories(dict(zip(names, row, strict=True))) for row in ROWS]
    return [model.probability(one) for one in found], [int(model.decide(one)) for one in found]


def _columns(model: Model) -> dict[str, np.ndarray]:
    kinds = {"numeric": np.float64, "categorical": object}
    names = [feature.name for feature in FEATURES]
    return {
        feature.name: np.array([[row[names.index(feature.name)]] for row in ROWS], dtype=kinds[feature.kind])
        for feature in model.features
    }


@pytest.mark.parametrize("name", MODELS)
def test_onnx_predicts_what_the_model_predicts(name: str) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed (extra: export)")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (extra: test)")
    model = MODELS[name]
    session = runtime.InferenceSession(to_onnx(model), providers=["CPUExecutionProvider"])
    labels, probabilities = session.run(["label", "probabilities"], _columns(model))
    expected, decided = _ours(model)
    assert len(set(decided)) == 2 or name in ("weightless", "no tables", "no cuts")
    np.testing.assert_allclose(probabilities[:, 1], expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-15)
    assert labels.tolist() == decided


def test_onnx_takes_one_row_and_says_what_it_is_about() -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed (extra: export)")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (extra: test)")
    written = to_onnx(SOFT)
    assert written == to_onnx(SOFT)
    session = runtime.InferenceSession(written, providers=["CPUExecutionProvider"])
    labels, probabilities = session.run(None, {name: cells[:1] for name, cells in _columns(SOFT).items()})
    assert labels.shape == (1,)
    assert probabilities.shape == (1, 2)
    about = {one.key: one.value for one in onnx.load_from_string(written).metadata_props}
    assert about == {"study": SOFT.study, "label": "left"}
    assert [one.name for one in session.get_inputs()] == [feature.name for feature in FEATURES]


def test_a_learned_model_goes_through_onnx() -> None:
    pytest.importorskip("onnx", reason="onnx is not installed (extra: export)")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (extra: test)")
    generator = np.random.default_rng(5)
    table = generator.normal(size=(3000, 2))
    table[::7, 0] = np.nan
    target = np.where(np.nan_to_num(table).sum(axis=1) > 0, "yes", "no")
    fitted = LocallyPrivateClassifier(4.0, ranges={0: (-3, 3), 1: (-3, 3)}, missing="own", random_state=0)
    fitted.fit(table, target)
    session = runtime.InferenceSession(to_onnx(fitted.model_), providers=["CPUExecutionProvider"])
    asked = {f"x{place}": table[:, [place]] for place in range(2)}
    labels, probabilities = session.run(["label", "probabilities"], asked)
    np.testing.assert_allclose(probabilities, fitted.predict_proba(table), atol=1e-12)
    assert fitted.classes_[labels].tolist() == fitted.predict(table).tolist()


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", MODELS)
def test_skops_predicts_what_the_model_predicts(name: str, tmp_path: Path) -> None:
    io = pytest.importorskip("skops.io", reason="skops is not installed (extra: export)")
    model = MODELS[name]
    to_skops(model, tmp_path / "model.skops")
    assert io.get_untrusted_types(file=tmp_path / "model.skops") == list(TRUSTED)
    loaded = from_skops(tmp_path / "model.skops")
    table = np.hstack([cells.astype(object) for cells in _columns(model).values()])
    finite = [
        place for place, row in enumerate(table) if not any(isinstance(one, float) and np.isinf(one) for one in row)
    ]
    expected, decided = _ours(model)
    assert loaded.model_ == model
    np.testing.assert_allclose(loaded.predict_proba(table[finite])[:, 1], np.array(expected)[finite], atol=1e-14)
    assert loaded.predict(table[finite]).tolist() == [decided[place] for place in finite]


def test_a_fitted_estimator_goes_through_skops(tmp_path: Path) -> None:
    io = pytest.importorskip("skops.io", reason="skops is not installed (extra: export)")
    table = np.random.default_rng(1).normal(size=(200, 2))
    fitted = LocallyPrivateClassifier(8.0, ranges={0: (-3, 3), 1: (-3, 3)}, random_state=0).fit(table, table[:, 0] > 0)
    io.dump(fitted, tmp_path / "fitted.skops")
    trusted = ["aggregator.estimator.classifier.LocallyPrivateClassifier"]
    assert io.get_untrusted_types(file=tmp_path / "fitted.skops") == trusted
    again = io.load(tmp_path / "fitted.skops", trusted=trusted)
    assert again.predict_proba(table).tolist() == fitted.predict_proba(table).tolist()
    with pytest.raises(Refused, match="types of no published model"):
        from_skops(tmp_path / "fitted.skops")


def test_a_skops_file_of_something_harmless_is_no_model(tmp_path: Path) -> None:
    io = pytest.importorskip("skops.io", reason="skops is not installed (extra: export)")
    io.dump({"a": 1}, tmp_path / "other.skops")
    with pytest.raises(Refused, match="expected a published model"):
        from_skops(tmp_path / "other.skops")


def test_a_text_that_is_no_model_is_refused() -> None:
    with pytest.raises(Malformed, match="model"):
        PublishedClassifier("{}").fit()


@pytest.mark.parametrize(("ending", "module"), [("onnx", "onnx"), ("skops", "skops.io")])
def test_the_command_writes_what_its_name_says(tmp_path: Path, ending: str, module: str) -> None:
    pytest.importorskip(module, reason=f"{module} is not installed (extra: export)")
    (tmp_path / "model.json").write_text(SOFT.to_json(), encoding="utf-8")
    target = tmp_path / f"model.{ending}"
    result = CliRunner().invoke(
        application("aggregator"), ["export-model", str(tmp_path / "model.json"), str(target), "--json"]
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.output) == {"file": str(target), "bytes": target.stat().st_size, "study": SOFT.study}
    again = CliRunner().invoke(application("aggregator"), ["export-model", str(tmp_path / "model.json"), str(target)])
    assert isinstance(again.exception, Refused)
    assert "already" in str(again.exception)


def test_the_command_refuses_other_endings_and_other_files(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(SOFT.to_json(), encoding="utf-8")
    other = CliRunner().invoke(
        application("aggregator"), ["export-model", str(tmp_path / "model.json"), str(tmp_path / "model.pkl")]
    )
    assert isinstance(other.exception, Refused)
    absent = CliRunner().invoke(
        application("aggregator"), ["export-model", str(tmp_path / "absent.json"), str(tmp_path / "model.onnx")]
    )
    assert isinstance(absent.exception, Malformed)
    assert list(tmp_path.iterdir()) == [tmp_path / "model.json"]


def test_without_the_extra_the_next_step_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("onnx", "skops", "skops.io"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(Refused, match=r"onnx is missing; `pipx install --force './anonml-.*whl\[.*export"):
        to_onnx(SOFT)
    with pytest.raises(Refused, match="skops is missing"):
        to_skops(SOFT, tmp_path / "model.skops")
