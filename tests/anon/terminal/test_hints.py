"""Commands that lines hint at: typed as shown, each finds this program and the home that was given."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.text import Text
from typer.testing import CliRunner

from anon.errors import Unreachable
from anon.kit.diagnosis.checks import Check
from anon.kit.terminal.hints import HINT, HOMELESS, completed, noting
from anon.kit.terminal.printing import Terminal
from anon.teller import diagnosis, service
from anon.teller.cli import app
from anonml import application
from tests.support.command_line import as_if_started_at

ROOT = Path(__file__).parents[3]
Command = Any


@pytest.fixture
def given() -> Iterator[None]:
    give("peer", ["--home", "my home"])
    yield
    give("peer", [])


def give(side: str, words: list[str]) -> None:
    asking = typer.Typer()

    @asking.command()
    def ask(home: Path = typer.Option(Path("usual"), "--home", callback=noting(side))) -> None:  # noqa: B008
        assert home

    assert CliRunner().invoke(asking, words).exit_code == 0


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("see `anonml peer status`.", "see `anonml peer status --home 'my home'`."),
        ("`anonml peer restore FILE --home FOLDER`", "`anonml peer restore FILE --home FOLDER`"),
        ("`anonml peer notify test` and `anonml teller init`", "`anonml peer notify test` and `anonml teller init`"),
        ("`anonml peer init` with another --home", "`anonml peer init` with another --home"),
    ],
)
def test_a_hint_names_the_home_that_was_given(given: None, line: str, shown: str) -> None:
    console = Terminal(file=io.StringIO())
    console.print(line, Text(line, "bold"), sep="|", soft_wrap=True)
    assert completed(line) == shown
    assert console.file.getvalue() == f"{shown}|{shown}\n"  # type: ignore[attr-defined]


def test_without_a_home_given_a_hint_stays_as_it_is(given: None) -> None:
    give("peer", [])
    assert completed("`anonml peer run`") == "`anonml peer run`"


def test_a_hint_names_the_folder_of_a_program_that_no_shell_finds(
    given: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = as_if_started_at(tmp_path / "my env" / "anonml", monkeypatch)
    line = "`anonml peer run` or `anonml doctor`"
    shown = f"`'{program}' peer run --home 'my home'` or `'{program}' doctor`"
    console = Terminal(file=io.StringIO())
    console.print(Text(line), soft_wrap=True)
    assert completed(line) == console.file.getvalue().rstrip() == shown  # type: ignore[attr-defined]
    other = as_if_started_at(tmp_path / "other" / "anonml", monkeypatch)
    monkeypatch.setenv("PATH", str(program.parent))
    assert completed("`anonml doctor`") == f"`{other} doctor`"
    monkeypatch.setenv("PATH", str(other.parent))
    assert completed("`anonml doctor`") == "`anonml doctor`"


@pytest.mark.parametrize("side", ["aggregator", "study", "peer", "teller", "doctor"])
def test_a_command_of_another_side_is_typed_on_another_machine(
    side: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Staff copy a member's command into a mail: it names no folder of theirs."""
    program = as_if_started_at(tmp_path / "there" / "anonml", monkeypatch, side, "look")
    told = {hint: str(program) in completed(f"`anonml {hint}`") for hint in ("peer look", "study lint", "doctor")}
    assert told == {
        "peer look": side in ("peer", "doctor"),
        "study lint": side in ("aggregator", "study", "doctor"),
        "doctor": True,
    }


def test_the_aggregators_home_is_that_of_its_studies(given: None) -> None:
    give("aggregator", ["--home", "there"])
    assert completed("`anonml study publish FILE`") == "`anonml study publish FILE --home there`"
    assert completed("`anonml study lint FILE`") == "`anonml study lint FILE`"
    give("aggregator", [])


def test_the_doctor_says_how_the_teller_of_this_home_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_home: object) -> tuple[str, str]:
        raise Unreachable("nobody answers")

    monkeypatch.setattr(diagnosis, "SERVICE_CHECKS", (lambda: Check("clock", True),))
    monkeypatch.setattr(service, "ask_words", away)
    home = str(tmp_path / "home")
    CliRunner().invoke(app, ["init", "--name", "Ann", "--loopback", "--home", home])
    said = CliRunner().invoke(app, ["doctor", "--home", home]).output
    assert f"start it: `anonml teller serve --home {home}`" in said


@pytest.mark.source
def test_each_hint_that_gets_a_home_is_of_a_command_that_takes_one() -> None:
    takes = {side: dict(leaves(placed(side), ())) for side in ("peer", "aggregator", "teller", "study")}
    files = [file for room in ("anon", "aggregator", "peer", "examples") for file in (ROOT / room).rglob("*.py")]
    hints = {hint[2] for file in files for hint in HINT.finditer(file.read_text())}
    for side, *words in (hint.split() for hint in hints):
        named = next((tuple(words[:n]) for n in (2, 1) if tuple(words[:n]) in takes[side]), None)
        if named is not None:
            assert takes[side][named] is not bool(HOMELESS.match(f"{side} {' '.join(words)}")), (side, words)
    assert len(hints) > 60


def placed(side: str) -> Command:
    return typer.main.get_command(application(side))


def leaves(command: Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], bool]]:
    if not hasattr(command, "commands"):
        yield path, any("--home" in option.opts for option in command.params)
    for name, below in getattr(command, "commands", {}).items():
        yield from leaves(below, (*path, name))
