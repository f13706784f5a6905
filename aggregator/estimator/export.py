"""A published model for other programs: ONNX (any runtime) and skops (Python, loaded without running foreign code).

Both predict what `anon.protocols.models.tables` predicts, missing and out-of-range values included. They need the
`export` extra.
"""

from __future__ import annotations

import importlib
from itertools import pairwise
from math import log, log1p
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.estimator.prediction import PublishedClassifier
from anon.errors import Refused
from anon.machine.extras import install
from anon.protocols.models.linear import LinearModel
from anon.protocols.models.published import PublishedModel
from anon.protocols.models.tables import Model, ModelTable, demand_tables
from anon.study.features import LARGEST_NUMBER, Feature

TRUSTED = ("aggregator.estimator.prediction.PublishedClassifier",)
"""The only type in a skops file of a published model that is not scikit-learn's, numpy's or Python's own."""

OPSET, OPSET_ML, IR_VERSION = 17, 3, 8
"""Runtimes since 2022 read these."""


def to_onnx(published: PublishedModel) -> bytes:
    """The model as ONNX. Equal models give equal bytes for one version of the `onnx` package.

    Inputs: one per feature, by name, shape (rows, 1); numeric ones double, NaN or infinite for missing; categorical
    ones string, anything undeclared for missing. Outputs: `label` (rows,) int64, `Model.decide`; `probabilities`
    (rows, 2) double, the positive label's second. Of a model that predicts a number: `value` (rows,) double alone.
    Raises `Refused` without the `onnx` package, and for a model of another form.
    """
    onnx = _package("onnx")
    graph = _Graph(onnx)
    if isinstance(published, LinearModel):
        linear_graph(graph, published)
        return _written(onnx, graph, published)
    model = demand_tables(published)
    codes = {feature.name: graph.code(feature, model.cuts_of(feature.name)) for feature in model.features}
    total = graph.add("Mul", graph.add("Cast", next(iter(codes.values())), to=onnx.TensorProto.DOUBLE), graph.real(0.0))
    for table, amounts in zip(model.tables, _amounts(model), strict=True):
        total = graph.add("Add", total, graph.add("Gather", graph.reals(amounts), graph.cell(table, codes)))
    graph.finish(model, total)
    return _written(onnx, graph, model)


def _written(onnx: Any, graph: _Graph, model: PublishedModel) -> bytes:
    inputs = [_input(onnx, feature) for feature in model.features]
    valued = isinstance(model, LinearModel) and model.target is not None
    outputs = graph.value_output() if valued else graph.outputs()
    made = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, "anonml", inputs, outputs, graph.constants),
        opset_imports=[onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", OPSET_ML)],
        ir_version=IR_VERSION,
        producer_name="anonml",
        doc_string=model.title,
    )
    onnx.helper.set_model_props(made, {"study": model.study, "label": model.label.name})
    onnx.checker.check_model(made, full_check=True)
    written: bytes = made.SerializeToString(deterministic=True)
    return written


def to_skops(model: PublishedModel, path: Path) -> None:
    """The model as a skops file of a fitted `PublishedClassifier`. Raises `Refused` without the `skops` package."""
    _package("skops.io").dump(PublishedClassifier(demand_tables(model).to_json()).fit(), path)


def from_skops(path: Path) -> PublishedClassifier:
    """A file of `to_skops`. Only `TRUSTED` types are built, and the model in it passes all checks of
    `anon.protocols.models.tables`.

    Raises `Refused` without the `skops` package or for a file with other types.
    """
    io = _package("skops.io")
    strange = sorted(set(io.get_untrusted_types(file=path)) - set(TRUSTED))
    if strange:
        raise Refused(f"{path.name}: holds types of no published model ({', '.join(strange[:3])}); do not load it")
    loaded = io.load(path, trusted=list(TRUSTED))
    if not isinstance(loaded, PublishedClassifier):
        raise Refused(f"{path.name}: expected a published model; write one with `anonml aggregator export-model`")
    return loaded


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Refused(f"the package {name.partition('.')[0]} is missing; `{install('export')}`") from None


def linear_graph(graph: _Graph, model: LinearModel) -> None:
    """Each column centred, clipped and weighted as in `anon.protocols.vectors.columns.Column`; then the sum, and on."""
    total = graph.real(model.intercept)
    for column, weight in zip(model.columns, model.weights, strict=True):
        x = graph.add("Reshape", column.name, graph.constant(np.array([-1], dtype=np.int64)))
        scaled = x
        if column.scale == "log":
            scaled = graph.add("Log", graph.add("Add", graph.add("Max", x, graph.real(0.0)), graph.real(1.0)))
        moved = graph.add("Div", graph.add("Sub", scaled, graph.real(column.centre)), graph.real(column.width))
        # Min and Max of a logarithm would hide what is no number.
        absent = graph.add("Or", graph.add("IsNaN", x), graph.add("IsInf", x))
        absent = graph.add("Or", absent, graph.add("IsInf", moved))
        place = graph.add("Where", absent, graph.real(0.0), moved)
        clipped = graph.add("Min", graph.add("Max", place, graph.real(-1.0)), graph.real(1.0))
        total = graph.add("Add", total, graph.add("Mul", clipped, graph.real(weight)))
    if model.target is None:
        graph.decide(graph.add("Sigmoid", total), model.threshold)
    else:
        scaled = graph.add("Mul", total, graph.real(model.target.width))
        if model.target.scale != "log":
            graph.add("Add", scaled, graph.real(model.target.centre), output="value")
            return
        moved = graph.add("Add", scaled, graph.real(model.target.centre))
        ended = graph.add("Min", graph.add("Max", moved, graph.real(0.0)), graph.real(log1p(LARGEST_NUMBER)))
        graph.add("Sub", graph.add("Exp", ended), graph.real(1.0), output="value")


def _amounts(model: Model) -> list[list[float]]:
    """Each cell's term, per table: to the log-odds (soft) or to the signed vote."""
    if model.ensemble == "soft":
        return [list(table.log_odds) for table in model.tables]
    weight = sum(table.weight for table in model.tables) or 1.0
    return [[table.weight * (2 * vote - 1) / weight for vote in table.votes] for table in model.tables]


def _input(onnx: Any, feature: Feature) -> Any:
    kind = onnx.TensorProto.DOUBLE if feature.kind == "numeric" else onnx.TensorProto.STRING
    return onnx.helper.make_tensor_value_info(feature.name, kind, [None, 1])


class _Graph:
    """Nodes and constants of an ONNX graph, named by number; `x` below is the name of a value."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operator: str, *inputs: str, output: str = "", domain: str = "", **attributes: Any) -> str:
        name = output or f"value_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], domain=domain, **attributes))
        return name

    def constant(self, values: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def real(self, value: float) -> str:
        return self.constant(np.float64(value))

    def reals(self, values: Any) -> str:
        return self.constant(np.array(values, dtype=np.float64))

    def whole(self, *values: int) -> str:
        return self.constant(np.array(values if len(values) > 1 else values[0], dtype=np.int64))

    def code(self, feature: Feature, cuts: tuple[float, ...]) -> str:
        """The feature's category, int64 of shape (rows,), by the total map of `categories.feature_category`."""
        x = self.add("Reshape", feature.name, self.constant(np.array([-1], dtype=np.int64)))
        if feature.kind == "categorical":
            own = feature.missing == "own"
            missing = len(feature.categories) if own else feature.categories.index(str(feature.missing))
            return self.add(
                "LabelEncoder", x, domain="ai.onnx.ml", keys_strings=list(feature.categories),
                values_int64s=list(range(len(feature.categories))), default_int64=missing,
            )  # fmt: skip
        absent = self.add("Or", self.add("IsNaN", x), self.add("IsInf", x))
        stand_in = feature.range[0] if feature.missing == "own" else float(feature.missing)
        number = self.add("Where", absent, self.real(stand_in), x)
        number = self.add("Max", number, self.real(feature.range[0]))
        number = self.add("Min", number, self.real(feature.range[1]))
        column = self.add("Unsqueeze", number, self.constant(np.array([1], dtype=np.int64)))
        above = self.add("Greater", column, self.reals([list(cuts) or [np.inf]]))
        counted = self.add("Cast", above, to=self.onnx.TensorProto.INT64)
        bins = self.add("ReduceSum", counted, self.constant(np.array([1], dtype=np.int64)), keepdims=0)
        return self.add("Where", absent, self.whole(len(cuts) + 1), bins) if feature.missing == "own" else bins

    def cell(self, table: ModelTable, codes: dict[str, str]) -> str:
        """The mixed radix index of the table's features."""
        index = codes[table.features[0]]
        for (_, name), card in zip(pairwise(table.features), table.cards[1:], strict=True):
            index = self.add("Add", self.add("Mul", index, self.whole(card)), codes[name])
        return index

    def finish(self, model: Model, total: str) -> None:
        """From the sum over tables to the score, and on."""
        if model.ensemble == "soft":
            base = self.real(log(model.base_rate / (1 - model.base_rate)))
            positive = self.add("Sigmoid", self.add("Add", total, base))
        elif sum(table.weight for table in model.tables) > 0:
            half = self.add("Mul", self.add("Add", total, self.real(1.0)), self.real(0.5))
            positive = self.add("Min", self.add("Max", half, self.real(0.0)), self.real(1.0))
        else:
            positive = self.add("Add", self.add("Mul", total, self.real(0.0)), self.real(model.base_rate))
        self.decide(positive, model.threshold)

    def decide(self, positive: str, threshold: float) -> None:
        """From the score to both outputs."""
        called = self.add("GreaterOrEqual", positive, self.real(threshold - 1e-12))
        self.add("Cast", called, to=self.onnx.TensorProto.INT64, output="label")
        axis = self.constant(np.array([1], dtype=np.int64))
        both = [self.add("Unsqueeze", node, axis) for node in (self.add("Sub", self.real(1.0), positive), positive)]
        self.add("Concat", *both, axis=1, output="probabilities")

    def value_output(self) -> list[Any]:
        """Of a model that predicts a number."""
        return [self.onnx.helper.make_tensor_value_info("value", self.onnx.TensorProto.DOUBLE, [None])]

    def outputs(self) -> list[Any]:
        proto, info = self.onnx.TensorProto, self.onnx.helper.make_tensor_value_info
        return [info("label", proto.INT64, [None]), info("probabilities", proto.DOUBLE, [None, 2])]
