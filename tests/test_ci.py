"""CI as it runs: second tries are remembered and named, missing parts and Pythons are named, and nothing is left
running."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.twice import again

ROOT = Path(__file__).resolve().parents[1]
COREUTILS = ("bash", "cut", "tr", "sort", "paste", "sed", "test", "env", "dirname", "mktemp", "rm", "cat")


@pytest.mark.parametrize(("runs", "failing"), [
    ([["a"], ["a"]], [1]),
    ([["a"], [], ["a"]], [2]),
    ([["a"], [], [], ["a"]], []),
    ([["a"], ["b"], ["b", "a"], ["c"]], [2]),
    ([["a"], ["a"], [], []], [1]),
])
def test_a_second_try_in_two_runs_of_three_fails_the_second_of_them(
    tmp_path: Path, runs: list[list[str]], failing: list[int]
) -> None:
    kept = tmp_path / "cache" / "second-tries.json"
    found = [again(kept, "make test-all", unsteady) for unsteady in runs]
    assert [number for number, names in enumerate(found) if names] == failing
    assert again(kept, "make timed", runs[-1]) == [], "each kind of run has its own history"


def test_a_history_that_was_cut_off_begins_anew(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text('{"x": [["a')
    assert again(tmp_path / "kept", "x", ["a"]) == []
    assert again(tmp_path / "kept", "x", ["a"]) == ["a"]


UNSTEADY = """
from pathlib import Path
def test_unsteady():
    assert (seen := Path(__file__).with_name("seen")).exists(), seen.touch()
"""


def _twice(folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "seen").unlink(missing_ok=True)
    words = [sys.executable, "-m", "tests.twice", "-q", "-c", os.devnull, "--rootdir", str(folder), str(folder)]
    surroundings = os.environ | {"XDG_CACHE_HOME": str(folder / "cache"), "SECOND_TRIES": str(folder / "tries")}
    return subprocess.run(words, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.process
def test_what_passes_alone_is_named_and_passes_once(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(UNSTEADY)
    first, second = _twice(tmp_path), _twice(tmp_path)
    assert first.returncode == 0 and "unsteady, to be mended:\n  test_it.py::test_unsteady" in first.stdout, (
        first.stdout
    )
    assert second.returncode == 1 and "in two runs of three" in second.stdout.splitlines()[-1], second.stdout
    assert (tmp_path / "tries").read_text() == "  test_it.py::test_unsteady\n" * 2


@pytest.mark.process
def test_four_files_that_fail_are_not_tried_again(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"test_{number}.py").write_text("def test_one(): assert False\n")
    done = _twice(tmp_path)
    assert done.returncode == 1 and "none is tried again" in done.stdout and not (tmp_path / "tries").exists()


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine that has hardly a program; a copy of what CI runs stands beside its folder of programs, which it
    returns."""
    (programs := tmp_path / "bin").mkdir()
    for name in COREUTILS:
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    for name in (".ci/run", "tests/parts", "tests/pythons"):
        (copied := tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, copied)
    run, parts = tmp_path / ".ci/run", tmp_path / "tests/parts"
    for file in (run, parts):
        file.write_text(file.read_text().replace("$PATH:/usr/sbin:/sbin", "$PATH"))
    _program(programs, "id", "echo 1000")
    return programs


def _program(programs: Path, name: str, text: str) -> None:
    (programs / name).write_text(f"#!{shutil.which('sh')}\n{text}\n")
    (programs / name).chmod(0o755)


def _run(machine: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """With nothing left running afterwards."""
    command = [str(machine.parent / words[0]), *words[1:]]
    with subprocess.Popen(
        command,
        env={"PATH": str(machine)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        out, errors = process.communicate(timeout=60)
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


def test_ci_names_what_a_bare_machine_lacks_and_how_to_install_it(machine: Path) -> None:
    done = _run(machine, ".ci/run")
    assert done.returncode == 1
    assert "missing: " in done.stdout and " make," in done.stdout and " venv," in done.stdout
    install = done.stdout.splitlines()[-1]
    assert "apt-get install" in install and " make " in install and " python3-venv " in install


def test_ci_names_second_tries_in_its_last_lines_however_it_ends(machine: Path) -> None:
    _program(machine.parent / "tests", "parts", "true")
    _program(
        machine, "make", 'case "$1" in test-all) echo "  a::b" >> "$SECOND_TRIES"; echo told;; mobile) exit 2;; esac'
    )
    done = _run(machine, ".ci/run")
    assert done.returncode == 2
    assert done.stdout.splitlines() == ["told", "needed a second try, to be mended:", "  a::b"]


@pytest.mark.process
def test_a_failed_check_leaves_no_child_running(machine: Path) -> None:
    _program(machine.parent / "tests", "parts", "true")
    for name in ("make", "sh", "sleep", "false"):
        (machine / name).symlink_to(str(shutil.which(name)))
    (machine.parent / "Makefile").write_text(".venv/test:\ncheck:\n\t@false\npythons:\n\t@sleep 1\n")
    assert _run(machine, ".ci/run").returncode == 2


def test_pythons_that_are_not_here_are_left_out_and_named(machine: Path) -> None:
    _program(machine, "python3.11", f'test "$2" = "import ensurepip" || echo {machine}/python3.11')
    _program(machine, "python3.12", f'test "$2" != "import ensurepip" && echo {machine}/python3.12')
    _program(machine, "python3.13", f'test "$PYENV_VERSION" = 3.13 && echo {machine}/python3.11')
    _program(machine, "python3.14", "exit 127")
    done = _run(machine, "tests/pythons", "python3.11", "python3.12", "python3.13", "python3.14", "python3.15")
    assert (done.returncode, done.stdout.split()) == (0, [f"{machine}/python3.11"] * 2)
    venv, *absent = done.stderr.splitlines()
    assert "python3.12, which has no venv (Debian: apt-get install python3-venv)" in venv
    assert [line.split()[2] for line in absent] == ["python3.14,", "python3.15,"]
    none = _run(machine, "tests/pythons", "python3.14")
    assert none.returncode == 1 and "apt-get install python3 python3-venv" in none.stderr
