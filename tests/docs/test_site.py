"""The documentation as a site: built strictly, every page in it, no link to nothing, and nothing from another host.

The strict build knows each link, anchor and picture between pages. Links to other hosts are not followed: no network.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from benchmarks.site_hooks import AT_ROOT, nested, relinked
from tests.docs.repository import ROOT, pages

pytestmark = pytest.mark.source

MKDOCS = ROOT / ".venv" / "docs" / "bin" / "mkdocs"
LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data", "link": "href"}
LONGEST = 120


@pytest.mark.parametrize(
    ("page", "link", "shown"),
    [
        ("README.md", "[a](docs/threats.md#b)", "[a](threats.md#b)"),
        ("README.md", '<img src="docs/pictures/rooms.svg" alt="x">', '<img src="pictures/rooms.svg" alt="x">'),
        ("project/SECURITY.md", "[a](docs/threats.md)", "[a](../threats.md)"),
        ("decisions/0001-layout-and-import-rules.md", "[a](../../SECURITY.md)", "[a](../project/SECURITY.md)"),
        ("threats.md", "see [the code](../anon/errors.py).", "see the code."),
        ("threats.md", "[a](nowhere.md)", "[a](nowhere.md)"),
        ("threats.md", "[a](../nowhere.md)", "[a](../nowhere.md)"),
        ("threats.md", "[a](https://example.org/b)", "[a](https://example.org/b)"),
    ],
)
def test_links_lead_to_pages_of_the_site(page: str, link: str, shown: str) -> None:
    assert relinked(link, page) == shown


def test_parts_of_lists_are_indented_as_the_site_asks() -> None:
    assert nested("* a\n\n  ```sh\n  if\n    b\n  ```\n\n```sh\n  c\n```\n  d") == (
        "* a\n\n    ```sh\n    if\n      b\n    ```\n\n```sh\n  c\n```\n    d"
    )


class Page(HTMLParser):
    """The addresses that a browser fetches by itself to show a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect."""
        given = dict(attrs)
        if tag in LOADING and given.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(given.get(LOADING[tag]) or "")


def foreign(text: str) -> list[str]:
    """The addresses on other hosts that a page fetches."""
    return [one for one in Page(text).loads if re.match(r"(?:[a-z]+:)?//", one)]


def test_a_foreign_host_is_seen() -> None:
    text = (
        '<link rel="stylesheet" href="https://fonts.example/a"><script src="//b/c.js"></script><img src="d.png"><a '
        'href="https://e">f</a>'
    )
    assert foreign(text) == ["https://fonts.example/a", "//b/c.js"]


def built(source: Path, made: Path) -> subprocess.CompletedProcess[str]:
    """The builder, with warnings as errors. `--quiet` would hide the warnings from it."""
    if not MKDOCS.exists():
        pytest.skip("the site's builder is missing: make docs")
    words = [str(MKDOCS), "build", "--strict", "--site-dir", str(made)]
    surroundings = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(
        words, cwd=source, env=surroundings, capture_output=True, text=True, check=False, timeout=LONGEST
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("site") / "site"
    done = built(ROOT, made)
    assert done.returncode == 0, done.stdout + done.stderr
    return made


@pytest.mark.process
def test_the_site_is_built_without_a_warning_and_holds_every_page(site: Path) -> None:
    """Strict: a dead link or anchor, or a page that no menu names, is a warning and fails the build."""
    docs = [path.relative_to(ROOT / "docs").as_posix() for path in pages() if path.is_relative_to(ROOT / "docs")]
    wanted = {
        re.sub(r"README\.md$", "index.md", one).removesuffix(".md") + ".html" for one in (*docs, *AT_ROOT.values())
    }
    assert len(wanted) > 40
    assert wanted <= {path.relative_to(site).as_posix() for path in site.rglob("*.html")}


@pytest.mark.process
def test_lists_and_tables_are_shown_as_such(site: Path) -> None:
    """The site's reader takes them for text where an empty line before them, or an indentation, is missing."""
    found = {}
    for path in site.rglob("*.html"):
        text = re.sub(r"<pre.*?</pre>", "", path.read_text("utf-8"), flags=re.DOTALL)
        if lines := re.findall(r"^ *(?:\* |\| ).*", text, re.MULTILINE):
            found[path.name] = lines
    assert found == {}


@pytest.mark.process
def test_the_site_fetches_nothing_from_another_host(site: Path) -> None:
    assert {path.name: found for path in site.rglob("*.html") if (found := foreign(path.read_text("utf-8")))} == {}
    styles = {
        path.name: re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//[^)\"']+", path.read_text("utf-8"))
        for path in site.rglob("*.css")
    }
    assert styles and not any(styles.values()), styles


@pytest.mark.process
@pytest.mark.parametrize(
    ("old", "new"),
    [("(threats.md)", "(threads.md)"), ("(threats.md#", "(threats.md#no-"), ("(pictures/", "(no-pictures/")],
    ids=["page", "anchor", "picture"],
)
def test_a_dead_link_fails_the_build(old: str, new: str, tmp_path: Path) -> None:
    """On a copy of the pages with one link broken."""
    for part in ("docs", "benchmarks"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("out", "__pycache__"))
    for name in ("mkdocs.yml", *AT_ROOT):
        shutil.copyfile(ROOT / name, tmp_path / name)
    broken = next(path for path in (tmp_path / "docs").rglob("*.md") if old in path.read_text("utf-8"))
    broken.write_text(broken.read_text("utf-8").replace(old, new), "utf-8")
    done = built(tmp_path, tmp_path / "site")
    assert done.returncode != 0 and new.strip("()") in done.stdout + done.stderr


def test_every_decision_is_listed() -> None:
    listed = re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", (ROOT / "docs/decisions/README.md").read_text("utf-8"))
    assert listed == sorted(path.name for path in (ROOT / "docs/decisions").glob("0*.md"))
