"""The page that a student reads before a yes, as staff see it beforehand: of a manifest, or of a draft as it is now.

Its sentences are those of consent itself (`anon.protocols.consent_words`). A draft that is not complete is completed
with stand-ins for them; none of these is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from attrs import evolve, frozen

from aggregator.desk import form
from aggregator.desk.editor import lint_text
from aggregator.desk.form_faults import FieldFault, as_proposed, form_faults, in_steps
from aggregator.desk.form_file import asked_about, text_of
from aggregator.lab.planning.outlook import BeliefOutlook, outlook_of_belief
from anon.protocols.consent_words import ConsentWords, among, consent_words
from anon.protocols.tellers import PresentedTeller, presented_tellers
from anon.study.manifest import Manifest
from anon.text.sentences import NOTHING, Sentence


@frozen
class AskedQuestion:
    """A feature or the label: its name, its sentence, and the direction that staff expect."""

    name: str
    says: str
    expects: Sentence = NOTHING


@frozen
class StudentPage:
    """The texts that a student reads of a study. One that a draft lacks is empty, or None.

    `closes`: when enrolment closes, in unix seconds, if the study is published now. `tellers`: without words where they
    were not asked yet.
    """

    title: str
    purpose: str
    contact: str
    source: str
    label: AskedQuestion
    questions: tuple[AskedQuestion, ...]
    words: ConsentWords | None = None
    warning: tuple[Sentence, ...] = ()
    tellers: tuple[PresentedTeller, ...] = ()
    closes: int | None = None


@frozen
class DraftReading:
    """The faults of a draft in each step of the form, and the student's page of it.

    `proposed`: of each step, whether all of it is still as the form begins. `belief`: of a draft that starts from what
    staff believe.
    """

    lacking: tuple[tuple[FieldFault, ...], ...]
    page: StudentPage
    proposed: tuple[bool, ...]
    belief: BeliefOutlook | None = None


def page_of(study: Manifest) -> StudentPage:
    """The page of a study that is complete."""
    words = consent_words(study)
    return StudentPage(
        title=study.title,
        purpose=study.purpose,
        contact=study.contact,
        source=study.data_source,
        label=AskedQuestion(study.label.name, study.label.description),
        questions=tuple(AskedQuestion(*question) for question in words.questions),
        words=words,
        warning=among(study.cohort.minimum, study.cohort.admission),
        tellers=presented_tellers(study),
        closes=study.timetable.enrol_closes,
    )


def reading_of(fields: Mapping[str, str]) -> DraftReading:
    """All of it for the form's fields."""
    linted = lint_text(text_of(fields))
    lacking = in_steps(form_faults(fields, linted.faults))
    study = linted.manifest or lint_text(text_of(with_stand_ins(fields))).manifest
    people = None
    with suppress(ValueError):
        people = form.expected_people(fields)
    belief = None if study is None else outlook_of_belief(study, people)
    return DraftReading(lacking, _page_of_draft(fields, study), as_proposed(fields), belief)


def _page_of_draft(fields: Mapping[str, str], study: Manifest | None) -> StudentPage:
    asked, label = asked_about(fields), fields["label"].strip()
    own = StudentPage(
        title=fields["title"].strip(),
        purpose=fields["purpose"].strip(),
        contact=fields["contact"].strip(),
        source=fields["data_source"].strip(),
        label=AskedQuestion(label, fields["label_says"].strip()),
        questions=tuple(AskedQuestion(column.name, column.says.strip()) for column in asked),
    )
    if study is None:
        return own
    known = page_of(study)
    expects = [question.expects if label else NOTHING for question in known.questions]
    questions = tuple(evolve(question, expects=said) for question, said in zip(own.questions, expects, strict=True))
    tellers = tuple(PresentedTeller(name, "", address) for name, address in form.tellers_in(fields))
    return evolve(
        own, questions=questions, words=known.words, warning=known.warning, tellers=tellers, closes=known.closes
    )


def with_stand_ins(fields: Mapping[str, str]) -> dict[str, str]:
    """The fields with a text in place of each that is still empty, and of tellers that have no name yet."""
    texts = ["title", "purpose", "contact", "label_says"]
    texts += [f"c{column.number}_says" for column in asked_about(fields)]
    filled = {name: "…" for name in texts if not fields[name].strip()}
    label = {} if fields["label"].strip() else {"label": "label", "positive": "1", "negative": "0"}
    values = {} if form.lines_of(fields["positive"]) else {"positive": "1", "negative": "0"}
    return form.with_unnamed_tellers({**fields, **filled, **label, **values})
