"""The reference pages name every command, option, exit code and key of a study file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from anon.kit.terminal.helps import FILE, help_of
from anon.machine.outages import TABLE
from anon.study.schema import WORDS
from anonml import COMMANDS, application
from benchmarks.reference import FOLDER, PAGES, helps
from tests.docs.repository import ROOT
from tests.support.protocols import PROTOCOLS

pytestmark = pytest.mark.source

COMMAND_PAGE, CODE_PAGE, STUDY_PAGE, _ = ((FOLDER / f"{name}.md").read_text("utf-8") for name in PAGES)
CODES = {(int(code), word) for code, word in re.findall(r"^\| (\d+) \| (?:`([\w-]+)`)? \|", CODE_PAGE, re.MULTILINE)}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_as_the_code_makes_it(name: str) -> None:
    """Equal bytes: what a page lacks of the code, or has too much, fails."""
    assert (FOLDER / f"{name}.md").read_text("utf-8") == PAGES[name](), "run `python -m benchmarks.reference`"


def test_help_is_as_the_commands_say_it() -> None:
    """Help loads no command: it is shown from this file."""
    assert FILE.read_text("utf-8") == helps(), "run `python -m benchmarks.reference`"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_every_option(name: str) -> None:
    """Looked up without the code that writes the file."""
    for path, command in _leaves(name, get_command(application(name))):
        shown = help_of(path.split()) or ""
        options = [opt for param in command.params if not getattr(param, "hidden", False) for opt in param.opts]
        lacking = [option for option in options if option.startswith("-") and option not in shown]
        assert lacking == [] or command.hidden, path
    assert help_of([name, "no-such"]) is None


def test_every_code_of_an_outage_is_explained() -> None:
    codes = {cell.code for row in TABLE.values() for cell in row.values()} - {None}
    assert len(codes) >= 4 and codes <= {code for code, _ in CODES}


def _leaves(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", {})
    yield path, command
    for name, one in inner.items():
        yield from _leaves(f"{path} {name}", one)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_stands_in_its_own_chapter(name: str) -> None:
    """Looked up without the code that writes the page."""
    for path, command in _leaves(f"anonml {name}", get_command(application(name))):
        found = re.search(rf"^##+ `{path}[` ](.*?)(?=^##|\Z)", COMMAND_PAGE, re.MULTILINE | re.DOTALL)
        assert (found is None) == bool(command.hidden), path
        options = (
            []
            if command.hidden
            else [one for param in command.params if not getattr(param, "hidden", False) for one in param.opts]
        )
        lacking = [option for option in options if option.startswith("-") and f"`{option}" not in found[1]]  # type: ignore[index]
        assert lacking == [], path


def test_every_word_and_code_of_a_failure_is_explained() -> None:
    """Those that `anonml.py` gives itself, and every code that a command ends with."""
    given = set(re.findall(r'_fail\("([\w-]+)"', (ROOT / "anonml.py").read_text("utf-8")))
    assert len(given) >= 5 and given <= {word for _, word in CODES}
    files = [
        ROOT / "anonml.py",
        *(path for side in ("anon", "peer", "aggregator", "examples") for path in (ROOT / side).rglob("*.py")),
    ]
    ends = {
        int(code)
        for path in files
        for code in re.findall(r"(?:typer\.Exit|sys\.exit|SystemExit)\((\d+)\)", path.read_text("utf-8"))
    }
    errors = {
        int(code)
        for code in re.findall(r"exit_code(?:: ClassVar\[int\])? = (\d+)", (ROOT / "anon/errors.py").read_text("utf-8"))
    }
    assert ends and len(errors) > 6 and ends | errors <= {code for code, _ in CODES}


OF_DESIGNS = [f"{design.section.__name__}.{key}" for design in PROTOCOLS.designs.values() for key in design.words]


@pytest.mark.parametrize("key", [*WORDS, *OF_DESIGNS])
def test_every_key_of_a_study_file_stands_in_its_section(key: str) -> None:
    section, _, name = key.rpartition(".")
    titles = {"": "The file itself", "OnePacket": "one-packet", "Paper": '"paper"', "Translation": "[texts.LANGUAGE]"}
    titles |= {
        "TablesSum": "tables-sum",
        "Marginals": '"marginals"',
        "Moments": '"moments"',
        "Gradient": '"gradient"',
        "CalibratedRule": '"rule"',
        "Averaging": '"averaging"',
        "Transfer": '"transfer"',
        "MaskedMoments": '"masked-moments"',
        "MaskedAveraging": '"masked-averaging"',
        "MaskedTransfer": '"masked-transfer"',
        "ObliviousAveraging": '"oblivious-averaging"',
        "GroupAveraging": '"group-averaging"',
        "Trees": '"trees"',
        "TellerPlace": "[[tellers]]",
        "GivenFile": "[[given]]",
    }
    title = titles.get(section, f"[{section.lower()}")
    chapter = next(one for one in STUDY_PAGE.split("\n## ")[1:] if title in one.partition("\n")[0])
    assert f"| `{name}` |" in chapter


@pytest.mark.parametrize("row", [line for line in (COMMAND_PAGE + STUDY_PAGE).splitlines() if line.startswith("| `")])
def test_every_option_and_key_says_what_it_is_for(row: str) -> None:
    name, meaning, *_ = re.split(r"(?<!\\)\|", row.strip("| "))
    assert len(meaning.split()) >= 2, name
