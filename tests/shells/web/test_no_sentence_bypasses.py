"""Every text of the owner's page comes out of the catalogues, or is the study's or the owner's own.

The pages are read in a made-up language that puts ⟦ and ⟧ around each translated text. Text outside of them must be
the study's, the owner's, a command, a time or a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from babel import Locale

from peer.rules.lifecycle import State
from peer.web import languages
from tests.support.browsing_model import model_of
from tests.support.fake_aggregator import advance, until_state
from tests.support.visiting import Got, visited

OWN = {"anonml", "epsilon", "tor", "python", "usr", "sbin", "bin", "english", "deutsch", "español", "nederlands"}
"""Names of programs with their paths, names of languages, and the unit of the budget."""
FOREIGN = {"code", "pre", "bdi", "time", "style", "script"}
"""Elements whose text is not ours: commands, the study's text, times in the language's own form."""
SPOKEN = ("aria-label", "title", "placeholder", "alt", "data-name")
_WORD = re.compile(r"[^\W\d_]{2,}")
_EMPTY = {"meta", "link", "input", "br", "hr", "img", "rect", "circle", "path"}
CSV = b"Age in years;cups;tired;remark\n41,5;many;1;mine\nn/a;Many;0;mine\n"


class Outside(HTMLParser):
    """The words of a page that stand outside of every ⟦ ⟧ and of elements whose text is not ours."""

    def __init__(self) -> None:
        super().__init__()
        self.depth, self.inside, self.words = 0, list[str](), list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Attributes that are spoken or shown count as text."""
        named = dict(attrs)
        for name in SPOKEN:
            text = named.get(name) or ""
            if text and "⟦" not in text:
                self.words += _WORD.findall(text)
        if tag not in _EMPTY:
            known = named.get("class") or ""
            foreign = (
                tag in FOREIGN
                or "dir" in named
                or ("lang" in named and tag != "html")
                or {"mono", "words"} & {*known.split()}
            )
            self.inside.append(tag if not foreign else f"{tag} foreign")

    def handle_endtag(self, tag: str) -> None:
        """Elements close in the order in which they were opened."""
        while self.inside and self.inside.pop().split()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        """Brackets may span elements."""
        outside = ""
        for sign in data:
            self.depth += (sign == "⟦") - (sign == "⟧")
            outside += sign if not self.depth and sign != "⟧" else " "
        if not any("foreign" in tag for tag in self.inside):
            self.words += _WORD.findall(outside)


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every language is the made-up one."""
    whole = languages.Language(
        "de", Locale.parse("de"), lambda pattern, many, count: f"⟦{many if many and count != 1 else pattern}⟧"
    )
    monkeypatch.setattr(languages, "language", lambda _code: whole)


def _words(*texts: str) -> set[str]:
    return {word.lower() for text in texts for word in _WORD.findall(text)}


def _bypassing(got: Got, known: set[str]) -> Iterator[str]:
    reader = Outside()
    reader.feed(got.text)
    assert not reader.depth, got.url
    yield from (word for word in reader.words if word.lower() not in known)


@pytest.mark.usefixtures("marked")
async def test_no_text_of_a_page_bypasses_the_catalogues(tmp_path: Path) -> None:
    async with visited(tmp_path / "home", data=False) as page:
        manifest = page.aggregator.manifest
        names = [one.name for one in (*manifest.features, manifest.label)]
        known = OWN | _words(
            manifest.title, *names, "person some many none sleep csv remark mine jahre years age in n a"
        )
        found: dict[str, set[str]] = {}

        async def look(place: str, got: Got | None = None) -> Got:
            got = got or await page.get(place)
            if bypassing := {*_bypassing(got, known)}:
                found[place] = bypassing
            return got

        await look("/")
        await look("/start/connect")
        await look("refused link", await page.submit("/start/connect", "/start/connect", link="anonml://nothing"))
        await page.submit("/start/connect", "/start/connect", link=page.aggregator.invite.link())
        await look("/start/data")
        preview = await look("preview", await page.upload("sleep.csv", CSV, back="start"))
        key = preview.url.rpartition("/")[2].partition("?")[0]
        action = f"/data/preview/{key}?back=start"
        fields = preview.form(action) | {
            "column.age": "age_in_years", "numerals.age_in_years": "decimal", "table": "person", "minimum_cohort": "3",
            "answer": "import", "whose": "all",
        }
        await look("imported", await page.get((await page.post(action, fields)).url))
        for place in ("/start/data", "/start/budget", "/start/finish", page.invite, "/nowhere", "/study/00"):
            await look(place)
        consent = (await page.get(page.invite)).form(page.invite)
        await look("yes", await page.post(page.invite, consent | {"answer": "yes"}))
        await advance(page.peer, page.aggregator, float(manifest.timetable.enrol_closes))
        for place in ("/", page.study, f"{page.study}/leave", "/data/delete/person", "/data/erase", "/budget"):
            await look(place)
        page.aggregator.crowd(5)
        page.aggregator.close()
        await until_state(page.peer, page.aggregator, State.CHECKED)
        await look(page.study)
        await look("paused", await page.submit(page.study, f"{page.study}/pause", seconds="3600"))
        await page.submit(page.study, f"{page.study}/resume")
        await advance(page.peer, page.aggregator, float(manifest.windows[-1].closes))
        page.aggregator.transcribe()
        page.aggregator.publish("model", model_of(page.aggregator.study.hex()))
        await advance(page.peer, page.aggregator)
        await look("finished", await page.get(page.study))
        await look(
            "prediction",
            await page.get((await page.submit(f"{page.study}/prediction", f"{page.study}/prediction")).url),
        )
        for place in ("/history", "/budget", "/data", "/diagnosis", "/evidence", "/phones", "/", "/enter?token=0"):
            await look(place)
        assert not found, "\n".join(f"{place}: {sorted(words)}" for place, words in found.items())
