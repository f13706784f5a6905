"""A page in another language is whole: figures, answers of the aggregator, the line above a report, numbers typed
back."""

from __future__ import annotations

import pytest

from anon.ldp import nano
from peer.web.languages import COOKIE
from tests.shells.web.test_web_results import joined
from tests.support.browsing_model import model_of
from tests.support.visiting import Visited


@pytest.fixture
def german(page: Visited) -> Visited:
    """The page of a browser that chose German."""
    page.session.cookie_jar.update_cookies({COOKIE: "de"})
    return page


async def test_a_prediction_has_the_languages_decimal_sign(german: Visited) -> None:
    await joined(german)
    german.aggregator.publish("model", model_of(german.aggregator.study.hex()))
    place = german.study + "/prediction"
    await german.submit(place, place)
    words = (await german.get(place)).words
    assert "24,1 %" in words and "40,0 %" in words and "24.1" not in words


async def test_the_line_above_a_report_is_in_the_pages_language_and_says_so(german: Visited) -> None:
    await joined(german)
    german.aggregator.clock.seconds = float(german.aggregator.manifest.timetable.ends) + 1
    german.aggregator.publish("report", b"<!doctype html><h1>Sleep</h1><p>We found nothing.</p>")
    got = await german.submit(german.study, german.study + "/report")
    got = await german.get(got.url)
    assert '<p lang="de"><strong>Der Bericht' in got.text and "We found nothing." in got.text


async def test_leaving_is_told_in_the_pages_language(german: Visited) -> None:
    await joined(german)
    await german.submit(german.study + "/leave", german.study + "/leave", answer="leave")
    words = (await german.get(german.study)).words
    assert "Du hast die Studie verlassen." in words and "you left" not in words
    assert "Sendefenster" not in words, "nothing leaves any more"
    await german.peer.step(german.aggregator.study)
    words = (await german.get(german.study)).words
    assert "not on its list" not in words and "Den Bericht lesen" not in words, "no report exists before the end"


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "kept"), [("2,5", "2.5"), ("2.5", "2.5"), ("3", "3")])
async def test_a_limit_is_read_as_the_page_writes_it(german: Visited, typed: str, kept: str) -> None:
    await german.submit("/budget", "/budget", per_study=typed)
    assert german.peer.policy().max_epsilon == nano(kept)
    again = (await german.get("/budget")).form("/budget")
    assert again["per_study"] == kept.replace(".", ",")
    await german.submit("/budget", "/budget")
    assert german.peer.policy().max_epsilon == nano(kept)


async def test_a_comma_is_no_decimal_sign_of_an_english_page_and_the_way_back_is_the_form(page: Visited) -> None:
    got = await page.submit("/budget", "/budget", per_study="2,5")
    assert got.status == 400 and 'href="/budget">Try again' in got.text


async def test_a_paused_study_does_not_say_that_its_packets_leave(page: Visited) -> None:
    await joined(page)
    await page.submit(page.study, page.study + "/pause", seconds="3600")
    for place in ("/", page.study):
        words = (await page.get(place)).words
        assert "Paused" in words and "Your enrolment leaves" not in words


async def test_one_row_is_told_as_one(page: Visited) -> None:
    page.server.site.invites[page.aggregator.study] = page.aggregator.invite
    await page.get("/start/data")
    seen = await page.upload("sleep.csv", b"age,cups,tired\n900,lots,\n", "start")
    assert "age lies outside of the study's range (900)." in seen.words and "of the first 1 rows" not in seen.words
    assert "cups holds none of the study's values (lots)." in seen.words


async def test_texts_of_a_study_do_not_claim_the_pages_language(german: Visited) -> None:
    german.server.site.invites[german.aggregator.study] = german.aggregator.invite
    text = (await german.get(german.invite)).text
    assert (
        '<bdi lang="">Sleep and coffee</bdi>' in text and '<p class="lead" dir="auto" lang="">To test a peer.' in text
    )


async def test_a_study_that_has_closed_names_no_limit(page: Visited) -> None:
    page.server.site.invites[page.aggregator.study] = page.aggregator.invite
    page.aggregator.clock.seconds = float(page.aggregator.manifest.timetable.enrol_closes) + 1
    words = (await page.get(page.invite)).words
    assert "Not possible: enrolment has closed" in words and "Your limits are on the page" not in words
