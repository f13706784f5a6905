"""The form for a study: a sample's columns, a verdict with lint's own figures, a file that lints, a draft that stays."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aggregator.desk import form
from aggregator.desk.drafts import Drafts
from aggregator.desk.editor import lint_text
from aggregator.lab.sample_file import sample_columns
from anonml import application, wiring
from tests.support.desk_browser import Desk, opened, words_of
from tests.support.world import in_memory, study_text

pytestmark = pytest.mark.slow

SAMPLE = "Student,Hours,Forum,left_course\n" + "".join(
    f"person{n},{n * 1.5},{('never', 'sometimes', 'often')[n % 3]},{n % 2}\n" for n in range(60)
)
FILLED = {
    "title": "Leaving a course", "purpose": "To see early who needs help.", "contact": "staff@example.org",
    "label": "left_course", "label_says": "Whether you left the course", "positive": "1", "epsilon": "2", "minimum": "100",
}


def _fields(**changed: str) -> dict[str, str]:
    return form.with_columns(form.fields_of(FILLED | changed), sample_columns(SAMPLE))


def test_a_sample_gives_names_round_ranges_and_shared_values_alone() -> None:
    student, hours, forum, left = sample_columns(SAMPLE)
    assert (student.name, student.numeric, student.values) == ("student", False, ()), "a value of one person is not taken"
    assert (hours.numeric, hours.low, hours.high) == (True, 0, 90) and hours.name == "hours"
    assert set(forum.values) == {"never", "sometimes", "often"} and left.values == ("0", "1")
    (below,) = sample_columns("t\n" + "\n".join(str(-7.3 + n) for n in range(20)))
    assert below.low <= -7.3 and below.high >= 11.7


def test_the_file_that_the_form_writes_lints_and_says_what_was_typed() -> None:
    linted = lint_text(form.text_of(_fields(title='An "odd" \\ title – ☕🙂\x7f')))
    assert not linted.ok and "title" in linted.faults[0], "a character that is not seen is refused by its key"
    linted = lint_text(form.text_of(_fields(title='An "odd" \\ title – ☕🙂')))
    assert linted.ok, linted.faults
    proposal = linted.proposal
    assert proposal is not None and proposal.title == 'An "odd" \\ title – ☕🙂'
    assert [one.name for one in proposal.features] == ["hours", "forum"], "the label and the unused are no features"
    assert proposal.label.positive == (1,) and proposal.label.negative == (0,)


@pytest.mark.parametrize(("field", "value", "key"), [
    ("minimum", "many", "cohort.minimum"), ("epsilon", "0", "design.epsilon"), ("c1_high", "-5", "range"),
    ("c2_categories", "", "categories"), ("label", "", "label"), ("positive", "", "positive"), ("enrol", "soon", "schedule"),
    ("admission", "nobody", "admission"), ("c1_low", "nan", "range"), ("title", "", "title"),
])
def test_a_fault_is_named_by_its_key(field: str, value: str, key: str) -> None:
    linted = lint_text(form.text_of(_fields() | {field: value}))
    assert not linted.ok and any(key in fault for fault in linted.faults), linted.faults


async def test_from_a_sample_to_the_editor_with_lints_own_figures(desk: Desk, tmp_path: Path) -> None:
    page = await desk.get("/form")
    draft = _draft_in(page.text)
    columns = await desk.upload("/form/columns", "sample", SAMPLE, draft=draft, **FILLED)
    assert columns.status == 200 and "Ask about hours" in words_of(columns.text)
    assert 'name="c0_use" value="on" checked' not in columns.text and 'name="c1_use" value="on" checked' in columns.text
    checked = words_of((await desk.post("/form", draft=draft, **_fields())).text)
    written = await desk.post("/form/text", draft=draft, **_fields())
    assert written.path == "/editor" and "It can be published" in written.text and "Leaving a course" in written.text
    (tmp_path / "study.toml").write_text(form.text_of(_fields()), "utf-8")
    lint = CliRunner().invoke(application("study"), ["lint", str(tmp_path / "study.toml"), "--json"], obj=wiring())
    figures = json.loads(lint.stdout)
    assert f"its expected ROC AUC is {figures['expected_auc']:.2f}." in checked
    assert f"in {round(100 * figures['shown'])} of 100 made-up studies" in checked and "100 people are too few" in checked
    fragment = await desk.post("/form/outlook", draft=draft, **_fields())
    assert f"its expected ROC AUC is {figures['expected_auc']:.2f}." in words_of(fragment.text) and "<html" not in fragment.text


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
            await again.post("/editor", draft=draft, text="changed = 1")
            assert "was changed in the editor" in (await again.get(f"/form?draft={draft}")).text and written.status == 200
            assert (await again.get(f"/form?draft={Drafts.new()}")).status == 404
            assert (await again.post("/form", draft="../x", epsilon="2")).status == 400
            assert (await again.upload("/form/columns", "sample", "a,a\n1,2\n", draft=draft)).status == 400


async def test_of_many_questions_at_once_the_newest_is_answered_and_the_draft_keeps_the_last(desk: Desk) -> None:
    draft = _draft_in((await desk.get("/form")).text)
    asked = [desk.post("/form/outlook", draft=draft, **_fields(epsilon=epsilon)) for epsilon in ("2.25", "2.5", "2.75", "3")]
    answers = [words_of(answer.text) for answer in await asyncio.gather(*asked)]
    assert any("of 100 made-up studies" in said for said in answers)
    assert all("of 100 made-up studies" in said or "was not tried out" in said for said in answers)
    assert Drafts(desk.app.home.path).fields(draft) is not None


def _draft_in(page: str) -> str:
    found = re.search(r'name="draft" value="([0-9a-f]{16})"', page)
    assert found is not None
    return found[1]
