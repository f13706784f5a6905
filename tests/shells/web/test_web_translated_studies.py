"""A study's own texts on the page: in the owner's language where it has them, marked as what they are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from peer.web.languages import COOKIE
from tests.anon.study.test_translations import GERMAN, translated
from tests.support.visiting import Visited, visited


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Visited]:
    async with visited(tmp_path, translated(GERMAN)) as found:
        found.server.site.invites[found.aggregator.study] = found.aggregator.invite
        yield found


def speak(page: Visited, code: str) -> None:
    page.session.cookie_jar.update_cookies({COOKIE: code})


async def test_consent_is_read_in_the_owners_language_and_says_who_translated(page: Visited) -> None:
    speak(page, "de")
    got = await page.get(page.invite)
    assert '<h1><bdi lang="de">Schlaf und Kaffee</bdi></h1>' in got.text
    assert 'lang="de">Um einen Peer zu prüfen.</p>' in got.text
    assert '<bdi lang="de">Wie viel Kaffee du trinkst.</bdi>' in got.text and '<bdi lang="de">Du bist müde.' in got.text
    assert '<bdi lang="en">Your age.</bdi>' in got.text  # piece by piece
    assert "auf Englisch geschrieben. Einige ihrer Texte gibt es nur in dieser Sprache" in got.words


async def test_who_reads_another_language_is_told_which_one_it_was_written_in(page: Visited) -> None:
    speak(page, "es")
    got = await page.get(page.invite)
    assert '<bdi lang="en">Sleep and coffee</bdi>' in got.text
    assert "Los textos propios de este estudio están en inglés" in got.words


async def test_who_reads_the_main_language_is_told_nothing_of_it(page: Visited) -> None:
    got = await page.get(page.invite)
    assert '<bdi lang="en">Sleep and coffee</bdi>' in got.text and "was written in" not in got.words


async def test_the_steps_before_and_the_study_afterwards_speak_it_too(page: Visited) -> None:
    speak(page, "de")
    assert '<bdi lang="de">Schlaf und Kaffee</bdi>' in (await page.get("/start/data")).text
    await page.submit(page.invite, page.invite, answer="yes")
    for place in (page.study, page.study + "/prediction", page.study + "/leave"):
        assert "Schlaf und Kaffee" in (await page.get(place)).words, place


async def test_the_fingerprint_is_the_same_in_every_language(page: Visited) -> None:
    words = set()
    for code in ("en", "de", "es", "nl"):
        speak(page, code)
        text = (await page.get(page.invite)).text
        words |= {part.partition("<")[0] for part in text.split('class="words">')[1:]}
    assert len(words) == 1
