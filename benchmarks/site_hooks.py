"""Pages at the project's root as pages of the site, and links that lead out of `docs/`. `make docs` reads this file.

Mkdocs reads `docs/` alone. A link to a root page leads to its copy on the site; one to a file of code, which the
site does not hold, becomes its words. A link to nothing is left as it is, and the strict build fails on it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
AT_ROOT = {"README.md": "README.md"} | {
    name: f"project/{name}" for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
}
"""The place on the site of each page at the root."""
_LINK = re.compile(r"(!?\[[^\]]*\]\(|<img src=\")([^)\s#:\"]+)([^)\"]*[)\"])")


def on_files(files: Any, config: Any) -> Any:
    """Add the root's pages to the site's."""
    from mkdocs.structure.files import File  # type: ignore[import-not-found]

    for name, place in AT_ROOT.items():
        files.append(File.generated(config, place, content=(ROOT / name).read_text("utf-8")))
    return files


UNSEARCHED = ("decisions/", "project/SECURITY.md", "project/CHANGELOG.md")
"""Pages that a search leaves out: their words are those of readers' pages, and stand there more often."""
FIRST, FIRST_BOOST = ("student/", "staff/"), 4
"""Readers' pages come before the others."""


def search_of(page: str) -> dict[str, object]:
    """The weight of a page in the site's search, as its builder reads it; empty for the usual one."""
    if page.startswith(UNSEARCHED):
        return {"exclude": True}
    return {"boost": FIRST_BOOST} if page.startswith(FIRST) else {}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with links that lead to pages of the site, and its weight in the search."""
    page.meta["search"] = search_of(page.file.src_uri)
    return nested(relinked(markdown, page.file.src_uri))


def nested(markdown: str) -> str:
    """The text with parts of lists indented twice as far: the site's reader asks for four spaces where others take two.
    """
    lines, more, inside = [], 0, False
    for line in markdown.split("\n"):
        more = more if inside else len(line) - len(line.lstrip(" "))
        inside ^= line.lstrip(" ").startswith("```")
        lines.append(" " * more + line)
    return "\n".join(lines)


def relinked(markdown: str, page: str) -> str:
    """The text with each link and picture as the site needs it. `page`: the place of the page on the site."""
    own = "" if page in AT_ROOT.values() else posixpath.dirname(f"docs/{page}")
    here = posixpath.dirname(page) or "."

    def link(found: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join(own, found[2]))
        if inside := _on_site(place):
            return f"{found[1]}{posixpath.relpath(inside, here)}{found[3]}"
        outside = not place.startswith(("docs/", "..")) and (ROOT / place).exists()
        return found[1][1:-2] if outside and found[1][0] == "[" else found[0]

    return _LINK.sub(link, markdown)


def _on_site(place: str) -> str:
    inside = place.startswith("docs/") and (ROOT / place).is_file()
    return AT_ROOT.get(place, place.removeprefix("docs/") if inside else "")
