"""The consent screen of a study whose members write: who reads it stands in front, and nothing of perturbed answers."""

from __future__ import annotations

from pathlib import Path

from tests.support.letters_study import PROTOCOLS, STUDY
from tests.support.visiting import visited


async def test_the_screen_says_who_reads_before_it_asks_for_a_yes(tmp_path: Path) -> None:
    async with visited(tmp_path, STUDY, protocols=PROTOCOLS) as page:
        page.server.site.invites[page.aggregator.study] = page.aggregator.invite
        words = (await page.get(page.invite)).words
    before, _ = words.split("Do you take part?")
    for said in ("Who reads what you write", "everybody with the study's link", "one pseudonym", "awake in each"):
        assert said in before, said
    assert "noisy answer" not in words and "sealed shares" not in words
