"""Which curve library is underneath: the native one, or the slow one in Python where the native one has no build.

Never a silent change: on a platform that has a native build its absence is an error that says what to do.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

VARIABLE = "ANONML_CURVE"
NATIVE_LIBRARY = "py_arkworks_bls12381"
NATIVE, PURE = "native", "pure"
NO_NATIVE_BUILD = ("android", "ios")
"""Values of `sys.platform` for which nobody publishes the native library."""


def chosen() -> str:
    """`native` or `pure`, from the environment and what is installed. Raises `ImportError` as `choose` does."""
    setting = os.environ.get(VARIABLE, "")
    return choose(setting, sys.platform, setting != PURE and _installed())


def choose(setting: str, platform: str, installed: bool) -> str:
    """The library to use. `setting` is a person's explicit wish or empty, `installed` whether the native one is there.

    Raises `ImportError` for an unknown setting, and wherever the native library is missing and nobody said `pure`,
    except on platforms without a native build.
    """
    if setting not in ("", NATIVE, PURE):
        raise ImportError(f"{VARIABLE}: expected {NATIVE} or {PURE}, or nothing; unset it")
    if setting == PURE:
        return PURE
    if installed:
        return NATIVE
    if setting == "" and platform in NO_NATIVE_BUILD:
        return PURE
    raise ImportError(
        f"the curve library {NATIVE_LIBRARY} is missing; install anonml again, or set {VARIABLE}={PURE} to do without "
        "it: some twenty times slower, with timings that tell more about your keys"
    )


def _installed() -> bool:
    """Whether the native library imports. One that is there but broken raises, on every platform."""
    try:
        import_module(NATIVE_LIBRARY)
    except ModuleNotFoundError as missing:
        if missing.name != NATIVE_LIBRARY:
            raise
        return False
    return True
