"""Mechanisms of other packages as functions of one input; targets import them from `anonml_adapters`.

Each imports its package when it is called, and none is in the default installation. Take one as the beginning of yours.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
from typing import Any

Mechanism = Any
"""A function of one input."""


def command(words: list[str], stays: bool = False) -> Mechanism:
    """A program that reads the input as a line of JSON and writes its output, as JSON or text.

    It starts anew for each run; one that `stays` answers each line with a line.
    """
    if stays:
        child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603

    def run(given: Any) -> Any:
        line = json.dumps(given).encode() + b"\n"
        if stays:
            if child.stdin is None or child.stdout is None:
                raise OSError("no pipe")
            child.stdin.write(line)
            child.stdin.flush()
            said = child.stdout.readline()
            if not said:
                raise EOFError("the program ended")
        else:
            said = subprocess.run(words, input=line, stdout=subprocess.PIPE, check=True).stdout  # noqa: S603
        try:
            return json.loads(said)
        except ValueError:
            return said.decode("utf-8", "replace").rstrip("\n")

    return run


def opendp(measurement: Any) -> Mechanism:
    """A measurement of OpenDP; its input's type is the domain's own."""
    return measurement


def diffprivlib(tool: Any, **options: Any) -> Mechanism:
    """A tool or a mechanism's class of diffprivlib, with its epsilon and bounds; of a class `randomise` is called."""
    numpy = importlib.import_module("numpy")
    if hasattr(tool, "randomise"):
        return lambda given: tool(**options).randomise(given)
    return lambda rows: tool(numpy.array(rows, dtype=float), **options)


def regression(model: Any, read: Any, **options: Any) -> Mechanism:
    """A model of diffprivlib or scikit-learn on rows whose last value is the label; `read` takes what it publishes."""
    numpy = importlib.import_module("numpy")

    def run(rows: Any) -> Any:
        table = numpy.array(rows, dtype=float)
        return read(model(**options).fit(table[:, :-1], table[:, -1]))

    return run


def pure_ldp(client: Any, method: str = "privatise") -> Mechanism:
    """A client of pure-ldp."""
    return getattr(client, method)


def multi_freq_ldpy(client: Any, *options: Any) -> Mechanism:
    """A client function of multi-freq-ldpy, with what follows its input."""
    return lambda given: client(given, *options)


def ldp_toolbox(protocol: Any, method: str = "obfuscate") -> Mechanism:
    """A protocol of ldp-toolbox."""
    return getattr(protocol, method)


def flower_mod(mod: Any) -> Mechanism:
    """A Flower mod around a client that trains zeros into its input: a list of numbers or lists, each a parameter."""
    numpy, app = importlib.import_module("numpy"), importlib.import_module("flwr.app")
    if importlib.util.find_spec("flwr.supercore") and importlib.util.find_spec("flwr.supercore.task_identity"):
        identity = importlib.import_module("flwr.supercore.task_identity").TaskIdentity
        identity.task_id = identity.run_id = identity.node_id = 1

    def run(given: Any) -> Any:
        def record(parts: Any) -> Any:
            named = {str(place): app.Array(numpy.asarray(part, dtype=float)) for place, part in enumerate(parts)}
            return app.RecordDict({"arrays": app.ArrayRecord(named)})

        zeros = [numpy.zeros_like(numpy.asarray(part, dtype=float)) for part in given]
        asked = app.Message(record(zeros), dst_node_id=1, message_type="train")
        context = app.Context(1, 1, {}, app.RecordDict(), {})
        answer = mod(asked, context, lambda message, _: app.Message(record(given), reply_to=message))
        return [part.tolist() for part in answer.content["arrays"].to_numpy_ndarrays()]

    return run


def nvflare_filter(made: Any) -> Mechanism:
    """A filter of NVFlare on an update of weights; the input is a list of lists, each one variable."""
    numpy, dxo = importlib.import_module("numpy"), importlib.import_module("nvflare.apis.dxo")
    context = importlib.import_module("nvflare.apis.fl_context").FLContext

    def run(given: Any) -> Any:
        weights = {str(place): numpy.array(part, dtype=float) for place, part in enumerate(given)}
        sent = dxo.DXO(dxo.DataKind.WEIGHT_DIFF, data=weights, meta={"NUM_STEPS_CURRENT_ROUND": 1})
        return dxo.from_shareable(made().process(sent.to_shareable(), context())).data

    return run


def synthesizer(made: Any, rows: int, drawn: str = "generate") -> Mechanism:
    """A synthesizer with `fit` and a method that draws: the made-up rows after a fit on the input's rows."""
    pandas = importlib.import_module("pandas")

    def run(given: Any) -> Any:
        model = made()
        model.fit(pandas.DataFrame(given, columns=[str(place) for place in range(len(given[0]))]))
        table = getattr(model, drawn)(rows)
        return table.dataframe() if hasattr(table, "dataframe") else table

    return run
