"""The completion script in a real shell."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import anonml
from anon.kit.terminal.completion import SHELLS, Node, script

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = subprocess.run(
        [sys.executable, "-m", "anonml", "completion", "bash"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    path = tmp_path_factory.mktemp("completion") / "anonml.bash"
    path.write_text(made.stdout)
    return path


def _completed(path: Path, *words: str) -> list[str]:
    program = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _anonml; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "-c", program, "bash", str(path), *words], check=True, capture_output=True, text=True
    )
    return done.stdout.split()


@pytest.mark.parametrize(("words", "some"), [
    (("anonml", ""), {"peer", "aggregator", "study", "doctor", "completion", "support-bundle", "help"}),
    (("anonml", "agg"), {"aggregator"}),
    (("anonml", "peer", "jo"), {"join"}),
    (("anonml", "aggregator", "desk", "--des"), {"--desk-port"}),
    (("anonml", "study", "publish", "--"), {"--home", "--json", "--help"}),
    (("anonml", "study", "publish", "--home", "x", "--js"), {"--json"}),
    (("anonml", "completion", ""), {"bash", "zsh", "fish"}),
    (("anonml", "help", "peer", "jo"), {"join"}),
])
def test_bash_completes_commands_and_options(bash_script: Path, words: tuple[str, ...], some: set[str]) -> None:
    found = _completed(bash_script, *words)
    assert some <= set(found) and all(word.startswith(words[-1]) for word in found)


def test_files_are_left_to_the_shell(bash_script: Path) -> None:
    assert _completed(bash_script, "anonml", "study", "lint", "stu") == []
    assert "complete -o default" in bash_script.read_text()


def test_a_word_that_is_no_command_changes_nothing(bash_script: Path) -> None:
    assert "join" in _completed(bash_script, "anonml", "peer", "no-such", "jo")


@pytest.mark.parametrize(
    "shell",
    [
        pytest.param(one, marks=pytest.mark.skipif(shutil.which(one) is None, reason=f"{one} is missing"))
        for one in SHELLS
    ],
)
def test_no_script_has_a_fault_of_syntax(shell: str) -> None:
    hostile = Node("it's", ("--a",), {"one": Node("\"$(x)`y`", ("--b",), {})})
    subprocess.run([shell, "-n"], input=script(shell, hostile), text=True, check=True)


def test_a_command_whose_part_is_missing_is_completed_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a `pip install` of the sources that brings a peer's packages alone."""
    made = anonml.application
    monkeypatch.setattr(
        anonml, "application", lambda name: importlib.import_module("no_such_part") if name == "study" else made(name)
    )
    script = anonml.completion("bash")
    assert "' peer join')" in script and "' study')" in script and "' study publish')" not in script


def test_wrong_use_says_how() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "anonml", "completion"], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert done.returncode == 2 and "eval" in done.stderr
