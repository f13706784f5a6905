"""The form's four steps, what each lacks, and the page that a student will read, in the words of consent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from aggregator.desk import form
from aggregator.desk.form_faults import LABELS, STEPS, FieldFault, form_faults, in_steps
from aggregator.desk.rendering import environment
from aggregator.desk.student_page import StudentPage, page_of, reading_of
from aggregator.lab.sample_file import SampleColumn, sample_columns
from anon.protocols.consent_words import ConsentWords, consent_words
from anon.protocols.resolve import resolve
from anon.protocols.tellers import presented_tellers
from anon.protocols.words import Picture
from anon.text.sentences import Sentence
from peer.rules.consent import explain
from tests.shells.desk.test_desk_form import FILLED, SAMPLE
from tests.shells.desk.test_desk_form_tellers import fields as with_tellers
from tests.support.desk_browser import Desk, words_of
from tests.support.protocols import parse_proposal
from tests.support.sums import KEYS, RULE, TABLES, countersigned, sum_study
from tests.support.visiting import visited
from tests.support.world import directed, study_text

STUDIES = {
    "local": study_text(), "sums": sum_study(TABLES), "local rule": directed("rule"), "summed rule": sum_study(RULE),
}
DECLARED = "The model starts from what staff declared of 2 features"


def said(words: ConsentWords) -> Iterator[str]:
    """Every sentence of them."""
    for value in attrs.astuple(words, recurse=False):
        for line in value if isinstance(value, tuple) else (value,):
            if isinstance(line, Sentence | Picture):
                yield str(line.text if isinstance(line, Picture) else line)


def shown(page: StudentPage) -> str:
    return words_of(environment().get_template("student_page.html").render(page=page))


def steps_of(page: str) -> list[str]:
    """The markup of each step."""
    return re.split(r'<section class="step" id="step-\d"', page)[1:]


@pytest.mark.slow
@pytest.mark.parametrize("kind", STUDIES)
def test_the_students_page_has_every_sentence_of_consent_that_follows_from_the_study(kind: str) -> None:
    study = resolve(parse_proposal(STUDIES[kind]), KEYS, now=0)
    page, lines = shown(page_of(study)), list(said(consent_words(study)))
    assert any(line.startswith(DECLARED) for line in lines) is ("rule" in kind)
    assert len(lines) >= 7 and [line for line in lines if line not in page] == []
    assert study.title in page and study.contact in page and study.label.description in page
    assert all(feature.description in page for feature in study.features)
    assert all(f"{one.name} {one.address} {one.words}" in page for one in presented_tellers(study))


@pytest.mark.slow
@pytest.mark.parametrize("kind", STUDIES)
async def test_a_peers_own_page_has_the_same_sentences(kind: str, tmp_path: Path) -> None:
    async with visited(tmp_path, STUDIES[kind]) as page:
        study = page.aggregator.manifest
        if study.protocol == "sum":
            page.aggregator.publish("tellers", countersigned(study))
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        screen, folded, _ = (await page.get(page.invite)).words.partition("All terms in one list")
        sheet = explain(study, page.peer.policy(), page.peer.budget(), page.aggregator.clock())
    assert folded and [line for line in consent_words(study).declared if line not in sheet.odds] == []
    assert [line for line in said(consent_words(study)) if line not in screen] == []


@pytest.mark.slow
def test_an_incomplete_draft_shows_what_is_there_and_what_is_missing_and_no_stand_in() -> None:
    columns = form.with_columns(form.fields_of({"title": "Leaving"}), form_columns())
    page = reading_of(columns).page
    text = shown(page)
    assert "Leaving" in text and "hours : Your hours" in text and "One noisy answer leaves, once." in text
    for lack in ("The purpose is missing", "The contact is missing", "What is to be learned is missing"):
        assert lack in text
    assert "…" not in text and page.label.name == ""
    believed = shown(reading_of(with_tellers(c1_expects="1", contact="", tellers="")).page)
    assert "Staff expect that the higher “hours” is" in believed and "The contact is missing" in believed
    assert "The promise rests on one of these tellers" in believed
    assert "Staff expect" not in shown(reading_of(with_tellers(c1_expects="1", label="")).page), "it would name a label"
    complete = reading_of(with_tellers())
    assert complete.lacking == ((), (), (), ()) and complete.page.words is not None and complete.page.closes


@pytest.mark.slow
def test_without_a_column_or_with_a_fault_nothing_is_said_of_what_leaves() -> None:
    assert "Without a column to ask about nothing leaves" in shown(reading_of(form.fields_of({})).page)
    wrong = shown(reading_of(with_tellers(epsilon="0")).page)
    assert "stand here once the steps have no fault" in wrong and "hours : Your hours" in wrong
    one_value = with_tellers(label="", title="")
    assert [[fault.field for fault in step] for step in reading_of(one_value).lacking] == [["title"], ["label"], [], []]


def form_columns() -> list[SampleColumn]:
    return list(sample_columns(SAMPLE))


def test_every_fault_belongs_to_one_step_and_says_shortly_what_is_missing() -> None:
    assert set().union(*(fields for _, fields in STEPS)) == {*LABELS, "sample"}
    assert sum(len(fields) for _, fields in STEPS) == len(LABELS) + 1
    for place, field in enumerate(("title", "c12_low", "tellers", "epsilon")):
        assert [len(step) for step in in_steps([FieldFault(field, "wrong")])].index(1) == place
    assert in_steps([FieldFault("", "wrong")])[-1] == (FieldFault("", "wrong"),)
    lacks = in_steps(form_faults(form.fields_of({"adds": "tellers"}), ("study.toml.title: expected some text",)))
    assert [fault.lacking for step in lacks for fault in step] == ["Title", "Purpose", "Contact", "Columns"]


@pytest.mark.slow
async def test_each_field_stands_in_its_step_and_every_step_says_what_is_to_do(desk: Desk) -> None:
    page = (await desk.get("/form")).text
    draft = re.search(r'name="draft" value="([0-9a-f]{16})"', page)
    assert draft is not None
    assert "1. What it is about To do in this step: Title , Purpose , Contact ." in words_of(page)
    await desk.upload("/form/columns", "sample", SAMPLE, draft=draft[1], **FILLED | {"title": "", "epsilon": "99"})
    begun = re.findall(r'data-part="count-\d">(.*?)</span>', page, re.DOTALL)
    assert [part.strip() for part in begun] == ["3 to do", "1 to do", "as proposed", "as proposed"]
    full = (await desk.post("/form", draft=draft[1], **_sent(title="", c1_high="-5"))).text
    steps = steps_of(full)
    assert len(steps) == 4
    for (_, named), markup in zip(STEPS, steps, strict=True):
        assert [name for name in named if f' id="{name}"' not in markup] == []
    assert ' id="c1_low"' in steps[1] and '<a href="#title">Title</a>' in steps[0]
    assert '<a href="#c1_low">hours, From: expected two numbers' in steps[1]
    assert '<a href="#title">Title: fill it in' in steps[3], "the check's own list leads into other steps"
    assert steps[0].count("<a class=\"button next\" href=\"#step-2\"") == 1 and 'href="#step-5"' not in full
    fragment = (await desk.post("/form/reading", draft=draft[1], **_sent(contact=""))).text
    parts = [sorted(re.findall(r'data-part="([a-z]+-?\d?)"', markup)) for markup in (fragment, page, full)]
    assert len(set(parts[0])) == 10 and parts[0] == parts[1] == parts[2], "each part of the fragment has its place"
    chosen = words_of((await desk.post("/form/reading", draft=draft[1], **_sent(people="60", epsilon="3"))).text)
    assert chosen.count("✓ complete") == 4 and "as the form proposes" not in chosen
    assert "1 to do To do in this step: Contact ." in words_of(fragment) and "The contact is missing" in fragment
    kept = (await desk.get(f"/form?draft={draft[1]}")).text
    assert 'value="Leaving a course"' in kept, "the fragment keeps the draft"


def _sent(**changed: str) -> dict[str, str]:
    return form.with_columns(form.fields_of(FILLED), form_columns()) | changed
