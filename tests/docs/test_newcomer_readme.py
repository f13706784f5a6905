"""Every command, option and file that README and documents show is there, and the README is a first screen."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.main import get_command

from anonml import COMMANDS, COMPLETION, HELP, _application

pytestmark = pytest.mark.source

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def shown(text: str) -> list[str]:
    """The command lines of blocks and of words in backticks that begin with `anonml`."""
    blocks = re.findall(r"^ *(anonml .*)$", text, re.MULTILINE)
    words = [one for one in re.findall(r"`(anonml [^`]*)`", text) if "anonml." not in one]
    return [re.sub(r"\s+#.*$", "", line) for line in (*blocks, *words)]


@cache
def tree(name: str) -> Any:
    """A command with all that is below it."""
    return get_command(_application(name))


def fault(line: str) -> str:
    """The first word of a command line that does not exist, or an empty text."""
    words = shlex.split(line.replace("...", "x").replace("|", " "))[1:]
    words = words[1:] if words[:1] == [HELP] else words
    if not words or words[0] == COMPLETION or words[0].startswith("-"):
        return ""
    if words[0] not in COMMANDS:
        return words[0]
    command = tree(words[0])
    rest = words[1:]
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        if rest[0] not in command.commands:
            return rest[0]
        command, rest = command.commands[rest[0]], rest[1:]
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    return next((word for word in rest if word.startswith("--") and word not in {*known, "--help"}), "")


def _text(path: Path) -> str:
    return path.read_text("utf-8")


SHOWN = sorted({line for path in DOCUMENTS for line in shown(path.read_text("utf-8")) if " ... " not in line})


def test_the_documents_show_commands() -> None:
    assert len(SHOWN) > 80


@pytest.mark.parametrize("line", SHOWN)
def test_every_command_and_option_that_is_shown_exists(line: str) -> None:
    assert fault(line) == "", f"{line!r}: no {fault(line)!r}"


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("anonml nothing", "nothing"),
        ("anonml peer fly", "fly"),
        ("anonml peer join x --no-such", "--no-such"),
        ("anonml demo", ""),
    ],
)
def test_what_does_not_exist_is_found(line: str, missing: str) -> None:
    assert fault(line) == missing


def texts(path: Path) -> Iterator[str]:
    """The texts of a file for people: a whole page, or a program's strings, with x for each value."""
    if path.suffix != ".py":
        yield path.read_text("utf-8")
        return
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else " x" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


SAYING = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(
        one
        for side in ("anon", "peer", "aggregator")
        for kind in ("*.py", "*.html")
        for one in (ROOT / side).rglob(kind)
    ),
]


def test_every_command_that_a_message_or_a_document_names_exists() -> None:
    """`begin-anew` sent its owner to a command that nobody ever wrote."""
    named = {
        (path, line) for path in SAYING for text in texts(path) for line in re.findall(r"`(anonml [a-z][^`\n]*)`", text)
    }
    assert len(named) > 150
    named = {(path, line.removesuffix(" ...")) for path, line in named if " ... " not in line}
    wrong = {f"{path.relative_to(ROOT)}: {line}": lacking for path, line in named if (lacking := fault(line))}
    assert wrong == {}


@pytest.mark.parametrize(
    "target", sorted(set(re.findall(r"(?:`|```sh\n)make ([a-z][a-z-]*)", "\n".join(map(_text, DOCUMENTS)))))
)
def test_every_make_target_that_is_shown_exists(target: str) -> None:
    assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "link"),
    sorted(
        {
            (path, link)
            for path in ROOT.glob("*.md")
            for link in re.findall(r"(?:\]\(|src=\")([\w./-]+)[\"#)]", _text(path))
        }
    ),
)
def test_every_file_that_a_page_of_the_root_links_to_exists(page: Path, link: str) -> None:
    """The site's strict build looks at those of `docs/`."""
    assert (page.parent / link).exists()


def words(text: str) -> list[str]:
    """The words that a reader of a page reads: no addresses, no markup."""
    return re.findall(r"[\w'][\w'.-]*", re.sub(r"\]\([^)]*\)|<[^>]*>|https?://\S+", " ", text))


def test_the_readme_is_a_first_screen() -> None:
    assert 400 <= len(words(README)) <= 600
    assert [line for line in README.splitlines() if len(line) > 124 and not line.startswith("|")] == []
    assert re.findall(r'<img src="docs/pictures/([\w.-]+)"', README) == ["a-yes.gif", "report.png"]
    with Image.open(ROOT / "docs/pictures/a-yes.gif") as moving:
        assert moving.n_frames >= 5 and (ROOT / "docs/pictures/a-yes.gif").stat().st_size < 300_000


def test_the_readmes_class_sizes_are_those_that_were_measured() -> None:
    """Its rows are cut from the page on class sizes: the same people, without the column of epsilon 0.5."""
    page = _text(ROOT / "docs/staff/class-size.md").partition("### Without tellers")[2]
    measured = page.partition("was the model shown")[2].partition("**Asking")[0]
    cut = {
        cells[0]: cells[2:]
        for line in measured.splitlines()
        if len(cells := re.findall(r"[\d,]+(?=%? ?[|,]|%)", line)) == 5
    }
    rows = [re.findall(r"[\d,]+", line) for line in README.splitlines() if re.match(r"\| [\d,]+ \|", line)]
    assert len(rows) == 4 and all(cut[row[0]] == row[1:] for row in rows), cut
