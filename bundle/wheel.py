"""The wheel that peers and staff install, and the sources of it alone: byte for byte the same from the same commit.

    python -m bundle.wheel [--out dist]

Writes both, the wheel's CycloneDX list of parts and SHA256SUMS of the three. The build sees a copy of the sources with
plain modes, and every time in what it makes is that of the last commit: neither folder, clock nor umask shows.
The copy gets the completion scripts of its commands, all of which are imported: peers' and staff's packages are needed.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from anon.machine.environment import Child, for_child

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "anonml.py", "anon", "peer", "aggregator", "examples")
UNKNOWN_TIME = 1_700_000_000
"""Unix seconds for sources without a history: any constant, since zip files cannot tell a time before 1980."""
LOCKS = {"peer": "required", "aggregator": "optional"}
"""Of each lock file the scope of its packages: staff install more than peers."""
_BUILDING = """
import os, sys
os.umask(0o022)
out, os.environ["SOURCE_DATE_EPOCH"], *forms = sys.argv[1:]  # setuptools changes them
from anonml import COMMANDS, COMPLETIONS, SHELLS, application, completion
for name in COMMANDS:
    application(name)  # raises where a part is missing, whose commands a script would leave out
COMPLETIONS.mkdir()
for shell in SHELLS:
    (COMPLETIONS / f"anonml.{shell}").write_text(completion(shell), "utf-8")
from setuptools import build_meta
for form in forms:
    print("built", getattr(build_meta, "build_" + form)(out))
"""
_PINNED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?P<rest>(?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)


def build(root: Path, out: Path) -> Path:
    """The wheel of the sources below `root`, in `out`. Raises `subprocess.CalledProcessError`."""
    return _built(root, out, "wheel")[0]


def build_both(root: Path, out: Path) -> tuple[Path, Path]:
    """The wheel, and its sources as pip takes them. These are packed anew: setuptools puts the times of its build into
    them."""
    archive, wheel = _built(root, out, "sdist", "wheel")
    _pack_anew(archive, seconds(root))
    return wheel, archive


def _built(root: Path, out: Path, *forms: str) -> list[Path]:
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "sources"
        for file in _files(root):
            target = copy / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / file, target)
            target.chmod(0o644)
        command = [sys.executable, "-c", _BUILDING, str(out.resolve()), str(seconds(root)), *forms]
        done = subprocess.run(
            command, cwd=copy, env=for_child(Child.OWN), check=True, capture_output=True, text=True
        )
    return [out / line.removeprefix("built ") for line in done.stdout.splitlines() if line.startswith("built ")]


def _pack_anew(archive: Path, at: int) -> None:
    with tarfile.open(archive) as packed:
        files = {member.name: packed.extractfile(member) for member in packed if member.isfile()}
        content = {name: file.read() for name, file in sorted(files.items()) if file is not None}
    with (
        archive.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=at) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as packed,
    ):
        for name, body in content.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(body), at, 0o644
            packed.addfile(member, BytesIO(body))


def _files(root: Path) -> list[Path]:
    """Tracked and new files of the sources; without git, all files but what Python leaves behind."""
    listing = ["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard", "--", *SOURCES]
    listed = subprocess.run(listing, env=for_child(Child.PROGRAM), check=False, capture_output=True, text=True)
    if not listed.returncode and listed.stdout:
        return sorted(Path(name) for name in set(listed.stdout.split("\0")) if name and (root / name).is_file())
    found = [root / name for name in SOURCES] + [path for name in SOURCES for path in (root / name).rglob("*")]
    return sorted(path.relative_to(root) for path in found if path.is_file() and "__pycache__" not in path.parts)


def seconds(root: Path) -> int:
    asked = ["git", "-C", str(root), "log", "-1", "--format=%ct"]
    told = subprocess.run(asked, env=for_child(Child.PROGRAM), check=False, capture_output=True, text=True)
    return int(os.environ.get("SOURCE_DATE_EPOCH") or told.stdout.strip() or UNKNOWN_TIME)


def parts(root: Path, wheel: Path) -> dict[str, Any]:
    """The wheel and each locked package with version and digests, as CycloneDX 1.5."""
    name, version, *_ = wheel.name.split("-")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    program = {
        "type": "application",
        "bom-ref": f"pkg:pypi/{name}@{version}",
        "name": name,
        "version": version,
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds(root)))
    components = [one for lock, scope in LOCKS.items() for one in _locked(root / "locks" / f"{lock}.txt", scope)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"timestamp": at, "component": program},
        "components": components,
    }


def _locked(file: Path, scope: str) -> Iterator[dict[str, Any]]:
    for found in _PINNED.finditer(file.read_text("utf-8")):
        name, version = found["name"].lower().replace("_", "-"), found["version"]
        purl = f"pkg:pypi/{name}@{version}"
        digests = re.findall(r"sha256:([0-9a-f]{64})", found["rest"])
        yield {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": version,
            "scope": scope,
            "purl": purl,
            "hashes": [{"alg": "SHA-256", "content": digest} for digest in digests],
        }


def release(root: Path, out: Path) -> list[Path]:
    """The wheel, its sources, its parts and the sums of the three, written to `out`."""
    wheel, archive = build_both(root, out)
    listed = out / f"{'-'.join(wheel.name.split('-')[:2])}.cdx.json"
    listed.write_text(json.dumps(parts(root, wheel), indent=1) + "\n", "utf-8")
    sums = out / "SHA256SUMS"
    lines = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in (wheel, archive, listed))
    sums.write_text("".join(lines), "ascii")
    return [wheel, archive, listed, sums]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    for written in release(ROOT, parser.parse_args().out):
        sys.stdout.write(f"{written}\n")
