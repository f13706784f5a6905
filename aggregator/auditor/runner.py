"""The child that runs a mechanism: the standard library alone, for the Python of any environment from 3.7 on.

    python runner.py TARGET FUNCTION

It answers each line on standard input with one on standard output. A request has the two inputs and coins, and the
answer the plain outputs and the seconds of processor time so far. Output of the mechanism itself goes to standard
error.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import time
import traceback
import warnings
from types import ModuleType
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
OFFERED = "anonml_adapters"
"""The name by which targets import the adapters, which lie beside this file."""
BYTES, DICT = "bytes", "dict"


def loaded(name: str, path: str) -> ModuleType:
    """The module in a file."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("no Python module: " + path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def packed(y: Any) -> Any:
    """A plain output as JSON alone: bytes and dictionaries get a name."""
    if isinstance(y, bytes):
        return {BYTES: y.hex()}
    if isinstance(y, dict):
        return {DICT: [[key, packed(inner)] for key, inner in y.items()]}
    return [packed(inner) for inner in y] if isinstance(y, list) else y


def unpacked(found: dict[str, Any]) -> Any:
    """The other way round, as `object_hook` of `json.loads`."""
    return bytes.fromhex(found[BYTES]) if BYTES in found else dict(found[DICT]) if DICT in found else found


def once(mechanism: Any, given: str, plain: Any) -> Any:
    """One run on an input that is its own copy. A fault of the mechanism is an output too."""
    try:
        return packed(plain(mechanism(json.loads(given))))
    except Exception as fault:
        return {DICT: [["raised", type(fault).__name__], ["said", str(fault)[:200]]]}


def seconds() -> float:
    """The processor time of this process and of its children that ended."""
    return time.process_time() + sum(os.times()[2:4])


def main() -> None:
    """Load the target, say so, and answer until standard input ends."""
    asked, told = os.fdopen(os.dup(0), "r", encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    target, name = sys.argv[1:3]

    def tell(answer: dict[str, Any]) -> None:
        told.write(json.dumps(answer) + "\n")
        told.flush()

    warnings.simplefilter("ignore")  # one a run would fill the terminal
    try:
        plain = loaded("anonml_readings", os.path.join(HERE, "readings.py")).plain  # noqa: PTH118
        adapters = loaded(OFFERED, os.path.join(HERE, "adapters.py"))  # noqa: PTH118
        if name.startswith("["):
            mechanism = adapters.command(json.loads(name), target == "lines")
        else:
            sys.path[:0] = [os.path.dirname(os.path.abspath(target)), os.getcwd()]  # noqa: PTH100, PTH109, PTH120
            module = loaded("target", target) if target.endswith(".py") else importlib.import_module(target)
            mechanism = getattr(module, name)
    except BaseException:
        tell({"failed": traceback.format_exc(limit=-3)})
        return
    tell({"python": ".".join(str(part) for part in sys.version_info[:3])})
    for line in asked:
        request = json.loads(line)
        first, second = (json.dumps(given) for given in request["pair"])
        outputs = [once(mechanism, first if coin == "1" else second, plain) for coin in request["coins"]]
        tell({"outputs": outputs, "seconds": seconds()})


if __name__ == "__main__":
    main()
