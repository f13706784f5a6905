"""The documents promise words that a screen shows: each promise stands in its document, and a rendered screen of a
study with two tellers keeps it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path

import pytest

from aggregator.desk.form import BEGINNING, TRIAL_FIELDS, columns_of, fields_of
from aggregator.desk.form_faults import COLUMN_LABELS, LABELS, STEPS
from aggregator.desk.form_file import TABLE
from aggregator.desk.rendering import environment
from aggregator.desk.student_page import reading_of
from aggregator.lab.dry_round import DryRound
from aggregator.report.page import render
from aggregator.rules.counters import Traffic
from aggregator.study.handout import TellerRequest, mail
from anon.protocols.tellers import presented_tellers, tellers_can
from anon.study.features import USUAL_COHORT
from tests.aggregator.protocols.test_sum_part import learned, published
from tests.docs.repository import ROOT
from tests.support.sums import TABLES, countersigned, manifest_of, sum_study
from tests.support.visiting import visited

pytestmark = [pytest.mark.slow, pytest.mark.source]

STUDY = manifest_of(TABLES)
TELLERS = presented_tellers(STUDY)
WORDS = tuple(one.words for one in TELLERS)
ALL = tuple(text for one in TELLERS for text in (one.name, one.words, one.address))
PROMISED = (
    ("docs/student/questions.md", "Consent shows you the words that the study names", "consent", WORDS),
    ("docs/student/questions.md", "count that teller as part of who asks", "consent", ("count that teller as the",)),
    ("docs/staff/run-a-teller.md", "Members compare them before they agree", "consent", ("Compare them.", *WORDS)),
    ("docs/staff/with-tellers.md", "students' consent show each teller's name, words and address", "consent", ALL),
    ("docs/staff/with-tellers.md", "Cards, mail, report", "mail", ALL),
    ("docs/staff/with-tellers.md", "Cards, mail, report", "report", ALL),
    ("docs/staff/with-tellers.md", "The report's epsilon is the one that you wrote", "report", ("epsilon 1 at delta",)),
    ("docs/staff/with-tellers.md", "The desk's form has a mail for them", "form", ("Mail to the tellers",)),
    ("docs/staff/with-tellers.md", "with your aggregator's key in it", "teller mail", ("anonml teller allow 0000",)),
    ("docs/staff/with-tellers.md", "Ask who answers", "form", ("Ask who answers",)),
    ("docs/staff/with-tellers.md", "Press Publish …", "form", ("Publish …", "Read the columns")),
    ("docs/staff/with-tellers.md", "a trial on this computer", "form", ("a trial on this computer",)),
    ("docs/staff/with-tellers.md", "Try one round with them", "form",
     ("Try one round with them", "made-up people, before anybody is asked")),
    ("docs/staff/with-tellers.md", "answers stay exact, and tellers add them up", "form", ("tellers add them up",)),
    ("docs/staff/ethics-and-data-protection.md", "any result would be at most FACTOR times as likely", "consent",
     ("the chances of whatever is published", "one in a million more")),
    ("docs/staff/ethics-and-data-protection.md", "so exact that they may tell who you are", "consent",
     ("they see your exact answers: without your name, but so exact that they may tell who you are",)),
    ("docs/staff/ethics-and-data-protection.md", "Do not decide anything about a person by it", "report",
     ("Decisions about one person, or",)),
)  # fmt: skip
"""A document, its promise, a screen, and what that screen shows."""


def plain(text: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())


def promise(page: str) -> str:
    return " ".join(re.sub(r"[*`]|\[|\]\([^)]*\)", "", (ROOT / page).read_text("utf-8")).split())


def form() -> str:
    fields = fields_of({})
    reading = reading_of(fields)
    return environment().get_template("form.html").render(
        draft="d", fields=fields, columns=columns_of(fields), labels=LABELS, column_labels=COLUMN_LABELS,
        steps=[head for head, _ in STEPS], lacking=reading.lacking, page=reading.page, belief=reading.belief,
        proposed=reading.proposed, tellers_can=tellers_can(spare=False),
        yes_among=lambda _values: "", trial=TRIAL_FIELDS, begun=BEGINNING, table=TABLE,
        cuts_by_itself=lambda _column: "", share=None,
        usual_minimum=USUAL_COHORT, answered=False, edited=False, asked=DryRound(()), linted=None,
        slow=False, faults=(), at_field={}, length=None, takes=None, proposes_tellers=False,
        lacking_tellers=0, secret=lambda: "",
        form_token="", now=0,
    )  # fmt: skip


async def screens(folder: Path) -> Mapping[str, str]:
    async with visited(folder, sum_study(TABLES)) as page:
        page.aggregator.publish("tellers", countersigned(page.aggregator.manifest))
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        consent = (await page.get(page.invite)).words
    report = render(STUDY, learned(STUDY, published(STUDY)[0]), Traffic(10, {}, {}), {0: 10})
    return {"consent": consent, "mail": plain(mail(STUDY)), "report": plain(report), "form": plain(form()),
            "teller mail": TellerRequest("Title", "staff", "00" * 32).mails()[0][1]}


async def test_every_promised_word_stands_in_its_document_and_on_its_screen(tmp_path: Path) -> None:
    shown = await screens(tmp_path)
    for page, said, screen, kept in PROMISED:
        assert said in promise(page), f"{page} says it no more; take it from the list: {said}"
        missing = [text for text in kept if text not in shown[screen]]
        assert not missing, f"{page} promises “{said}”, and {screen} does not show {missing}"


def test_a_report_with_two_tellers_takes_at_most_25_actions() -> None:
    """Of somebody who has read nothing yet: two pages, and each step of the path, a field being a step."""
    text = (ROOT / "docs/staff/with-tellers.md").read_text("utf-8").partition("## Try it on this computer")[2]
    steps = re.findall(r"^(\d+)\. (.*)$", text, re.MULTILINE)
    assert [int(number) for number, _ in steps] == [*range(1, len(steps) + 1)]
    assert steps[-1][1] == "Open the report that it names."
    more_fields = sum(said.count(", ") + said.count(" and who ") for _, said in steps if said.startswith("Fill in"))
    assert 15 <= 2 + len(steps) + more_fields <= 25


def test_staff_and_tellers_have_numbered_paths_for_a_terminal_alone() -> None:
    """With real tellers: two pages and the steps of staff, and of a teller, each command one that there is."""
    commands = (ROOT / "docs/reference/commands.md").read_text("utf-8")
    for page, head, most in (("with-tellers", "## All of it in a terminal", 25), ("run-a-teller", "## In short", 12)):
        text = (ROOT / f"docs/staff/{page}.md").read_text("utf-8").partition(f"{head}\n")[2].partition("\n## ")[0]
        steps = re.findall(r"^(\d+)\. (.*)$", text, re.MULTILINE)
        assert [int(number) for number, _ in steps] == [*range(1, len(steps) + 1)] and 8 <= 2 + len(steps) <= most
        named = {" ".join(found.split()[:3]) for found in re.findall(r"`(anonml [^`]*)`", text)}
        assert len(named) >= 3 and not [name for name in named if f"### `{name}" not in commands]
        said = {8: "eight", 9: "nine", 10: "ten", 11: "eleven"}
        staff = (ROOT / "docs/staff/with-tellers.md").read_text("utf-8")
        assert page == "with-tellers" or f"needs [{said[len(steps)]}](run-a-teller.md#in-short)" in staff
