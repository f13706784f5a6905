"""The form for a study: a sample's columns, a verdict with lint's own figures, a file that lints, a draft that
stays."""

from __future__ import annotations

import asyncio
import html
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aggregator.desk import form
from aggregator.desk.drafts import Drafts
from aggregator.desk.editor import lint_text
from aggregator.desk.form_faults import form_faults
from aggregator.desk.form_file import length_of, text_of
from aggregator.lab.sample_file import sample_columns
from aggregator.study.suggested_cuts import suggested_cuts
from anonml import application, wiring
from tests.support.desk_browser import Desk, opened, words_of
from tests.support.world import in_memory, study_text

pytestmark = pytest.mark.slow

SAMPLE = "Student,Hours,Forum,left_course\n" + "".join(
    f"person{n},{n * 1.5},{('never', 'sometimes', 'often')[n % 3]},{n % 2}\n" for n in range(60)
)
FILLED = {
    "title": "Leaving a course", "purpose": "To see early who needs help.", "contact": "staff@example.org",
    "label": "left_course", "label_says": "Whether you left the course", "positive": "1", "epsilon": "2",
    "minimum": "100",
}


def _fields(**changed: str) -> dict[str, str]:
    return form.with_columns(form.fields_of(FILLED), sample_columns(SAMPLE)) | changed


def test_a_sample_gives_names_round_ranges_and_shared_values_alone() -> None:
    student, hours, forum, left = sample_columns(SAMPLE)
    assert (student.name, student.numeric, student.values) == ("student", False, ()), (
        "a value of one person is not taken"
    )
    assert (hours.numeric, hours.low, hours.high) == (True, 0, 90) and hours.name == "hours"
    assert set(forum.values) == {"never", "sometimes", "often"} and left.values == ("0", "1")
    (below,) = sample_columns("t\n" + "\n".join(str(-7.3 + n) for n in range(20)))
    assert below.low <= -7.3 and below.high >= 11.7


def test_the_file_that_the_form_writes_lints_and_says_what_was_typed() -> None:
    linted = lint_text(text_of(_fields(title='An "odd" \\ title – ☕🙂\x7f')))
    assert not linted.ok and "title" in linted.faults[0], "a character that is not seen is refused by its key"
    linted = lint_text(text_of(_fields(title='An "odd" \\ title – ☕🙂')))
    assert linted.ok, linted.faults
    proposal = linted.proposal
    assert proposal is not None and proposal.title == 'An "odd" \\ title – ☕🙂'
    assert [one.name for one in proposal.features] == ["hours", "forum"], "the label and the unused are no features"
    assert proposal.label.positive == (1,) and proposal.label.negative == (0,)


@pytest.mark.parametrize(("field", "value", "at", "word"), [
    ("minimum", "many", "minimum", "Minimum: with fewer"), ("minimum", "1", "minimum", "from 2 on"),
    ("epsilon", "0", "epsilon", "Epsilon"),
    ("c1_high", "-5", "c1_low", "hours, From"), ("c1_low", "nan", "c1_low", "hours, From"),
    ("c1_cuts", "10,40", "c1_cuts", "hours, Own cut points"),
    ("c2_categories", "", "c2_categories", "forum, Categories"), ("label", "", "label", "choose one"),
    ("positive", "", "positive", "at least one"),
    ("positive", "1\n0", "negative", "Values that count as no"), ("enrol", "soon", "enrol", "7d, 12h or 90s"),
    ("admission", "nobody", "admission", "Admission"),
    ("title", "", "title", "fill it in"), ("rate", "120", "rate", "below 100"),
    ("label_says", "", "label_says", "fill it in"), ("c1_use", "", "c1_use", "tick"),
])
def test_a_fault_is_told_once_in_the_forms_words_at_its_field(field: str, value: str, at: str, word: str) -> None:
    fields = _fields() | {field: value} | ({"c2_use": ""} if field == "c1_use" else {})
    linted = lint_text(text_of(fields))
    told = form_faults(fields, linted.faults)
    expected = "c0_use" if field == "c1_use" else at
    assert [fault.field for fault in told] == [expected] and word in told[0].says, (told, linted.faults)
    assert "study.toml" not in told[0].says and "label." not in told[0].says


def test_a_trial_is_over_in_minutes_and_every_length_is_told() -> None:
    for changed, seconds in (
        ({"pace": "trial"}, 600),
        ({"pace": "trial", "c1_cuts": "10 40,"}, 460),
        ({"pace": "trial", "enrol": "5m", "collect": "3m"}, 750),
        ({"pace": "trial", "people": "150", "enrol": "9m", "collect": "6m", "c1_cuts": "10 40"}, 540 + 360 + 2 * 60),
        ({"enrol": "5m", "collect": "3m", "c1_cuts": "10 40,"}, 540),
        ({"enrol": "150s", "collect": "12h"}, 108_150),
        ({}, 972_000),
    ):
        fields = form.fields_of(_fields() | changed)
        linted = lint_text(text_of(fields))
        assert linted.ok and linted.manifest is not None, linted.faults
        assert length_of(fields) == linted.manifest.timetable.ends - linted.manifest.timetable.published == seconds
        assert linted.manifest.cohort.minimum == (2 if "pace" in changed else 100)
        assert linted.manifest.features[0].cuts == ((10, 40) if "c1_cuts" in changed else ())
    assert form.fields_of({"pace": "trial", "minimum": "5"})["minimum"] == "5", "a trial's own figures may be changed"
    assert form.fields_of({"pace": "trial", "people": "1000000"})["enrol"] == "5m", "at most minutes"
    assert form.fields_of({"pace": "trial", "people": "9", "enrol": "soon"})["enrol"] == "soon", "a check names it"
    assert form.fields_of({"people": "150", "collect": "90s"})["collect"] == "90s", "a real study is left alone"
    assert length_of(_fields(enrol="soon")) is length_of(_fields(collect="999999999d")) is None
    (fault,) = lint_text(text_of(_fields()).replace('binning = "1d"', 'binning = "0s"')).faults
    assert "or write cuts in place of bins" in fault


def test_yes_is_filled_in_where_a_column_has_yes_and_no_alone() -> None:
    columns = sample_columns("left,forum\n" + "Yes,often\nNo,never\n" * 10)
    assert form.fields_of(form.with_columns(form.fields_of({"label": "left"}), columns))["positive"] == "Yes"
    assert form.fields_of(form.with_columns(form.fields_of({"label": "forum"}), columns))["positive"] == ""
    assert (
        form.fields_of(form.with_columns(form.fields_of({"label": "left", "positive": "No"}), columns))["positive"]
        == "No"
    )


def test_a_direction_is_written_and_the_samples_own_share_is_a_hint_alone() -> None:
    (hours,) = lint_text(text_of(_fields(c1_expects="-1", c2_use=""))).proposal.features  # type: ignore[union-attr]
    assert hours.expects == (-1,) and lint_text(text_of(_fields(c1_expects="maybe"))).ok
    assert form.share_in_sample(_fields()) == 50 and form.share_in_sample(_fields(positive="")) is None
    rare = form.with_columns(form.fields_of(FILLED), sample_columns("left_course\n" + "1\n" * 2 + "0\n" * 6))
    assert form.share_in_sample(rare) == 25 and "base_rate = 0.5" in text_of(rare)


async def test_publish_asks_from_the_form_at_once_and_a_forecast_comes_by_itself(desk: Desk) -> None:
    draft = _draft_in((await desk.get("/form")).text)
    lacking = words_of((await desk.post("/form/publish", draft=draft, **_fields(title=""))).text)
    assert "The study is not complete yet" in lacking and "Publish “" not in lacking
    asked = await desk.post("/form/publish", draft=draft, **_fields())
    assert "Publish “Leaving a course”?" in asked.text and 'data-forecast="/editor/outlook"' in asked.text
    assert f'href="/form?draft={draft}"' in asked.text
    forecast = await desk.post("/editor/outlook", draft=draft, text=text_of(_fields()))
    assert "100 people are" in words_of(forecast.text) and "<html" not in forecast.text
    known = await desk.post("/form/publish", draft=draft, **_fields())
    assert "100 people are" in words_of(known.text) and "data-forecast" not in known.text


async def test_every_button_of_the_form_reads_a_sample(desk: Desk) -> None:
    draft = _draft_in((await desk.get("/form")).text)
    await desk.upload("/form/mail", "sample", SAMPLE, draft=draft, **FILLED)
    assert "60 rows, 4 columns read" in (await desk.get(f"/form?draft={draft}")).text


async def test_from_a_sample_to_the_editor_with_lints_own_figures(desk: Desk, tmp_path: Path) -> None:
    page = await desk.get("/form")
    draft = _draft_in(page.text)
    columns = await desk.upload("/form/columns", "sample", SAMPLE, draft=draft, **FILLED)
    assert columns.status == 200 and "Ask about hours" in words_of(columns.text)
    assert 'name="c0_use" value="on" checked' not in columns.text and 'name="c1_use" value="on" checked' in columns.text
    assert "60 rows, 4 columns read: student, hours, forum, left_course" in words_of(columns.text)
    assert "Students' files become the table person ." in words_of(columns.text)
    assert "2. Import it into AnonML, under the name person." in words_of(page.text)
    assert columns.text.count('id="answer"') == 1 and 'action="/form#answer"' in columns.text
    assert (
        "To be checked" in words_of(columns.text)
        and "To be corrected" in columns.text
    )
    assert 'name="c3_use"' not in columns.text and "Nobody is asked about left_course" in words_of(columns.text)
    checked_page = (
        await desk.post("/form", draft=draft, **_fields(read="60 rows read", c1_high="80", c1_says="Hours you learned"))
    ).text
    ticked = (await desk.post("/form", draft=draft, **_fields(c1_checked="on", c2_checked="on"))).text
    assert "To be checked" not in ticked and 'name="c1_checked" value="on" checked' in ticked
    assert checked_page.count("To be checked") == 1 and checked_page.count("To be corrected") == 1, "of forum alone"
    assert "60 rows read" in checked_page and checked_page.count('id="answer"') == 1
    faulty = (await desk.post("/form", draft=draft, **_fields(title="", c1_high="-5"))).text
    assert faulty.index('id="step-4"') < faulty.index('id="answer"') < faulty.rindex("Title: fill it in")
    assert (
        '<a href="#title">' in faulty
        and 'aria-describedby="c1_low-fault" aria-invalid="true"' in faulty
        and "study.toml" not in faulty
    )
    checked = words_of((await desk.post("/form", draft=draft, **_fields())).text)
    assert "the study takes 11 d 6 h" in checked and "In the sample it was 50, which nothing protects" in checked
    written = await desk.post("/form/text", draft=draft, **_fields())
    assert written.path == "/editor" and "It can be published" in written.text and "Leaving a course" in written.text
    (tmp_path / "study.toml").write_text(text_of(_fields()), "utf-8")
    (tmp_path / "last.csv").write_text(SAMPLE, "utf-8")
    words = ["lint", str(tmp_path / "study.toml"), "--data", str(tmp_path / "last.csv"), "--json"]
    lint = CliRunner().invoke(application("study"), words, obj=wiring())
    figures = json.loads(lint.stdout)
    assert f"its expected ROC AUC is {figures['expected_auc']:.2f}." in checked
    assert "100 people drawn from your sample file" in checked
    assert f"in {round(100 * figures['shown'])} of 100 studies of last year's people" in checked
    assert "100 people are too few" in checked
    fragment = await desk.post("/form/outlook", draft=draft, **_fields())
    manifest = lint_text(text_of(_fields())).manifest
    assert manifest is not None
    why, line = suggested_cuts(manifest)
    assert "With 100 people" in why and line.startswith("cuts of hours: such as cuts = [")
    assert why in html.unescape(fragment.text) and line in html.unescape(fragment.text)
    assert lint_text(text_of(_fields(c1_cuts="10 40"))).suggested == ()
    assert (
        f"its expected ROC AUC is {figures['expected_auc']:.2f}." in words_of(fragment.text)
        and "<html" not in fragment.text
    )
    await desk.post("/drafts/discard", draft=draft)
    made_up = words_of((await desk.post("/form", draft=draft, **_fields())).text)
    assert "100 people made up from what the form says" in made_up


async def test_the_forms_draft_outlives_the_desk(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text()) as running:
        async with opened(running.app, running) as desk:
            draft = _draft_in((await desk.get("/form")).text)
            await desk.post("/form/columns", draft=draft, new_column="Age in years", **FILLED | {"minimum": "x"})
        async with opened(running.app, running) as again:
            listed = await again.get("/")
            assert "Leaving a course" in listed.text and f'href="/form?draft={draft}"' in listed.text
            page = (await again.get(f"/form?draft={draft}")).text
            assert 'value="Leaving a course"' in page and "Ask about age_in_years" in words_of(page)
            written = await again.post("/form/text", draft=draft, **FILLED)
            looked = (await again.get(f"/editor?draft={draft}")).text
            assert (
                f'<a href="/form?draft={draft}">Back to the form of this study</a>' in looked
                and "Its comments say" in looked
            )
            shown = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", looked, re.DOTALL)
            assert shown is not None
            await again.post("/editor", draft=draft, text=html.unescape(shown[1]).replace("\n", "\r\n"))
            await again.post("/form", draft=draft, **FILLED | {"epsilon": "3"})
            assert "was changed in the editor" not in (await again.get(f"/form?draft={draft}")).text
            bare = (await again.post("/editor", draft=draft, text="changed = 1")).text
            assert "Its comments say" not in bare
            assert (
                "was changed in the editor" in (await again.get(f"/form?draft={draft}")).text and written.status == 200
            )
            assert (await again.get(f"/form?draft={Drafts.new()}")).status == 404
            assert (await again.post("/form", draft="../x", epsilon="2")).status == 400
            assert (await again.upload("/form/columns", "sample", "a,a\n1,2\n", draft=draft)).status == 400


async def test_of_many_questions_at_once_the_newest_is_answered_and_the_draft_keeps_the_last(desk: Desk) -> None:
    draft = _draft_in((await desk.get("/form")).text)
    asked = [
        desk.post("/form/outlook", draft=draft, **_fields(epsilon=epsilon)) for epsilon in ("2.25", "2.5", "2.75", "3")
    ]
    answers = [words_of(answer.text) for answer in await asyncio.gather(*asked)]
    assert any("of 100 made-up studies" in said for said in answers)
    assert all("of 100 made-up studies" in said or "was not tried out" in said for said in answers)
    assert Drafts(desk.app.home.path).fields(draft) is not None


def _draft_in(page: str) -> str:
    found = re.search(r'name="draft" value="([0-9a-f]{16})"', page)
    assert found is not None
    return found[1]
