"""Words that were false: a `yes` of a model that was not shown to beat a guess, errors in every new shell."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from attrs import evolve

from anon.protocols.models.tables import Model, from_json
from peer.data.importing import import_rows
from peer.predict import predict_own, write_predictions
from tests.support.browsing_model import model_of
from tests.support.peer_command import Command
from tests.support.visiting import Visited, visited

ROOT = Path(__file__).resolve().parents[2]

# A model that was not shown to beat a guess abstains


def _model(shown: bool | None) -> Model:
    return evolve(from_json(model_of("ab" * 32).decode()), chance=0.31, shown=shown)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    import_rows(tmp_path / "data.sqlite", "person", ("age", "cups", "tired"), [(61, "many", 1)])
    return tmp_path / "data.sqlite"


@pytest.mark.parametrize(("shown", "answer"), [(True, True), (None, True), (False, None)])
def test_a_model_that_was_not_shown_answers_nothing(
    shown: bool | None, answer: bool | None, data: Path, tmp_path: Path
) -> None:
    found = predict_own(_model(shown), data, 0)
    assert found.positive is answer and found.probability > found.threshold
    assert bool(found.moved_by) is (answer is not None)
    write_predictions([found], tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text().splitlines()[
        1
    ] == f"you,{found.probability:.6f},{'' if answer is None else 1}"


def test_the_terminal_says_no_class(command: Command, tmp_path: Path) -> None:
    (tmp_path / "person.csv").write_text("age,cups,tired\n61,many,1\n")
    (tmp_path / "model.json").write_text(_model(False).to_json())
    assert command("import", tmp_path / "person.csv").code == 0
    told = command("predict", tmp_path / "model.json")
    assert "no answer" in told.out and "83.9" not in told.out and not re.search(r"\b(yes|no)\b(?! answer)", told.out)
    assert "did not show" in told.err
    assert command("predict", tmp_path / "model.json", "--json").json[0]["positive"] is None
    (tmp_path / "model.json").write_text(_model(True).to_json())
    assert ": yes" in command("predict", tmp_path / "model.json").out


@pytest.mark.parametrize("shown", [True, False])
async def test_the_page_says_no_class(shown: bool, tmp_path: Path) -> None:
    async with visited(tmp_path) as page:
        words = await _predicted(page, shown)
    said = re.search(
        r"\b(yes|no)\b",
        words.partition("What the model says about you")[2].partition("A guess from noisy")[0].replace("No answer", ""),
    )
    assert bool(said) is shown and ("No answer" in words) is not shown
    assert ("What moved it most" in words) is shown


async def _predicted(page: Visited, shown: bool) -> str:
    page.server.site.invites[page.aggregator.study] = page.aggregator.invite
    await page.submit(page.invite, page.invite, answer="yes")
    page.aggregator.publish(
        "model",
        evolve(from_json(model_of(page.aggregator.study.hex()).decode()), chance=0.31, shown=shown).to_json().encode(),
    )
    await page.submit(page.study + "/prediction", page.study + "/prediction")
    return (await page.get(page.study + "/prediction")).words


# A new shell


def _without(tmp_path: Path, *modules: str) -> dict[str, str]:
    """An installation that lacks parts: a peer has no numpy, a wheel no examples."""
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nfor name in {modules!r}:\n    sys.modules[name] = None\n")
    return os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"}


@pytest.mark.process
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_printed_without_a_word_where_parts_are_missing(shell: str, tmp_path: Path) -> None:
    surroundings = _without(tmp_path, "numpy", "sqlalchemy", "sklearn", "examples")
    done = subprocess.run(
        [sys.executable, "-m", "anonml", "completion", shell],
        cwd=tmp_path,
        env=surroundings,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "" and "peer" in done.stdout


SHELLS = {"bash": ("bash", "--norc", "--noprofile", "-i"), "zsh": ("zsh", "-f", "-i")}
FRESH = {"bash": ('eval "$({})"', "PS1='REA''DY> '"), "zsh": ('eval "$({})"', "PS1='REA''DY> '")}


@pytest.mark.process
@pytest.mark.parametrize("shell", [
    pytest.param(one, marks=pytest.mark.skipif(shutil.which(one) is None, reason=f"{one} is missing")) for one in SHELLS
])
def test_a_new_shell_says_nothing_and_completes(shell: str, tmp_path: Path) -> None:
    """In a terminal, as somebody types: a shell without settings of its own, the line of the documents, then the tab
    key."""
    script = f"{sys.executable} -m anonml completion {shell}"
    surroundings = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "dumb", "PYTHONPATH": str(ROOT)}
    terminal, theirs = pty.openpty()
    process = subprocess.Popen(
        SHELLS[shell], env=surroundings, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    try:
        evaluate, prompt = FRESH[shell]
        os.write(
            terminal,
            f"{prompt}; anonml() {{ echo \"GOT:$*\"; }}; {evaluate.format(script)} 2>&1; echo BE''GUN\n".encode(),
        )
        began = _until(terminal, b"BEGUN", b"READY> ")
        said = began.partition("GUN\r\n")[2].partition("BEGUN")[0]
        assert "not found" not in said and "missing" not in said and "rror" not in said, said
        os.write(terminal, b"anonml peer jo\t\n")
        assert "GOT:peer join" in _until(terminal, b"GOT:", b"\n")
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


@pytest.mark.process
@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is missing")
def test_a_new_fish_says_nothing_and_completes(tmp_path: Path) -> None:
    program = f"{sys.executable} -m anonml completion fish | source; complete -C 'anonml peer jo'"
    surroundings = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["fish", "--no-config", "-c", program], env=surroundings, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("join") and done.stderr == ""


def _until(terminal: int, sign: bytes, last: bytes, seconds: float = 60.0) -> str:
    """All that the terminal shows until one sign came after the other."""
    seen, deadline, told = b"", time.monotonic() + seconds, select.poll()  # select() takes no descriptor beyond 1,023
    told.register(terminal, select.POLLIN)
    while last not in seen.partition(sign)[2] and time.monotonic() < deadline:
        if told.poll(1000):
            seen += os.read(terminal, 4096)
    return seen.decode("utf-8", "replace")


# A licence


@pytest.mark.process
def test_the_wheel_carries_its_licence(tmp_path: Path) -> None:
    from tests.support.installing import wheel

    assert (ROOT / "LICENSE").read_text("utf-8").startswith("MIT License")
    with zipfile.ZipFile(wheel(tmp_path / "wheel")) as packed:
        (carried,) = [name for name in packed.namelist() if name.endswith("LICENSE")]
        assert packed.read(carried) == (ROOT / "LICENSE").read_bytes()
