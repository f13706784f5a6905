"""Examples in docstrings are run where they stand, as `>>>` of Python's `doctest`, and there are enough of them.

The examples of a package's own docstring are run first, and those of its modules go on with the names that they leave.
"""

from __future__ import annotations

import ast
import doctest
import importlib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.docs.repository import ROOT
from tests.docs.test_sentences import docstrings, own_modules

PROMPT = ">>> "
LEAST = 30
OPTIONS = doctest.ELLIPSIS


@cache
def files() -> tuple[Path, ...]:
    """The modules of the product whose docstrings hold examples."""
    return tuple(path for path in own_modules() if any(PROMPT in text for text in _docstrings(path)))


@cache
def _docstrings(path: Path) -> tuple[str, ...]:
    text = path.read_text("utf-8")
    return tuple(docstrings(ast.parse(text))) if PROMPT in text else ()


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def wrong(example: doctest.DocTest) -> str:
    """The report about an example that does not give the output that it shows, or nothing."""
    told: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(example, out=told.append, clear_globs=False)
    return "".join(told)


def _examples(name: str, names: dict[str, Any]) -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    return finder.find(importlib.import_module(name), name, extraglobs=names)


def names_left(package: str) -> dict[str, Any]:
    """The names that the examples of a package's own docstring leave. An example that is wrong fails."""
    module = importlib.import_module(package)
    first = doctest.DocTestParser().get_doctest(module.__doc__ or "", dict(vars(module)), package, module.__file__, 0)
    assert wrong(first) == ""
    return {name: value for name, value in first.globs.items() if vars(module).get(name) is not value}


@pytest.mark.parametrize("path", files(), ids=_name)
def test_examples_show_what_happens(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in a namespace of its own, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    name = _name(path)
    found = _examples(name, names_left(name if path.name == "__init__.py" else name.rpartition(".")[0] or name))
    assert sum(bool(example.examples) for example in found) == sum(PROMPT in text for text in _docstrings(path))
    assert [report for example in found if (report := wrong(example))] == []


def test_enough_is_shown() -> None:
    assert sum(PROMPT in text for path in files() for text in _docstrings(path)) >= LEAST


@pytest.mark.parametrize(
    "text", [">>> 1 + 1\n3\n", ">>> 1 / 0\n", ">>> int('a')\nTraceback (most recent call last):\nValueError: b\n"]
)
def test_a_wrong_example_is_seen(text: str) -> None:
    """Another output, an error that is not shown, and one with another message."""
    parsed = doctest.DocTestParser().get_doctest(text, {}, "wrong", None, 0)
    assert "Failed example" in wrong(parsed)
    assert wrong(doctest.DocTestParser().get_doctest(">>> 1 + 1\n2\n", {}, "right", None, 0)) == ""
