"""Every section of the design that is cited exists, and so does every name of the glossary."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.repository import ROOT, pages, sources

pytestmark = pytest.mark.source

DESIGN = (ROOT / "docs/design.md").read_text("utf-8")
GLOSSARY = (ROOT / "docs/glossary.md").read_text("utf-8")
CITED = re.compile(r"design,? sections? (\d+)(?:, step (\d+))?", re.IGNORECASE)


def sections() -> dict[int, set[int]]:
    """The numbered sections of the design, each with the numbers of its steps."""
    parts = re.split(r"^## (\d+)\. ", DESIGN, flags=re.MULTILINE)[1:]
    return {
        int(number): {int(step) for step in re.findall(r"^\*\*Step (\d+)\.", text, re.MULTILINE)}
        for number, text in zip(parts[::2], parts[1::2], strict=True)
    }


def cited(text: str) -> set[tuple[int, int | None]]:
    """The sections and steps that a text cites, also across the end of a line."""
    flat = re.sub(r"\s*\n[ \t]*(?:#:?[ \t]*)?", " ", text)
    return {(int(section), int(step) if step else None) for section, step in CITED.findall(flat)}


def unknown(text: str) -> set[tuple[int, int | None]]:
    """The citations that lead nowhere."""
    known = sections()
    return {
        (section, step)
        for section, step in cited(text)
        if section not in known or (step is not None and step not in known[section])
    }


def test_the_sections_are_numbered_from_one() -> None:
    assert list(sections()) == list(range(1, len(sections()) + 1))
    assert sections()[3] == set(range(1, 10))


def test_a_citation_that_leads_nowhere_is_seen() -> None:
    assert unknown("see DESIGN section 99") == {(99, None)}
    assert unknown("# (design\n    # section 3, step 12)") == {(3, 12)}
    assert unknown("(design section 3, step 4), design section 8") == set()


def test_every_cited_section_exists() -> None:
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in (*sources(), *pages())}
    del texts[Path(__file__).relative_to(ROOT).as_posix()]
    citing = {name: cited(text) for name, text in texts.items() if cited(text)}
    assert len(citing) > 8, "the search has gone blind"
    assert {name: unknown(texts[name]) for name in citing if unknown(texts[name])} == {}


@cache
def names_of(room: str) -> frozenset[str]:
    """The classes, functions and constants that the modules of a room define; of a package's root, only its own."""
    folder = ROOT / room
    files = folder.rglob("*.py") if "/" in room else folder.glob("*.py")
    names: set[str] = set()
    for path in files:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.Assign):
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
    return frozenset(names)


def rows() -> list[tuple[str, str]]:
    """The glossary's terms, each with its cell of rooms and names."""
    cells = [line.strip().strip("|").split(" | ") for line in GLOSSARY.splitlines() if line.startswith("| ")]
    return [(row[0].strip(), row[-1]) for row in cells if row[0].strip() != "term"]


def lost(cell: str) -> list[str]:
    """The names of a cell that their room does not define."""
    return [
        f"{room}: {name}"
        for room, *names in (re.findall(r"`([^`]+)`", place) for place in cell.split(";") if "`" in place)
        for name in names
        if name not in names_of(room)
    ]


def test_the_glossary_has_one_row_for_each_term() -> None:
    terms = [term for term, _ in rows()]
    assert len(terms) > 60 and len(set(terms)) == len(terms)


@pytest.mark.parametrize(("term", "cell"), rows())
def test_what_the_glossary_names_exists(term: str, cell: str) -> None:
    assert lost(cell) == []


def test_a_lost_name_is_seen() -> None:
    assert lost("`anon/study`: `Manifest`, `Manifesto`; `peer/rules`: `Ledger`") == ["anon/study: Manifesto"]
