"""Commands under Windows' own Python, by Wine: each is a Windows process with pipes for its input and output.

Wine is not Windows. It has Windows' paths, code pages, registry, file locks, processes and job objects in its own way,
on the network and the clock of this machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pytest

from tests.support.systems import LONGEST, System

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / ".venv" / "windows"
PYTHON = PLACE / "python" / "python.exe"
WINE = Path(shutil.which("wine64") or "/usr/lib/wine/wine64")
DISK = PLACE / "prefix" / "drive_c"
"""The disk C: as this system sees it."""
ENVIRONMENT = {
    **{name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ},
    "LANG": "C.UTF-8",
    "WINEPREFIX": str(PLACE / "prefix"),
    "WINEDEBUG": "-all",
    "WINEDLLOVERRIDES": "mscoree,mshtml=;winemenubuilder.exe=d",
    "COLUMNS": "200",
}
"""Neither .NET nor a browser of Wine's own is looked for, and nothing is put into this system's menus."""
CODE_PAGE = "cp1252"
"""Of a usual Windows in the West, and so of its pipes."""
needs_windows = pytest.mark.skipif(
    not (PLACE / "made").exists(), reason="`make .venv/windows/made` first: Windows' Python is not installed"
)


def make_disk(environment: Mapping[str, str], longest: float = LONGEST) -> None:
    """An empty disk C: and a registry. The files that were made decide, and not the exit code: on a busy machine this
    system's linker has failed when all was done and Wine ended."""
    made = subprocess.run(
        [WINE, "wineboot", "--init"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False,
        timeout=longest,
    )  # fmt: skip
    subprocess.run([WINE.with_name("wineserver64"), "-w"], env=environment, check=False, timeout=longest)
    assert (Path(environment["WINEPREFIX"]) / "system.reg").exists(), made.stderr.decode("utf-8", "replace")


@contextmanager
def booted() -> Iterator[None]:
    """Windows is up until the block ends. The first program starts Wine's own, which keep its output open as long as
    any program lives: no other's output would end with it."""
    holds, pipe = ("-I", "-S", "-c", "import sys; print(1, flush=True); sys.stdin.read()"), subprocess.PIPE
    with subprocess.Popen([WINE, PYTHON, *holds], env=ENVIRONMENT, stdin=pipe, stdout=pipe, stderr=pipe) as first:
        assert first.stdout is not None and first.stdin is not None and first.stdout.readline()
        try:
            yield
        finally:
            first.stdin.close()


def of_windows(path: Path) -> str:
    """The path as a Windows program names it: this system is its disk Z:."""
    if path.is_relative_to(DISK):
        return "C:\\" + "\\".join(path.relative_to(DISK).parts)
    return "Z:" + str(PurePosixPath(path)).replace("/", "\\")


WINDOWS = System((WINE, PYTHON), ENVIRONMENT, CODE_PAGE, of_windows)
