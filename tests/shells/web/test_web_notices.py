"""Notifications of the browser while the page is open: offered once, chosen by the owner, without a word of data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from peer.run.notices import FIRST_LOOK, NEXT_LOOK, SENTENCES, Happening, Matter
from peer.web.languages import COOKIE as LANGUAGE
from peer.web.notices import COOKIE, BrowserNotices
from tests.support.visiting import Visited, visited

OLD, NEW = Happening(Matter.ANSWER, "aa"), Happening(Matter.OVER, "bb")


# The rule


def test_what_the_page_shows_already_is_no_news_and_news_is_told_once_at_a_drawn_look() -> None:
    notices = BrowserNotices(lambda size: bytes(size))  # the earliest looks
    assert notices.due([OLD], 0) is None
    assert notices.due([OLD, NEW], FIRST_LOOK[0] - 1) is None  # not yet: who sees it would know when it came
    assert notices.due([OLD, NEW], FIRST_LOOK[0]) is Matter.OVER
    assert notices.due([OLD, NEW], 10 * NEXT_LOOK[1]) is None


def test_at_most_one_a_look_the_most_urgent_first() -> None:
    notices = BrowserNotices(lambda size: bytes(size))
    notices.due([], 0)
    assert notices.due([OLD, NEW], 1000) is Matter.ANSWER
    assert notices.due([OLD, NEW], 1000 + NEXT_LOOK[0] - 1) is None
    assert notices.due([OLD, NEW], 1000 + NEXT_LOOK[0]) is Matter.OVER


def test_looks_are_as_random_as_the_desktops() -> None:
    found = set()
    for _ in range(20):
        notices = BrowserNotices(os.urandom)
        notices.due([], 0)
        assert notices.due([NEW], FIRST_LOOK[0] - 1) is None and notices.due([NEW], FIRST_LOOK[1]) is Matter.OVER
        found.add(notices._look_at)
    assert len(found) == 20


def test_what_ended_and_came_again_is_told_again() -> None:
    notices = BrowserNotices(lambda size: bytes(size))
    notices.due([NEW], 0)
    notices.due([], 1000)
    assert notices.due([NEW], 10000) is Matter.OVER


# The page


async def test_it_is_offered_until_it_is_answered_and_the_answer_lasts(page: Visited) -> None:
    await page.joined()
    first = await page.get("/")
    assert "No, thank you" in first.words and "data-notices" not in first.text
    got = await page.submit("/", "/notices", answer="on")
    assert "tells you from now on" in got.words and "Do not tell me any more" in got.words
    assert "data-notices" in (await page.get("/budget")).text
    got = await page.submit("/", "/notices", answer="off")
    assert "Switched off." in got.words and "data-notices" not in got.text
    assert "No, thank you" not in got.words and "<details><summary>Be told" in got.text  # it stands back from then on
    cookie = next(one for one in page.session.cookie_jar if one.key == COOKIE)
    assert cookie["httponly"] and cookie["samesite"] == "Strict" and int(cookie["max-age"]) > 300 * 86400
    assert (await page.post("/notices", (await page.get("/")).form("/notices") | {"answer": "maybe"})).status == 400


async def test_the_sentence_says_that_something_is_and_asks_nobody(page: Visited) -> None:
    await page.joined()
    await page.submit("/", "/notices", answer="on")
    assert (await page.get("/notices")).status == 204
    await page.ended(NEXT_LOOK[1])
    asked = len(page.aggregator.gets), len(page.aggregator.posts)
    got = await page.get("/notices")
    assert got.status == 200 and got.text == SENTENCES[Matter.SENT]
    assert got.headers["Content-Type"].startswith("text/plain") and "script-src 'self'" in got.headers[
        "Content-Security-Policy"
    ]
    assert (await page.get("/notices")).status == 204  # once
    assert (len(page.aggregator.gets), len(page.aggregator.posts)) == asked


async def test_nothing_is_told_where_it_was_not_switched_on(page: Visited) -> None:
    await page.joined()
    await page.get("/notices")
    await page.ended(NEXT_LOOK[1])
    assert (await page.get("/notices")).status == 204


async def test_the_sentence_speaks_the_owners_language(page: Visited) -> None:
    await page.joined()
    await page.submit("/", "/notices", answer="on")
    page.session.cookie_jar.update_cookies({LANGUAGE: "de"})
    await page.get("/notices")
    await page.ended(NEXT_LOOK[1])
    assert (await page.get("/notices")).text == "Was du zugesagt hast, wurde gesendet. Es bleibt nichts zu tun."


async def test_a_job_of_another_program_that_waits_is_told(tmp_path: Path) -> None:
    waiting: list[tuple[str, str]] = []
    async with visited(tmp_path, asking=[lambda _folder: waiting]) as page:
        await page.joined()
        await page.submit("/", "/notices", answer="on")
        await page.get("/notices")
        waiting.append(("A federated job", "/federated/1"))
        page.aggregator.clock.seconds += NEXT_LOOK[1]
        assert (await page.get("/notices")).text == SENTENCES[Matter.ANSWER]


@pytest.mark.parametrize("word", ["Sleep", "coffee", "tired"])
def test_no_sentence_names_a_study(word: str) -> None:
    assert not any(word in sentence for sentence in SENTENCES.values())
