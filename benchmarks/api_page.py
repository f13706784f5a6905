"""The Python interface as one Markdown page, written from the public docstrings into docs/researcher/api.md.

    python -m benchmarks.api_page

`PUBLIC` names the parts that researchers may rely on. tests/docs/test_api_page.py compares the page with the code.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

from anonml import OFFERED

PAGE = Path(__file__).resolve().parents[1] / "docs" / "researcher" / "api.md"
PUBLIC: dict[str, tuple[str, ...]] = {
    "aggregator.estimator.classifier": ("LocallyPrivateClassifier", "PrivacyLeakWarning", "NotShownWarning"),
    "aggregator.estimator.prediction": ("PublishedClassifier", "Explanation"),
    "aggregator.estimator.export": ("to_onnx", "to_skops", "from_skops"),
    "aggregator.notebook": ("Study", "Sample", "Result", "Report", "Expectation", "Table"),
    "aggregator.audit": ("audit", "AuditResult", "Finding", "Verdict"),
    "anon.protocols.installed": ("load_model",),
    "anon.protocols.models.tables": ("from_json", "Model"),
    "examples.testing": ("run", "run_study", "with_protocol", "Outcome"),
}
OURS = ("anon", "peer", "aggregator", "examples")
_ENTRY = re.compile(r"(?P<name>[\w, ]+?)(?:, (?P<rest>required|optional))? : (?P<kind>.+)")


def page() -> str:
    """The whole page."""
    lines = [
        "# The Python interface",
        "",
        "Written by `python -m benchmarks.api_page` from the docstrings; do not edit it by hand. Longer introductions:",
        "[the estimator](../estimator.md), [notebooks](notebooks.md).",
        "",
        f"The short way to those that are used most: `from anonml import {', '.join(OFFERED)}`.",
        "",
    ]
    for module, names in PUBLIC.items():
        found = importlib.import_module(module)
        lines += [f"## `{module}`", "", *_text(found), ""]
        for name in names:
            lines += _entry(name, getattr(found, name))
    return _INTERACTIVE.sub(_shown, _INDENTED.sub(_fenced, "\n".join(lines).rstrip() + "\n"))


_INDENTED = re.compile(r"(?<=\n\n)(?: {4}.+\n)+")
_INTERACTIVE = re.compile(r"(?<=\n)(?:>>> .+\n(?:.+\n)*)+")


def _shown(example: re.Match[str]) -> str:
    """An example with its output, as a block of its own. The tests run it where it stands in the code."""
    return f"```pycon\n{example[0]}```\n"


def _fenced(code: re.Match[str]) -> str:
    return f"<!-- not run: an outline; the data are yours -->\n```python\n{dedent(code[0])}```\n"


def _entry(name: str, thing: Any) -> Iterator[str]:
    yield from (f"### {name}", "", f"`{name}{_signature(thing)}`", "", *_text(thing), "")
    if inspect.isclass(thing):
        for method, found in _methods(thing):
            called = "" if isinstance(found, property) else _signature(found)
            yield from (f"#### {name}.{method}", "", f"`{method}{called}`", "", *_text(found), "")


def _methods(owner: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties, those of our own bases included, in the order in which they are written."""
    seen = set[str]()
    for base in owner.__mro__:
        for name, found in vars(base).items() if base.__module__.split(".")[0] in OURS else ():
            method = getattr(found, "__func__", found)
            told = inspect.isfunction(method) or isinstance(found, property)
            if told and not name.startswith("_") and name not in seen and method.__doc__:
                seen.add(name)
                yield name, method


def _signature(thing: Any) -> str:
    """Names and defaults; types are in the text."""
    try:
        given = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return ""
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in given if one.name not in ("self", "cls")]
    return str(inspect.Signature(bare))


def _text(thing: Any) -> Iterator[str]:
    """A docstring as Markdown: sections become bold words, and their entries a list."""
    lines = (inspect.getdoc(thing) or "").splitlines()
    section = ""
    for at, line in enumerate(lines):
        following = lines[at + 1] if at + 1 < len(lines) else ""
        if line and set(line) == {"-"}:
            yield ""
        elif following and set(following) == {"-"}:
            section = line
            yield f"**{line}**"
        elif section and (entry := _ENTRY.fullmatch(line)):
            yield _listed(section, entry)
        else:
            yield line if _in_code(lines, at) or not section else f"  {line.strip()}".rstrip()


def _listed(section: str, entry: re.Match[str]) -> str:
    kind = ", ".join(part for part in (entry["kind"], entry["rest"]) if part)
    return f"* `{entry['name']}`: {kind}" if section == "Attributes" else f"* `{entry['name']}` ({kind}):"


def _in_code(lines: list[str], at: int) -> bool:
    """True for an indented line that belongs to a block after an empty line, and for lines of an interactive example.
    """
    first = at
    while first and lines[first].startswith("    "):
        first -= 1
    if first < at and not lines[first].strip():
        return True
    first = at
    while first and lines[first - 1].strip() and set(lines[first - 1]) != {"-"}:
        first -= 1
    return lines[first].startswith(">>> ")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
