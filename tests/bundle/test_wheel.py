"""The wheel: the same bytes wherever it is built, sums that a stranger can check, and a demo without a checkout."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import anonml
from bundle.wheel import SOURCES, build, build_both, release

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SOURCE_DATE_EPOCH", "1750000000")
        return release(ROOT, tmp_path_factory.mktemp("dist"))


def test_two_builds_on_two_paths_have_one_digest(
    released: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel and its sources; the second from a copy without a history, with other times, modes and an own umask."""
    other = tmp_path / "another place"
    other.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, other / name, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(ROOT / name, other / name)
    (other / "anonml.py").chmod(0o700)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1750000000")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    before = os.umask(0o077)
    try:
        twins = build_both(other, tmp_path / "out")
    finally:
        os.umask(before)
    for twin, first in zip(twins, released[:2], strict=True):
        assert twin.name == first.name
        assert hashlib.sha256(twin.read_bytes()).digest() == hashlib.sha256(first.read_bytes()).digest()


def test_the_sources_hold_all_that_the_wheel_holds(released: list[Path]) -> None:
    with zipfile.ZipFile(released[0]) as wheel, tarfile.open(released[1]) as archive:
        installed = {name for name in wheel.namelist() if ".dist-info/" not in name}
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert installed and not installed - packed
    assert {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO"} <= packed


def test_sums_are_those_of_the_files(released: list[Path]) -> None:
    sums = released[3]
    subprocess.run(["sha256sum", "--check", "--strict", sums.name], cwd=sums.parent, check=True, capture_output=True)
    assert [line.split()[1] for line in sums.read_text().splitlines()] == [file.name for file in released[:3]]


def test_the_list_of_parts_names_every_locked_package(released: list[Path]) -> None:
    listed = json.loads(released[2].read_text("utf-8"))
    assert (listed["bomFormat"], listed["specVersion"]) == ("CycloneDX", "1.5")
    assert listed["metadata"]["component"]["hashes"] == [
        {"alg": "SHA-256", "content": hashlib.sha256(released[0].read_bytes()).hexdigest()}
    ]
    pinned = [
        line
        for lock in ("peer", "aggregator")
        for line in (ROOT / f"locks/{lock}.txt").read_text().splitlines()
        if "==" in line
    ]
    named = {f"{one['name']}=={one['version']}": one for one in listed["components"]}
    assert {line.split()[0].rstrip("\\").lower() for line in pinned} == set(named)
    assert all(one["hashes"] and one["purl"].startswith("pkg:pypi/") for one in named.values())


def test_the_demo_is_in_the_wheel(released: list[Path], tmp_path: Path) -> None:
    """Found and started from the unpacked wheel, with nothing of the checkout in reach. A few people score the
    model."""
    with zipfile.ZipFile(released[0]) as wheel:
        wheel.extractall(tmp_path / "site")
    program = (
        "import sys; sys.path = [sys.argv[1]] + [one for one in sys.path if one]\n"
        "sys.meta_path = [one for one in sys.meta_path if 'editable' not in str(one)]\n"
        "import anonml, examples.hosting; from examples import scenes\n"
        "app = anonml.application('demo')\n"
        "scenes.CENSUS_TEST_ROWS = scenes.MOOC_TEST_STUDENTS = 10\n"
        "scene = scenes.census(5, 1, None); scenes.mooc(2, 1, __import__('pathlib').Path(sys.argv[2]), False)\n"
        "print(len(scene.peers), examples.hosting.__file__, sys.modules['examples.demo'].__file__)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "site"), str(tmp_path / "logs")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    count, *files = done.stdout.split()
    assert count == "5" and all(file.startswith(str(tmp_path / "site")) for file in files)


def test_the_wheel_brings_the_scripts_of_its_commands_and_a_new_shell_imports_none(
    released: list[Path], tmp_path: Path
) -> None:
    """They are nowhere in the sources. Each of the modules below costs a shell that starts tens of milliseconds."""
    assert not anonml.COMPLETIONS.exists()
    with zipfile.ZipFile(released[0]) as wheel:
        wheel.extractall(tmp_path)
    program = (
        "import sys, anonml\n"
        "assert not anonml._run(['completion', sys.argv[1]])\n"
        "sys.stderr.write(' '.join(sys.modules))\n"
    )
    for shell in anonml.SHELLS:
        done = subprocess.run(
            [sys.executable, "-c", program, shell], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout == anonml.completion(shell)
        assert (
            set(done.stderr.split()) & {"typer", "rich", "attrs", "asyncio", "peer", "aggregator", "importlib.metadata"}
            == set()
        )


def test_no_wheel_is_made_where_a_script_would_leave_commands_out(tmp_path: Path) -> None:
    for name in SOURCES:
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile)(ROOT / name, tmp_path / name)
    (tmp_path / "aggregator/lab/__init__.py").write_text("import no_such_part\n", "utf-8")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        build(tmp_path, tmp_path / "out")
    assert "no_such_part" in failed.value.stderr
