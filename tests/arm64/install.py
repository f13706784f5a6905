"""Debian's Python for arm64 and what a peer has on a phone of that kind: `python tests/arm64/install.py FOLDER`.

FOLDER/debian gets the packages of `python3.11`, from the sources that apt has here, checked by its keys. apt looks into
lists of its own below FOLDER: the machine's packages and architectures stay as they are. FOLDER/site gets the wheels
of the pure profile, each by its hash. FOLDER/bin/python runs the interpreter in the emulator, and is its own name.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.mobile.resolve import install  # noqa: E402

INTERPRETER = "python3.11"
TAGS = ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
WHEELS = (
    *(word for tag in TAGS for word in ("--platform", tag)), "--implementation", "cp", "--python-version", "3.11"
)  # fmt: skip
SCRIPT = """#!/bin/sh
exec "{emulator}" -L "{disk}" -0 "$0" "{disk}/usr/bin/{interpreter}" "$@"
"""


def packages(disk: Path, scratch: Path) -> None:
    """The interpreter with all that it depends on, unpacked and not set up."""
    for folder in ("lists/partial", "archives/partial"):
        (scratch / folder).mkdir(parents=True)
    (scratch / "status").touch()
    kept = {
        "APT::Architecture": "arm64", "APT::Architectures": "arm64", "APT::Sandbox::User": "",
        "APT::Install-Recommends": "false", "Dir::State::Lists": scratch / "lists",
        "Dir::State::status": scratch / "status", "Dir::Cache": scratch,
    }  # fmt: skip
    apt = ["apt-get", "-qq", *(word for name, value in kept.items() for word in ("-o", f"{name}={value}"))]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "install", "--download-only", "--yes", INTERPRETER], check=True)
    for archive in sorted((scratch / "archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", archive, disk], check=True)


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    (disk := folder / "debian").mkdir(parents=True)
    packages(disk, folder / "apt")
    shutil.rmtree(folder / "apt")
    install(folder / "site", WHEELS)
    (program := folder / "bin" / "python").parent.mkdir()
    emulator = shutil.which("qemu-aarch64")
    program.write_text(SCRIPT.format(emulator=emulator, disk=disk, interpreter=INTERPRETER))
    program.chmod(0o755)
    asked = [program, "-c", "import platform, sqlite3, ssl; print(platform.machine())"]
    said = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    assert said.strip() == "aarch64", said


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
