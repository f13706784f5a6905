"""The report: whole in itself, without a word that could run, and true about what protects whom."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from aggregator.report import page
from aggregator.report.pdf import to_pdf
from tests.support.world import in_memory, published, study_text

pytestmark = pytest.mark.slow

_VOID = {"meta", "br", "hr", "img", "link", "input"}


class _Outline(HTMLParser):
    """Every element is closed in turn; `table` holds the rows of the model's table as texts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in _VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """A closed element of the drawing: nothing stays open."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def _read(page: str) -> _Outline:
    outline = _Outline()
    outline.feed(page)
    outline.close()
    assert not outline.open
    return outline


async def _report(home: Path, text: str) -> str:
    async with in_memory(home, text) as running:
        await running.collected(8)
        assert await running.live.submit(b"") == "wrong-size"
        await running.go_to(running.closes)
        return (await published(running.live))["report", 0].decode()


async def test_the_report_says_what_there_is_to_say(tmp_path: Path) -> None:
    page = await _report(tmp_path / "home", study_text())
    assert "Record-level epsilon (local, pure): <strong>2</strong>" in page
    assert "Per-attribute (AnonML eq. 6): 2" in page
    assert re.search(r"packets accepted</th><td class=.n.>8<", page)
    assert re.search(r"refused: wrong-size</th><td class=.n.>1<", page)
    assert "1% hostile" in page
    assert "its sender is among the 8 enrolled" in page
    assert "Packet 1 of 1: local epsilon at most 2, one of " in page
    assert "sex Female, income yes" in page and "30 &lt; age ≤ 50" in page


async def test_scores_come_with_their_standard_errors(tmp_path: Path) -> None:
    outline = _read(await _report(tmp_path / "home", study_text()))
    header = next(row for row in outline.rows if row[:2] == ["features", "reports"])
    assert header[3:5] == ["AUC ± s.e.", "F1 ± s.e."]
    scored = [row for row in outline.rows if len(row) == len(header) and row != header]
    assert len(scored) == 2
    assert all(re.fullmatch(r"[01]\.\d{3} ± 0\.\d{3}", cell) for row in scored for cell in row[3:5])


async def test_the_report_is_whole_and_runs_nothing(tmp_path: Path) -> None:
    text = study_text().replace('title = "Income"', 'title = "<script>alert(1)</script>"')
    page = await _report(tmp_path / "home", text)
    assert "<script" not in page and "&lt;script&gt;" in page
    assert not re.search(r"(src|href|@import|url\()", page)
    assert "://" not in page


@pytest.mark.parametrize("word", ["among the", "anonymous"])
async def test_open_admission_claims_no_anonymity(tmp_path: Path, word: str) -> None:
    page = await _report(tmp_path / "home", study_text(admission="open"))
    assert "No claim of anonymity" in page and word not in page


WORDY = ('description = "Your age"', 'description = "How many years ago you were born, as your own record of yourself counts them, in full years"')
LONG = ('query = "SELECT age FROM person"', "query = \"SELECT CASE WHEN age IN (17, 18, 19) THEN 19 WHEN age IN (88, 89, 90) THEN 88 ELSE age END FROM person\"")


async def test_printed_nothing_lies_beyond_the_edge_and_nobody_is_warned(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    weasyprint = pytest.importorskip("weasyprint", reason="weasyprint is missing: install the extra `test`")
    text = study_text()
    for words, longer in (WORDY, LONG, ('name = "sex"', 'name = "sex_as_the_census_asks_it"')):
        assert words in text
        text = text.replace(words, longer)
    report = await _report(tmp_path, text)
    assert to_pdf(report).startswith(b"%PDF") and not caplog.records
    for sheet in weasyprint.HTML(string=report).render().pages:
        beyond = [one for one in sheet._page_box.descendants() if getattr(one, "text", "").strip() and one.position_x + one.width > sheet.width - 10]
        assert not beyond, [one.text for one in beyond]


def test_a_kept_picture_has_its_colours_without_the_style_sheet() -> None:
    template = (Path(page.__file__).parent / "templates" / "report.html").read_text("utf-8")
    for drawn in re.findall(r"<(?:rect|line) [^>]*>", template):
        assert "fill=" in drawn or "stroke=" in drawn, "programs that print know no style for drawings"
