"""The blocks of code in the project's documents, and what is known of each without running it.

A block names its language. One that no test runs has a comment just above it, which says why:
`<!-- not run: it needs the Tor network -->`.
"""

from __future__ import annotations

import ast
import doctest
import json
import re
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import frozen

from tests.docs.repository import ROOT, pages

LANGUAGES = ("sh", "python", "pycon", "toml", "json", "mermaid", "text")
RUN = ("sh", "python")
"""The languages whose blocks are run. The others are parsed; a drawing and a text have nothing to parse. An example of
`pycon` is run where it stands in the code (`test_examples_in_docstrings.py`)."""
_OPENING = re.compile(r"(?P<indent> *)```(?P<language>\S*)")
_MARK = re.compile(r" *<!-- not run: (?P<reason>.+) -->")


@frozen
class Block:
    """A block of a page. `reason` is empty where it is to be run."""

    page: str
    line: int
    language: str
    text: str
    reason: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(text: str, page: str = "") -> list[Block]:
    """The blocks of a page in order. Raises `ValueError` for one that is not closed."""
    found, lines, number = [], text.split("\n"), 0
    while number < len(lines):
        opening = _OPENING.match(lines[number])
        if opening:
            begin, indent = number, opening["indent"]
            number = next((one for one in range(begin + 1, len(lines)) if lines[one].rstrip() == f"{indent}```"), -1)
            if number < 0:
                raise ValueError(f"{page}:{begin + 1}: the block is not closed")
            mark = _MARK.fullmatch(lines[begin - 1]) if begin else None
            body = "\n".join(line.removeprefix(indent) for line in lines[begin + 1 : number])
            found.append(Block(page, begin + 1, opening["language"], body + "\n", mark["reason"] if mark else ""))
        number += 1
    return found


def all_blocks() -> list[Block]:
    """Those of every document."""
    return [one for path in pages() for one in blocks_of(path.read_text("utf-8"), _name(path))]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def indented(text: str) -> list[str]:
    """Lines of code that stand in no block: indented by four, after an empty line and in no list."""
    plain = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.MULTILINE | re.DOTALL)
    found, before, listed = [], "", False
    for line in plain.split("\n"):
        listed = bool(re.match(r" *(?:[-*]|\d+\.) ", line)) or (listed and (not line or line.startswith(" ")))
        if line.startswith("    ") and not listed and not before.strip():
            found.append(line)
        before = line
    return found


def unread(block: Block) -> str:
    """The complaint of a reader of its language about a block, or nothing."""
    try:
        READERS.get(block.language, lambda text: None)(block.text)
    except (SyntaxError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _shell(text: str) -> None:
    done = subprocess.run(["bash", "-n", "-c", text], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(done.stderr)


READERS: Mapping[str, Callable[[str], object]] = {
    "sh": _shell,
    "python": ast.parse,
    "pycon": doctest.DocTestParser().get_examples,
    "toml": tomllib.loads,
    "json": json.loads,
}
