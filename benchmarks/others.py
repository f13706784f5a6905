"""Frequency oracles of other packages, as far as they can be imported here: the yardstick of `benchmarks.aggregate`."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Any

MISSING = "not installed"


def pure_ldp_server() -> tuple[Any, str]:
    """Return pure_ldp's UEServer and its version, or None and what is missing.

    The package that holds it imports every other oracle too, and with them scikit-learn and statsmodels, which it does
    not declare. So that package is entered without running its `__init__`.
    """
    try:
        outer = import_module("pure_ldp")
        oracles = ModuleType("pure_ldp.frequency_oracles")
        oracles.__path__ = [f"{path}/frequency_oracles" for path in outer.__path__]
        sys.modules.setdefault(oracles.__name__, oracles)
        return import_module("pure_ldp.frequency_oracles.unary_encoding").UEServer, version("pure-ldp")
    except ModuleNotFoundError as missing:
        return None, MISSING if missing.name == "pure_ldp" else f"installed, but not its need {missing.name}"


def multi_freq_estimator() -> tuple[Any, str]:
    """Return multi_freq_ldpy's UE_Aggregator_MI and its version, or None and what is missing.

    Its module imports numba, a compiler of 150 MB, for the client alone; the aggregator is plain Python on numpy. Where
    numba is not there, a decorator that changes nothing stands in for it, which the aggregator does not notice.
    """
    try:
        import_module("numba")
    except ModuleNotFoundError:
        stand_in = ModuleType("numba")
        stand_in.jit = lambda *_, **__: lambda function: function  # type: ignore[attr-defined]
        sys.modules["numba"] = stand_in
    try:
        found = import_module("multi_freq_ldpy.pure_frequency_oracles.UE").UE_Aggregator_MI
        return found, version("multi-freq-ldpy")
    except ModuleNotFoundError as missing:
        return None, f"{missing.name} is not installed"
