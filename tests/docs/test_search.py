"""Plain words lead to the reader's page: it has them, and the site's search weighs it above all others with them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from benchmarks.site_hooks import AT_ROOT, search_of
from tests.docs.repository import ROOT

pytestmark = pytest.mark.source

FILES, QUESTIONS = "student/where-my-file-comes-from.md", "student/questions.md"
ETHICS = "staff/ethics-and-data-protection.md"
WORDS = {
    "excel": FILES, "xlsx": FILES, "takeout": FILES, "moodle": FILES,
    "delete your data": QUESTIONS, "offline": QUESTIONS, "close the laptop": QUESTIONS, "use my phone": QUESTIONS,
    "lifetime budget": QUESTIONS, "can i leave": QUESTIONS,
    "gdpr": ETHICS, "data-protection officer": ETHICS, "impact assessment": ETHICS, "security contact": ETHICS,
    "twelve words": "staff/run-a-teller.md", "who can be a teller": "staff/with-tellers.md",
    "my class": "staff/class-size.md", "hopeless": "staff/class-size.md",
    "android": "student/android.md", "termux": "student/android.md",
    "reminder": "staff/mail.md", "your first study": "staff/first-study.md",
}  # fmt: skip
"""The words that people type, and the page that answers them."""


def searched() -> Iterator[tuple[str, str, float]]:
    """Place, words and weight of every page that a search knows."""
    placed = {path.relative_to(ROOT / "docs").as_posix(): path for path in (ROOT / "docs").rglob("*.md")}
    placed |= {place: ROOT / name for name, place in AT_ROOT.items()}
    for place, path in placed.items():
        weight = search_of(place)
        if "exclude" not in weight:
            yield place, path.read_text("utf-8"), float(str(weight.get("boost", 1)))


def found(phrase: str) -> list[str]:
    """Pages with the phrase, the best first: by how often it stands there, headings three times, and by weight."""
    spelled = re.compile(re.escape(phrase).replace(r"\ ", r"[\s*]+"), re.IGNORECASE)
    scores = {}
    for place, text, weight in searched():
        headings = "\n".join(re.findall(r"^#+ .*$", text, re.MULTILINE))
        scores[place] = weight * (len(spelled.findall(text)) + 3 * len(spelled.findall(headings)))
    return sorted((place for place in scores if scores[place]), key=lambda place: -scores[place])


@pytest.mark.parametrize(("phrase", "page"), WORDS.items())
def test_a_plain_word_finds_the_readers_page_first(phrase: str, page: str) -> None:
    assert found(phrase)[:1] == [page], found(phrase)[:4]


def test_decisions_and_advisories_are_out_of_the_search() -> None:
    known = [place for place, _, _ in searched()]
    assert not [place for place in known if place.startswith("decisions/") or "SECURITY" in place]
    assert "README.md" in known and "glossary.md" in known
