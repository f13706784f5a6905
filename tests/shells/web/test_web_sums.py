"""The consent screen of a study of exact sums: what leaves, to whom, what is promised, and nothing of perturbed
answers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from anon.protocols.cost_words import DELTA, Amount
from anon.protocols.registry import charge_of
from peer.data.importing import import_rows
from tests.support.fake_aggregator import DECLARED
from tests.support.sums import GRADIENT, MOMENTS, TABLES, countersigned, many, sum_study
from tests.support.visiting import visited

LOCAL_WORDS = (
    "Your true answer stays here",
    "how often it is the truth",
    "noisy answer",
    "Counts as",
    "Decide by the odds",
    "is a hint",
)


async def screen(folder: Path, text: str) -> str:
    async with visited(folder, text) as page:
        if (study := page.aggregator.manifest).protocol == "sum":
            page.aggregator.publish("tellers", countersigned(study))
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        return (await page.get(page.invite)).words


@pytest.mark.slow
@pytest.mark.parametrize(("design", "leaves"), [
    (TABLES, "as a mark in one cell of each of 3 tables"),
    (MOMENTS, "as 10 numbers: the product of every two of your values"),
    (GRADIENT, "leave 3 times: how far a common model is off for you"),
])
async def test_the_screen_says_what_leaves_and_on_whom_it_rests(design: str, leaves: str, tmp_path: Path) -> None:
    words = await screen(tmp_path, sum_study(design))
    for said in (
        leaves,
        "2 shares, one for each teller: “clinic” and “students”",
        "keeps to epsilon 1, plus a chance of one in a million, if at least one of them is honest",
        "A sum is published of 2 members or more: some may miss their time to send.",
        "they see your exact answers: without your name, but so exact that they may tell who you are",
        (
            "The promise holds if at least one of the tellers “clinic” and “students” keeps its shares to itself, "
            "adds its noise and signs one list only. "
            "Otherwise it does not hold."
        ),
        "The numbers that leave are computed from these",
        "So decide by whom you trust, not by your answer.",
        "Epsilon 1 about you, of what is published. Had your answers been others, the chances of",
        "move by at most a factor of 2.72, and by one in a million more.",
    ):
        assert said in words, said
    shown, _, folded = words.partition("The arithmetic of it")
    assert "rho" not in shown and "1.0" not in shown.partition("What it costs")[2], "one epsilon, without arithmetic"
    assert "The arithmetic: rho 0.02" in folded
    assert Decimal("1e-6") == DELTA and "delta" not in shown, "words where all read, the number where it is asked for"
    assert "In technical terms: central epsilon 1 at delta 0.000001." in folded
    assert not [wrong for wrong in LOCAL_WORDS if wrong in words]
    assert "What mixing with the others would add" not in words, "a heading with nothing below"


@pytest.mark.slow
async def test_what_a_study_holds_is_told_in_its_one_epsilon(tmp_path: Path) -> None:
    """Rho alone implies 1.08 where the study declares 1."""
    async with visited(tmp_path, sum_study(TABLES)) as page:
        import_rows(page.home.data_path, "person", ("age", "sleep", "cups", "tired"), [(30, 8, "some", 1)])
        page.aggregator.publish("tellers", countersigned(page.aggregator.manifest))
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        got = await page.submit(page.invite, page.invite, answer="yes")
        assert "Spent epsilon 0 Reserved epsilon 1 " in got.words and "rho" not in got.words.partition("Reserved")[0]
    study = page.aggregator.manifest
    amounts = (0, study.epsilon, study.epsilon // 2)
    none, all_of_it, half = (Amount(charge_of(study).budget, amount, study).epsilon for amount in amounts)
    assert (none, all_of_it) == (0, 10**9) and 0 < half < 10**9


async def test_a_study_of_perturbed_answers_says_what_it_said(tmp_path: Path) -> None:
    words = await screen(tmp_path, DECLARED)
    assert all(said in words for said in LOCAL_WORDS) and "tellers" not in words


@pytest.mark.slow
@pytest.mark.parametrize(("records", "few"), [(3, True), (5, False)])
async def test_too_few_records_are_told_and_stand_against_no_yes(records: int, few: bool, tmp_path: Path) -> None:
    """The owner reads it before a yes. A phone's page counts nothing."""
    text = sum_study(MOMENTS, keys=many(20, "person") + "least_records = 5\n")
    async with visited(tmp_path, text) as page:
        columns = ("day", "age", "sleep", "cups", "tired")
        import_rows(page.home.data_path, "person", columns, [(day, 30, 8, "some", 1) for day in range(records)])
        page.aggregator.publish("tellers", countersigned(page.aggregator.manifest))
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        note = "The study is meant for members with at least 5 records, and finds 3 of yours"
        shown = await page.get(page.invite)
        assert "taking part may be read as having them" in shown.words and "Yes, take part" in shown.words
        assert (note in shown.words) is few
        page.server.site.paired = True
        assert note not in (await page.get(page.invite)).words
        page.server.site.paired = False
        got = await page.submit(page.invite, page.invite, answer="yes")
        assert "You take part." in got.words and len(page.peer.status()) == 1
