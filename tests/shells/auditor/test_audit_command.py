"""`anonml audit mechanism` as a whole program, with mechanisms in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from aggregator.auditor.boxes import ProcessBox
from aggregator.auditor.environments import interpreter
from anon.errors import Malformed, Refused

pytestmark = pytest.mark.process

MINE = """
import random, sys
CLAIM = {"epsilon": 1, "domain": "0..1", "pairs": []}
print("a line of the mechanism's own")

def mechanism(x):
    print("another")
    return x if random.random() < .9 else 1 - x

def sound(x):
    return x if random.random() < .6 else 1 - x

def failing(x):
    raise ValueError("no inputs today")

def ending(x):
    sys.exit()

def by_name(x):
    return {"1": 0, 2: 1}[x]
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    file = tmp_path / "mine.py"
    file.write_text(MINE, "utf-8")
    return file


def _anonml(*words: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "anonml", "audit", "mechanism", *words]
    return subprocess.run(program, capture_output=True, text=True, check=False, timeout=300)


def test_a_broken_claim_ends_with_one_and_a_page(mine: Path, tmp_path: Path) -> None:
    page, letter = tmp_path / "finding.md", tmp_path / "letter.md"
    done = _anonml(str(mine), "--runs", "5000", "--page", str(page), "--report", str(letter))
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("broken: epsilon at least")
    assert "```python" in page.read_text("utf-8") and letter.read_text("utf-8").startswith("Subject:")
    again = _anonml(str(mine), "--page", str(page))
    assert again.returncode == 4 and "already exists" in again.stderr


def test_a_claim_that_holds_ends_with_zero(mine: Path) -> None:
    done = _anonml(f"{mine}:sound", "--runs", "3000", "--json")
    said = json.loads(done.stdout)
    assert done.returncode == 0 and said["broken"] is False and said["runs"] <= 3000


def test_a_program_is_a_mechanism_too(tmp_path: Path) -> None:
    file = tmp_path / "told.py"
    file.write_text("import sys\nfor line in sys.stdin:\n    print(line.strip(), 3, flush=True)\n", "utf-8")
    said = ("--command", f"{sys.executable} {file}", "--domain", "a|b", "--epsilon", "0.1")
    for more in (["--runs", "400"], ["--lines"]):
        done = _anonml(*said, *more)
        assert (done.returncode, done.stdout[:7]) == (1, "broken:"), done.stderr


@pytest.mark.parametrize(("words", "code", "said"), [
    (["--domain", "0..1"], 4, "name a target"),
    (["nothing.py", "--epsilon", "1", "--domain", "0..1"], 1, "No such file"),
    (["no_such_module:f", "--epsilon", "1", "--domain", "0..1"], 3, "cannot be loaded"),
    (["math:sqrt", "--domain", "0..1"], 3, "no epsilon is claimed"),
    (["math:sqrt", "--epsilon", "1"], 3, "no inputs"),
    (["math:sqrt", "--epsilon", "1", "--domain", "0..1", "--python", "2.99"], 4, "no python2.99"),
])
def test_what_cannot_be_audited_is_said(words: list[str], code: int, said: str) -> None:
    done = _anonml(*words)
    assert (done.returncode, said in " ".join(done.stderr.split())) == (code, True), done.stderr


def test_an_exception_is_told_with_its_input(mine: Path) -> None:
    """A number of a domain is no text, so one of these two has no place in the mechanism's table."""
    done = _anonml(f"{mine}:by_name", "--runs", "1000", "--domain", '"1"|1')
    assert done.returncode == 1, done.stderr
    assert "first and second: ('1', 1)" in done.stdout and "raised,said" not in done.stdout
    assert "the mechanism raised KeyError on the input 1; an exception counts as an output" in done.stdout


@pytest.mark.parametrize(("function", "said"), [("failing", "no inputs today"), ("ending", "ended")])
def test_a_mechanism_that_gives_no_output_is_no_sound_one(mine: Path, function: str, said: str) -> None:
    with ProcessBox(str(mine), function) as box, pytest.raises(Malformed, match=said):
        box.run((0, 1), [True, False] * 4)


def test_an_environment_that_cannot_be_made_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(Refused, match="cannot be made"):
        interpreter(["no-such-package==1"], "", lambda line: None)
    assert interpreter([], "", lambda line: None) == sys.executable
