"""A linear model as ONNX, and in the report."""

from __future__ import annotations

import math

import numpy as np
import pytest

from aggregator.estimator.export import to_onnx, to_skops
from aggregator.protocols.linear_report import linear_report
from aggregator.report.page import _environment
from anon.errors import Refused
from anon.protocols.models.linear import LinearModel
from tests.support.linear import CLASS, LOG, NUMBER

AGES = (math.nan, math.inf, -math.inf, -5.0, 0.0, 20.1, 40.0, 80.0, 80.1, 1e300)
CUPS = (math.nan, -math.inf, -3.0, 0.0, 1.0, 2.0, 4.0, 9.0)
ROWS = [(age, cups) for age in AGES for cups in CUPS]


def _session(model: LinearModel):
    pytest.importorskip("onnx", reason="onnx is not installed (extra: export)")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (extra: test)")
    return runtime.InferenceSession(to_onnx(model), providers=["CPUExecutionProvider"])


COLUMNS = {name: np.array([[row[place]] for row in ROWS]) for place, name in enumerate(("age", "cups"))}


def test_onnx_predicts_the_class() -> None:
    labels, probabilities = _session(CLASS).run(["label", "probabilities"], COLUMNS)
    expected = [CLASS.predict({"age": age, "cups": cups}) for age, cups in ROWS]
    np.testing.assert_allclose(probabilities[:, 1], [one.probability for one in expected], rtol=0, atol=1e-14)
    assert labels.tolist() == [int(bool(one.positive)) for one in expected] and set(labels) == {0, 1}


@pytest.mark.parametrize("model", [NUMBER, LOG], ids=["linear", "log"])
def test_onnx_predicts_the_number(model: LinearModel) -> None:
    session = _session(model)
    assert [one.name for one in session.get_outputs()] == ["value"]
    (values,) = session.run(["value"], COLUMNS)
    expected = [model.predict({"age": age, "cups": cups}).value for age, cups in ROWS]
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-13)
    assert len({*np.round(values, 9)}) > 10


@pytest.mark.slow
def test_skops_holds_tables_alone(tmp_path) -> None:
    pytest.importorskip("skops", reason="skops is not installed (extra: export)")
    with pytest.raises(Refused, match="not made of tables"):
        to_skops(CLASS, tmp_path / "model.skops")


@pytest.mark.parametrize("model", [CLASS, NUMBER, LOG], ids=["class", "number", "log"])
def test_the_report_lists_the_weights(model: LinearModel) -> None:
    part = linear_report(model)
    block = _environment().from_string(part.template).blocks["results"]
    context = _environment().from_string(part.template).new_context({"model": model, **part.values})
    text = "".join(block(context))
    assert text.index("cups") < text.index(">age<") and "-2" in text and "+1.5" in text and "+0.25" in text
    assert ("predicts the number “<bdi>sleep</bdi>”" in text) is (model.target is not None)
    logarithms = ("<bdi>cups</bdi> (log)", "logarithm of 1 + value", "logarithm of 1 + number")
    assert {said in text for said in logarithms} == {model is LOG}
