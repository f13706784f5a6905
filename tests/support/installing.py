"""The wheel of this tree, and programs installed from it as people install them: by pipx, into an empty home.

Every other wheel is fetched once and kept beside the tests' other parts in `.venv`; from then on nothing is fetched.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from attrs import frozen

ROOT = Path(__file__).resolve().parents[2]
CONSTRAINTS = ROOT / "constraints.txt"
WHEELS = ROOT / ".venv" / "wheels"
LONGEST = 300
THIS_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_OFFLINE = ("NewConnectionError", "NameResolutionError", "Temporary failure in name resolution", "ConnectTimeoutError")


@frozen
class Installed:
    """A program on the PATH of an empty home. Its commands run in that home and know nothing of this tree."""

    home: Path
    programs: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of a shell in that home."""
        found = {key: os.environ[key] for key in ("LANG", "TMPDIR") if key in os.environ}
        words = {"HOME": str(self.home), "COLUMNS": "100", "OMP_NUM_THREADS": "1", "ANONML_TOR": "/nowhere"}
        return found | words | {"PATH": f"{self.programs}:/usr/bin:/bin"}

    def run(self, *words: str) -> str:
        """A command line, which must succeed; what it printed."""
        done = subprocess.run(
            words, env=self.environment, cwd=self.home, capture_output=True, text=True, check=False, timeout=LONGEST
        )
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr or done.stdout}"
        return done.stdout

    def begin(self, *words: str, log: Path, browser: str = "") -> subprocess.Popen[bytes]:
        """A command line that goes on; what it says goes to a file. `browser` is what it opens links with."""
        with log.open("wb") as file:
            return subprocess.Popen(
                words,
                env=self.environment | {"BROWSER": browser},
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )


def wheel(folder: Path) -> Path:
    """The wheel of this tree, built in a copy so that nothing is left in it."""
    folder.mkdir()
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(_copied(folder)))
    (built,) = folder.glob("*.whl")
    return built


def _copied(folder: Path) -> Path:
    parts = ("anon", "peer", "aggregator", "anonml.py", "pyproject.toml", "README.md", "LICENSE")
    source = folder.with_name("source")
    source.mkdir()
    for part in parts:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(ROOT / part, source / part)
    return source


def pipx_install(home: Path, built: Path, extra: str = "") -> Installed:
    """`pipx install WHEEL` in an empty home."""
    installed = Installed(home, home / ".local" / "bin")
    pip = f"--no-index --find-links {wheels(extra)} --constraint {CONSTRAINTS}"
    words = [sys.executable, "-m", "pipx", "install", f"{built}{extra}", "--pip-args", pip]
    _run(words, installed.environment | {"USE_EMOJI": "0"})
    return installed


def beside_this(home: Path, built: Path) -> Installed:
    """The wheel in an environment of its own that takes every other package from the one that runs the tests: large
    ones need not be unpacked again."""
    place = home / "environment"
    venv.create(place, symlinks=True, with_pip=False)
    (site,) = (place / "lib").glob("python*/site-packages")
    others = [one for one in sys.path if one.endswith("site-packages")]
    _pip("install", "--no-deps", "--no-index", "--no-compile", "--prefix", str(place), "--ignore-installed", str(built))
    (site / "others.pth").write_text("\n".join(others))
    program = place / "bin" / "anonml"
    lines = (f"#!{place / 'bin' / 'python'}", "from anonml import main", 'if __name__ == "__main__":', "    main()", "")
    program.write_text("\n".join(lines))
    program.chmod(0o755)
    return Installed(home, place / "bin")


def wheels(extra: str, python: str = THIS_PYTHON) -> Path:
    """Where the wheels of all that it needs are kept; fetched by their hashes when a lock has changed."""
    # Pipx keeps a pip of its own.
    locks = [ROOT / "locks" / f"{name}.txt" for name in ("build", "peer", "pip", *(["aggregator"] if extra else []))]
    needs = b"".join(lock.read_bytes() for lock in locks) + python.encode()
    kept = WHEELS / hashlib.sha256(needs).hexdigest()[:16]
    if not (kept / "complete").exists():
        kept.mkdir(parents=True, exist_ok=True)
        fetch = ("download", "--only-binary", ":all:", "--no-deps", "--dest", str(kept))
        _pip(
            *fetch,
            "--python-version",
            python,
            "--require-hashes",
            *(word for lock in locks for word in ("-r", str(lock))),
        )
        (kept / "complete").touch()
    return kept


def _pip(*words: str) -> None:
    _run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words], dict(os.environ))


def _run(words: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST)
    if done.returncode != 0 and any(sign in done.stderr for sign in _OFFLINE):
        pytest.skip("wheels cannot be fetched: no network")
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr or done.stdout}"
