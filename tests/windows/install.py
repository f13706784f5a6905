"""Windows' own CPython and what a peer has on Windows, to be run under Wine: `python tests/windows/install.py FOLDER`.

FOLDER/python becomes a Windows Python whose packages are the wheels for `win_amd64`, each by its hash, and the project
of this checkout. FOLDER/prefix becomes a Wine prefix, which is a Windows disk and registry of its own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.mobile.resolve import locked  # noqa: E402
from tests.windows.wine import ENVIRONMENT, make_disk, of_windows  # noqa: E402

TESTS = (
    "pytest", "pytest-asyncio", "pytest-timeout", "hypothesis", "sortedcontainers", "iniconfig", "pluggy", "packaging",
)
"""Beside a peer's packages: what its tests need that run there."""
FORMATS = ("pyarrow", "tzdata", "openpyxl", "et-xmlfile")
"""Of the extras `parquet` and `excel`."""
PIP = (
    sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--no-deps",
)
WINDOWS = ("--only-binary", ":all:", "--platform", "win_amd64", "--implementation", "cp", "--python-version", "3.11")


def python(folder: Path) -> None:
    """The interpreter. Without its `_pth` it looks for packages and reads the environment as an installed one does."""
    subprocess.run([*PIP, "--no-build-isolation", "--target", folder, "-r", ROOT / "locks" / "windows.txt"], check=True)
    (folder / "python311._pth").unlink()


def packages(site: Path) -> None:
    """The wheels, and this checkout in place of ours."""
    peers = locked("locks/build.txt", "locks/peer.txt")
    more = locked("locks/test.txt")
    wanted = [*peers.values(), *(entry for (name, _), entry in more.items() if name in (*TESTS, *FORMATS))]
    (lock := site / "lock.txt").write_text("".join(wanted))
    subprocess.run([*PIP, *WINDOWS, "--target", site, "-r", lock], check=True)
    (site / "anonml.pth").write_text(of_windows(ROOT) + "\n")
    ours = Path(str(distribution("anonml").locate_file("")))
    (described,) = ours.glob("anonml-*.dist-info")
    shutil.copytree(described, site / described.name)


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    program = folder / "python"
    (site := program / "Lib" / "site-packages").mkdir(parents=True)
    python(program)
    packages(site)
    compiler = ("x86_64-w64-mingw32-gcc", "-shared", "-O2", "-s", "-nostdlib", "-e", "0")
    source = Path(__file__).with_name("bcryptprimitives.c")
    subprocess.run([*compiler, "-o", program / "bcryptprimitives.dll", source, "-ladvapi32"], check=True)
    make_disk(ENVIRONMENT)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
