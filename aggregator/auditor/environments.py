"""Environments of their own for targets that pin packages: a venv for each list, kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from anon.errors import Refused
from anon.machine.environment import Child, for_child

_READY = "ready"


def interpreter(requirements: Sequence[str], version: str, say: Callable[[str], None]) -> str:
    """A Python with these requirements installed, made now or before; with none of them, that Python itself.

    `version` is 3.9 or a path; empty means this Python. Raises `Refused` where there is no such Python, and where pip
    cannot install.
    """
    base = shutil.which(version if os.sep in version else f"python{version}") if version else sys.executable
    if base is None:
        raise Refused(f"no python{version} on this machine: install it, or name another with --python")
    if not requirements:
        return base
    told = "\n".join([base, *sorted(requirements)])
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "anonml" / "auditor" / hashlib.sha256(told.encode()).hexdigest()[:16]
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (folder / _READY).exists():
        say(f"installing {', '.join(requirements)} into {folder}")
        shutil.rmtree(folder, ignore_errors=True)
        _run([base, "-m", "venv", str(folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements])
        (folder / _READY).write_text(told + "\n", "utf-8")
    return str(python)


def _run(words: Sequence[str]) -> None:
    done = subprocess.run(  # noqa: S603 - this Python's own venv and pip
        words, env=for_child(Child.PROGRAM), capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["it said nothing"]
        raise Refused(f"the environment cannot be made: {last[0]}")
