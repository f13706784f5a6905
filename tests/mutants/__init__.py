"""Faults planted one at a time, to see which of them no test notices: `make mutants`.

The list is data (`*.toml` beside this file), a table for each file of the code:

    ["peer/rules/ledger.py"]
    tests = ["tests/peer/test_budgets.py"]
    mutants = [["Ledger.spend", "exact text", "its replacement", "The meaning of the fault."]]
    left = [["Ledger.spend", "exact text", "its replacement", "The meaning.", "The reason why no test notices it."]]

The first word of a row names the function or class that the text stands in, once; it is empty for the whole file. A
fifth word of `mutants` names other tests, separated by spaces. A whole file of tests runs without what `make test`
leaves out; a test named by its node runs whatever its marks.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


@frozen
class Mutant:
    """One fault. `left`: the reason why no test is expected to notice it, or empty."""

    file: str
    function: str
    text: str
    replacement: str
    meaning: str
    tests: tuple[str, ...]
    left: str = ""

    def __str__(self) -> str:
        return f"{self.file} {self.function}: {self.text!r} -> {self.replacement!r}: {self.meaning}"

    @property
    def module(self) -> str:
        """The name that the file is imported by."""
        return self.file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    def source(self) -> str:
        """The file with the fault. Raises `ValueError` where the text does not stand in the function exactly once."""
        source, start, end = _segment(self.file, self.function)
        if (found := source.count(self.text, start, end)) != 1:
            raise ValueError(f"the text stands there {found} times")
        place = source.index(self.text, start)
        return source[:place] + self.replacement + source[place + len(self.text) :]


def mutants() -> list[Mutant]:
    """All of them."""
    return [mutant for path in sorted(HERE.glob("*.toml")) for mutant in _read(path)]


def _read(path: Path) -> Iterator[Mutant]:
    for file, table in tomllib.loads(path.read_text("utf-8")).items():
        if unknown := table.keys() - {"tests", "mutants", "left"}:
            raise ValueError(f"{path.name}: {file}: {unknown}")
        for function, text, replacement, meaning, *tests in table.get("mutants", ()):
            named = tuple(tests[0].split()) if tests else tuple(table["tests"])
            yield Mutant(file, function, text, replacement, meaning, named)
        for function, text, replacement, meaning, reason in table.get("left", ()):
            yield Mutant(file, function, text, replacement, meaning, tuple(table["tests"]), reason)


@cache
def _segment(file: str, function: str) -> tuple[str, int, int]:
    """The file's text, and where the function with this qualified name begins and ends in it."""
    source = (ROOT / file).read_text("utf-8")
    if not function:
        return source, 0, len(source)
    scope: Sequence[ast.stmt] = ast.parse(source).body
    for name in function.split("."):
        kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        found = [node for node in scope if isinstance(node, kinds) and node.name == name]
        if len(found) != 1:
            raise ValueError(f"{file} has {len(found)} of {function}")
        scope = found[0].body
    first = min([found[0].lineno, *(one.lineno for one in found[0].decorator_list)])
    lines = source.splitlines(keepends=True)
    return source, len("".join(lines[: first - 1])), len("".join(lines[: found[0].end_lineno]))
