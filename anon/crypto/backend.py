"""Which cryptographic libraries are underneath: native ones, or slow ones in Python where those have no build.

Never a silent change: on a platform that has a native build its absence is an error that says what to do. The ones in
Python are not constant-time.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

VARIABLE = "ANONML_CRYPTO"
NATIVE, PURE = "native", "pure"
HAS_PURE: bool = True
"""False in a program without the libraries in Python: their folders can be deleted, and this is the line that tells."""
NO_NATIVE_BUILD = ("android", "ios")
"""Values of `sys.platform` for which the native libraries may have no build (docs/mobile.md)."""


def implementation(library: str) -> str:
    """`native` or `pure` for an import name, from the environment and what is installed. Raises `ImportError`."""
    setting = os.environ.get(VARIABLE, "")
    chosen = choose(library, setting, sys.platform, setting != PURE and _installed(library))
    if chosen == PURE and not HAS_PURE:
        raise ImportError(f"this program comes without {library} in Python; unset {VARIABLE}, or install anonml again")
    return chosen


def choose(library: str, setting: str, platform: str, installed: bool) -> str:
    """The library to use for `library`. `setting` is a person's explicit wish or empty, `installed` whether it is
    there.

    Raises `ImportError` for an unknown setting, and wherever the native library is missing and nobody said `pure`,
    except on platforms that may be without a native build.
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
        f"the library {library} is missing; install anonml again, or set {VARIABLE}={PURE} to do without it: "
        "many times slower, with timings that tell more about your keys"
    )


def _installed(library: str) -> bool:
    """True if it imports. One that is there but broken raises, on every platform."""
    try:
        import_module(library)
    except ModuleNotFoundError as missing:
        if missing.name != library:
            raise
        return False
    return True
