"""Debian's Python for arm64, run by `qemu-aarch64` on this machine's kernel, files, network and clock.

An emulator is no phone. Its processes count their own processor time, some twenty times what they cost here, and it
keeps no limit of memory. A program that starts itself anew finds the emulator by the script `PYTHON`.
"""

from __future__ import annotations

import pytest

from tests.support import command_line
from tests.support.command_line import ROOT
from tests.support.systems import System

PLACE = ROOT / ".venv" / "arm64"
PYTHON = PLACE / "bin" / "python"
SITE = PLACE / "site"
DISK = PLACE / "debian"
"""The root that its programs look into first: libraries and Python's own modules. Whatever is not there is this
machine's."""
ARM64 = System(
    (PYTHON,), {**command_line.ENVIRONMENT, "PYTHONPATH": str(SITE), "ANONML_CRYPTO": "pure"}, "utf-8", str
)
needs_arm64 = pytest.mark.skipif(
    not (PLACE / "made").exists(), reason="`make .venv/arm64/made` first: Debian's Python for arm64 is not installed"
)
