"""A page keeps what it tells of results that are not kept here.

Results lie in a folder that is not in the repository. A page that is written from them gives all of its headings, and
nothing below those without results.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from benchmarks.paper.findings import table

Chapter = dict[str, str]
"""By sub-heading what stands below it; under no name what stands before the first."""


def merged(old: str, new: str, otherwise: str = "") -> str:
    """The new page. Below a heading where it has nothing stands what the old page has there.

    A chapter that neither has says `otherwise`; with that empty, it is left out. A sub-heading of the old page alone
    stays below its chapter, and a chapter of the old page alone does not: one that is renamed is gone.
    """
    before, parts = dict(_chapters(old)), []
    for heading, chapter in _chapters(new):
        kept = before.get(heading, {})
        both = {name: chapter.get(name) or kept.get(name, "") for name in (*chapter, *kept)}
        told = [f"{name}\n\n{text}".strip("\n") for name, text in both.items() if text]
        if told or otherwise:
            parts += [heading, *(told or [otherwise])]
    return "\n\n".join(part for part in parts if part) + "\n"


def section_of(page: str, heading: str) -> str:
    """The text under a heading, with all below it; nothing where the page has no such heading."""
    chapters = dict(_chapters(page))
    if heading in chapters:
        return "\n\n".join(f"{name}\n\n{text}".strip("\n") for name, text in chapters[heading].items())
    return next((chapter[heading] for chapter in chapters.values() if heading in chapter), "")


def tables_of(section: str) -> list[list[list[str]]]:
    """The cells of each line of each table, its header first."""
    tables = re.findall(r"(?m)^\| .*\n\|---.*(?:\n\| .*)*", section)
    return [[line[2:-2].split(" | ") for line in text.splitlines() if line.startswith("| ")] for text in tables]


def table_beside(old: str, header: Sequence[str], body: Iterable[Sequence[str]], keys: int) -> str:
    """A table. A line of the old section's table with this header stays where none has the same first cells."""
    lines = [list(line) for line in body]
    there = {tuple(line[:keys]) for line in lines}
    for first, *rest in tables_of(old):
        if first == list(header):
            lines += [line for line in rest if tuple(line[:keys]) not in there]
    return table(header, lines)


def _chapters(page: str) -> list[tuple[str, Chapter]]:
    found = []
    for part in re.split(r"(?m)^(?=## )", page):
        heading, _, rest = part.partition("\n") if part.startswith("## ") else ("", "", part)
        chapter = Chapter()
        for below in re.split(r"(?m)^(?=### )", rest):
            name, _, text = below.partition("\n") if below.startswith("### ") else ("", "", below)
            chapter[name] = text.strip("\n")
        found.append((heading, chapter))
    return found
