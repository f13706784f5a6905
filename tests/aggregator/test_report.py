"""The report: whole in itself, without a word that could run, and true about what protects whom."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from aggregator.lab.simulation.people import FeatureColumn, People
from aggregator.lab.simulation.rule import evaluated
from aggregator.lab.simulation.simulate import NO_KEYS, run_once
from aggregator.report import page
from aggregator.report.charts import bars
from aggregator.report.pdf import to_pdf
from aggregator.rules.counters import Traffic
from anon.protocols.resolve import resolve
from peer.published_report import as_page
from tests.support.protocols import parse_proposal
from tests.support.world import directed, in_memory, published, study_text

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
    assert b"<h1><bdi>" in as_page(page.encode(), "Report", "above"), "every peer shows it"
    return outline


async def _report(home: Path, text: str) -> str:
    async with in_memory(home, text) as running:
        await running.collected(8)
        assert await running.live.submit(b"") == "wrong-size"
        await running.go_to(running.closes)
        return (await published(running.live))["report", 0].decode()


def _declared(text: str) -> str:
    """The same study, whose staff expect something of the feature `sex`."""
    told = text.replace('missing = "Male"', 'missing = "Male"\nexpects = [-1, 1]')
    return told.replace("[schedule]", '[learning]\nclassifier = "additive"\nscore_share = 0\n\n[schedule]')


async def test_the_report_says_what_there_is_to_say(tmp_path: Path) -> None:
    page = await _report(tmp_path / "home", study_text())
    assert "It was a trial, and its people may be made up." in " ".join(page.split())
    titled = study_text().replace('title = "Income"', 'title = "Rehearsal: Income"')
    rehearsed = " ".join((await _report(tmp_path / "rehearsed", titled)).split())
    assert "may be made up" not in rehearsed and "Such people are made up by this program:" in rehearsed
    assert "the label “income” goes with “sex”, and all else is chance." in rehearsed
    declared = _declared(titled)
    apart = "They do not follow what the study declares: a declaration can look wrong here."
    assert apart not in rehearsed and apart in await _report(tmp_path / "declared", declared)
    assert "Record-level epsilon (local, pure): <strong>2</strong>" in page
    assert "the odds between any two versions of that person's record move by at most a factor of 7.39." in page
    assert "Per-attribute (AnonML eq. 6): 2" in page
    assert re.search(r"packets accepted</th><td class=.n.>8<", page)
    assert re.search(r"refused: wrong-size</th><td class=.n.>1<", page)
    assert "1% hostile" in page
    assert "<td>3 ranges and missing</td>" in page and "<td>2 categories</td>" in page
    assert "its sender is among the 8 enrolled" in page
    assert "Packet 1 of 1: local epsilon at most 2, one of " in page
    assert "sex Female, income yes" in page and "30 &lt; age ≤ 50" in page


async def test_scores_come_with_their_standard_errors(tmp_path: Path) -> None:
    few, told = await _report(tmp_path / "home", study_text()), _of_people(0.8)
    outline = _read(few)
    header = next(row for row in outline.rows if row[:3] == ["features", "fitting", "scoring"])
    assert header[3:5] == ["AUC ± s.e.", "F1 ± s.e."]
    scored = [row for row in outline.rows if len(row) == len(header) and row != header]
    assert len(scored) == 2
    assert all(row[3:6] == [("–" if row[2] == "0" else "too few to say")] * 3 and row[6] == "–" for row in scored)
    every = "All tables, since each was scored by fewer than 50 reports"
    assert every in _of_people(1.0, people=80, chance=0.0) and every not in told
    many = [row for row in _read(told).rows if len(row) == len(header) and row != header]
    assert many and all(re.fullmatch(r"[01]\.\d{3} ± 0\.\d{3}", cell) for row in many for cell in row[3:5])
    assert all(re.fullmatch(r"\d\.\d\d", row[6]) for row in many)


async def test_few_reports_tell_nothing_of_hostile_ones_and_no_sentence_ends_twice(tmp_path: Path) -> None:
    asked = re.sub(r'description = "[^"]*', 'description = "Do you earn more?', study_text(), count=1)
    few, many = await _report(tmp_path / "home", asked), _of_people(0.8)
    assert "would have moved by more than" not in few and "is not told: each table rests on fewer than 50" in few
    assert "would have moved by more than" in many and "is not told" not in many
    assert "Do you earn more?</bdi> A score" in few and "?." not in few


async def test_the_report_is_whole_and_runs_nothing(tmp_path: Path) -> None:
    text = study_text().replace('title = "Income"', 'title = "<script>alert(1)</script>"')
    page = await _report(tmp_path / "home", text)
    assert "<script" not in page and "&lt;script&gt;" in page
    assert not re.search(r"(src|href|@import|url\()", page)
    assert "://" not in page


def _of_people(
    going_with: float, text: str = "", accepted: int = 4000, people: int = 4000, chance: float | None = None
) -> str:
    """The report of so many people; the label is the sex in a share `going_with` of them, and else a coin's.
    `accepted`: how many packets it is told of. `chance`: in place of how often noise would count as much."""
    generator = np.random.default_rng(3)
    sexes, ages = generator.integers(2, size=people), generator.integers(20, 80, size=people)
    labels = np.where(generator.random(people) < going_with, sexes, generator.integers(2, size=people))
    members = People(
        {"sex": FeatureColumn(("Female", "Male"), sexes), "age": FeatureColumn(tuple(range(20, 80)), ages - 20)}, labels
    )
    manifest = resolve(parse_proposal(text or study_text()), NO_KEYS, 0, lambda below: int(generator.integers(below)))
    learned = run_once(manifest, members, generator)
    learned = learned if chance is None else evolve(learned, chance=chance)
    sent, asked = divmod(accepted, len(manifest.surveys)), enumerate(manifest.surveys)
    packets = {one.survey: sent[0] + (at < sent[1]) for at, one in asked}
    evaluation = evaluated(learned.model, manifest, members, accepted)
    return page.render(manifest, learned, Traffic(accepted, {}, {}), packets, evaluation)


def test_with_a_test_set_it_says_what_needs_no_study() -> None:
    """The commoner answer for everybody, and the declared directions by themselves where there are any."""
    plain, declared = _of_people(0.8), _of_people(0.8, _declared(study_text()))
    common = re.search(r"commoner answer for everybody has an accuracy of (0\.[0-9]{3})", plain)
    assert common and 0.5 <= float(common[1]) < 0.55
    rule = re.search(r"directions that staff declared, by themselves.* have a ROC AUC of (0\.[0-9]{3})", declared)
    assert rule and 0.88 < float(rule[1]) < 0.92
    assert "by themselves" not in plain
    trusted = re.search(r"tables of single features it has a ROC AUC of (0\.[0-9]{3})", plain)
    assert trusted and 0.87 < float(trusted[1]) < 0.93


def _unfolded(report: str) -> str:
    """The text of the page before anybody opens a fold."""
    return re.sub(r"<details>.*?</details>", "", report, flags=re.DOTALL)


def test_it_begins_with_what_was_found_how_surely_and_for_whom() -> None:
    for going_with, says, never in ((0.8, "this model beats a guess", "take this model as no better"),
                                    (0.0, "take this model as no better than the base rate", "beats a guess. ")):
        report = _of_people(going_with)
        first = report[report.index("<h2>") : report.index("</dl>")]
        assert "What we found" in first and "How sure we are" in first and "4000 people enrolled" in first
        assert says in first and never not in report
        assert re.search(r"“<bdi>\w+</bdi>” is, in words: <bdi>[A-Z].*[.?!]</bdi>$", first, re.MULTILINE)
        assert re.search(r"(about \d+|no more than 1) in 1,000 such studies", first)


def test_no_score_of_a_model_that_was_not_shown_stands_open() -> None:
    shown, guessing = (_unfolded(_of_people(going_with)) for going_with in (0.8, 0.0))
    for words in ("AUC ± s.e.", "ROC AUC", "What moves a prediction", "AUC of each table"):
        assert words in shown and words not in guessing, words


def test_declared_directions_stand_in_the_report() -> None:
    told = study_text("bits").replace('missing = "own"', 'missing = "own"\nexpects = -1')
    report = _of_people(0.8, told)
    assert (
        "the higher “age” is, the less often “income” is a yes" in report
        and "declared the expected directions" in report
    )
    assert "overrule" not in report and "the less the more answers there are" in report
    plain = _of_people(0.8, study_text("bits"))
    assert "Staff expect" not in plain and "expected directions" not in plain


def test_reports_that_all_train_are_not_said_to_score() -> None:
    shared, alone = _of_people(0.8), _of_people(0.8, study_text("bits"))
    assert "20 % of the reports" in shared and "0 % of the reports" not in alone
    assert "All reports train, and none only scores" in alone


@pytest.mark.parametrize(
    ("seconds", "said"), [(100, "1.67 minutes"), (3600, "1 hour"), (90 * 86400, "90 days"), (30, "30 seconds")]
)
def test_a_length_is_told_in_its_largest_unit(seconds: int, said: str) -> None:
    assert page._length(seconds) == said


def test_a_report_of_a_rule_says_how_much_staff_declared_and_if_it_was_shown() -> None:
    true, unclear = _of_people(0.9, directed("rule")), _of_people(0.0, directed("rule"))
    assert "this model beats a guess" in true and "We found nothing that can be told from chance" in unclear
    for report in (true, unclear):
        assert "follow from what staff declared beforehand of 2 features" in report
        assert "such studies would look this good by chance alone" in report
    assert "staff declared beforehand" not in _of_people(0.9)


def test_bars_have_one_scale_and_zeros_have_none() -> None:
    report = _of_people(0.8)
    drawn = re.findall(r'width="([\d.]+)" height="14" fill="[^"]+"/><text [^>]*>([+-][\d.]+)<', report)
    per_unit = [float(width) / abs(float(value)) for width, value in drawn if abs(float(value)) > 0.1]
    assert len(drawn) >= 3 and max(per_unit) < 1.1 * min(per_unit)
    assert bars([("a", 0.001), ("b", 1.0)], "c", 2.0).count("<rect") == 1
    assert not re.search(r'<rect class="bar"[^>]* width="0\.00"', report)


async def test_few_reports_stand_behind_a_fold(tmp_path: Path) -> None:
    report = await _report(tmp_path / "home", study_text())
    assert "Estimates from fewer than 50 reports" in report
    assert (
        "likely share</th>" in report
        and "likely share</th>" not in _unfolded(report)
        and "Estimated share of" not in report
    )


def test_fewer_than_fifty_show_no_share_of_a_yes_though_their_model_beats_a_guess() -> None:
    assert "Estimated share of" in _of_people(0.8, accepted=50)
    assert "this model beats a guess" in (few := _of_people(0.8, accepted=49)) and "Estimated share of" not in few


@pytest.mark.parametrize("word", ["among the", "anonymous"])
async def test_open_admission_claims_no_anonymity(tmp_path: Path, word: str) -> None:
    page = await _report(tmp_path / "home", study_text(admission="open"))
    assert "No claim of anonymity" in page and word not in page


WORDY = (
    'description = "Your age"',
    'description = "How many years ago you were born, as your own record of yourself counts them, in full years"',
)
LONG = (
    'query = "SELECT age FROM person"',
    'query = "SELECT CASE WHEN age IN (17, 18, 19) THEN 19 WHEN age IN (88, 89, 90) THEN 88 ELSE age END FROM person"',
)


async def test_printed_nothing_lies_beyond_the_edge_and_nobody_is_warned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    weasyprint = pytest.importorskip("weasyprint", reason="weasyprint is missing: install the extra `test`")
    text = study_text()
    for words, longer in (WORDY, LONG, ('name = "sex"', 'name = "sex_as_the_census_asks_it"')):
        assert words in text
        text = text.replace(words, longer)
    report = await _report(tmp_path, text)
    assert to_pdf(report).startswith(b"%PDF") and not caplog.records
    for sheet in weasyprint.HTML(string=report).render().pages:
        beyond = [
            one
            for one in sheet._page_box.descendants()
            if getattr(one, "text", "").strip() and one.position_x + one.width > sheet.width - 10
        ]
        assert not beyond, [one.text for one in beyond]


def test_a_kept_picture_has_its_colours_without_the_style_sheet() -> None:
    template = (Path(page.__file__).parent / "templates" / "report.html").read_text("utf-8")
    for drawn in re.findall(r"<(?:rect|line) [^>]*>", template):
        assert "fill=" in drawn or "stroke=" in drawn, "programs that print know no style for drawings"
