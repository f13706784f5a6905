"""A round of made-up people with a study's tellers, before anybody is asked; one who fails is named, with a step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aggregator.app import AggregatorApp
from aggregator.lab.dry_round import MEMBERS, SHORTEST, DryRound, tried
from anon.study.proposal import TellerPlace
from anon.transparency.fingerprint import words
from tests.shells.desk.test_desk_form_tellers import fields
from tests.support.clock import Clock
from tests.support.desk_browser import opened, words_of
from tests.support.teller_links import MemoryTeller

pytestmark = pytest.mark.slow
PLACES = [TellerPlace("Student council", "127.0.0.1:9000"), TellerPlace("office", "127.0.0.1:9001")]
STEPS = [
    "entry", "entry", "countersign", "key-shares", "key-share", "roll", "accepted", "admit", "settle", "list", "noise"
]  # fmt: skip
"""Each call of a teller: once to see who answers, then as in a study."""


def app_with(folder: Path, tellers: list[MemoryTeller]) -> AggregatorApp:
    return AggregatorApp(folder / "home", Clock(), processes=0, link_to=lambda address, *_: tellers[int(address[-1])])


async def of(folder: Path, change: Callable[[MemoryTeller], Any] = lambda _teller: None) -> DryRound:
    tellers = [MemoryTeller(folder / name) for name in ("council", "office")]
    change(tellers[1])
    async with app_with(folder, tellers) as app:
        found = await tried(PLACES, app)
        assert not app.studies()
    return found


async def test_made_up_people_are_added_up_and_every_teller_is_told_the_end(tmp_path: Path) -> None:
    told = list[MemoryTeller]()
    found = await of(tmp_path, told.append)
    assert found.members == MEMBERS and not found.fault and all(one.words for one in found.answers)
    assert told[0].calls == [*STEPS, "finish"]
    (study,) = told[0].studies
    assert (found.number, found.words) == (study.hex()[:SHORTEST], words(study)), "as the tellers show it"


@pytest.mark.parametrize("call", ["countersign", "roll", "noise"])
async def test_a_teller_that_is_away_at_any_step_is_named(call: str, tmp_path: Path) -> None:
    def away(teller: MemoryTeller) -> None:
        teller.away = lambda asked: asked == call

    found = await of(tmp_path, away)
    assert not found.members and found.fault.startswith("the teller office does not answer")
    assert "Ask who runs it" in found.fault


async def test_a_teller_that_never_answers_is_asked_for_no_round(tmp_path: Path) -> None:
    def away(teller: MemoryTeller) -> None:
        teller.away = lambda _call: True

    found = await of(tmp_path, away)
    assert not found.members and not found.fault and found.answers[1].fault and found.answers[0].words


async def test_a_teller_that_gives_a_wrong_share_is_found(tmp_path: Path) -> None:
    def lies(teller: MemoryTeller) -> None:
        teller.lies = lambda call, answer: answer[:-1] + bytes([answer[-1] ^ 1]) if call == "noise" else answer

    found = await of(tmp_path, lies)
    assert not found.members and "refuses" in found.fault


async def test_the_form_shows_the_round(tmp_path: Path) -> None:
    tellers = [MemoryTeller(tmp_path / name) for name in ("council", "office")]
    app = app_with(tmp_path, tellers)
    async with app, opened(app) as desk:
        page = await desk.get("/form")
        draft = page.text.partition('name="draft" value="')[2].partition('"')[0]
        shown = words_of((await desk.post("/form/round", draft=draft, **fields())).text)
        assert "They added up 3 made-up people. Nobody was asked, and nothing is published." in shown
        (study,) = tellers[0].studies
        assert f"Tellers show this round as {study.hex()[:8]}, at epsilon 1, with the words {words(study)}" in shown
        tellers[1].away = lambda call: call == "noise"
        shown = words_of((await desk.post("/form/round", draft=draft, **fields())).text)
        assert "The round came to no sum: the teller Library does not answer" in shown
        assert not app.studies()
