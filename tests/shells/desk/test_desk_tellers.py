"""The desk of a study of exact sums: which teller a round waits for and since when, and why it ended without a sum."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from aggregator.app import AggregatorApp
from aggregator.rules.faults import TellerAway, TellerRefuses, repeated
from aggregator.rules.lifecycle import Phase
from aggregator.study.handout import mail
from anon.protocols.resolve import resolve
from anon.protocols.tellers import presented_tellers
from anon.study.manifest import Manifest
from tests.support.clock import Clock
from tests.support.desk_browser import Desk, opened, words_of
from tests.support.protocols import parse_proposal
from tests.support.sums import KEYS, TABLES, sum_study
from tests.support.teller_links import MemoryTeller
from tests.support.world import World, begin, study_text

NAMES = ("clinic", "students")
TELLERS = "".join(
    f'[[tellers]]\nname = "{name}"\naddress = "127.0.0.1:900{number}"\n' for number, name in enumerate(NAMES)
)
STUDY = sum_study(TABLES, TELLERS, minimum=3).replace('"1h"', '"100s"').replace('"10m"', '"20s"')


@asynccontextmanager
async def a_desk(folder: Path) -> AsyncIterator[tuple[Desk, World, list[MemoryTeller]]]:
    """Beside a study whose packets were all sent."""
    clock, tellers = Clock(), [MemoryTeller(folder / name) for name in NAMES]
    app = AggregatorApp(
        folder / "home", clock, processes=0, link_to=lambda address, *_: tellers[int(address[-1])]
    )
    async with app:
        world = await begin(app, clock, STUDY)
        await world.settle_in(4)
        async with opened(app, world) as desk:
            yield desk, world, tellers
        for one in world.peers:
            one.close()


def histogram(text: str) -> Manifest:
    return resolve(parse_proposal(text), KEYS, 1_800_000_000)


async def page(desk: Desk, world: World) -> str:
    return words_of((await desk.get(f"/studies/{world.live.study.hex()}")).text)


async def work(world: World, seconds: float, phase: Phase | None = None) -> None:
    """Until the study has come to a phase, or has a fault."""
    for _ in range(3000):
        if world.live.phase is phase or (phase is None and world.live.trouble):
            return
        world.clock.seconds += 0 if world.live.waits else seconds
        await world.app.tick()
    raise AssertionError(world.live.phase)


@pytest.mark.slow
async def test_the_page_names_the_teller_since_when_and_until_when(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as (desk, world, tellers):
        before = await page(desk, world)
        assert "then the tellers add it up, and the sum is published with the list of packets" in before
        assert (
            "the packets hold sealed shares for tellers, which tell nothing here" in before and "Unbiased" not in before
        )
        assert "waits for the teller" not in before and "needs you" not in before
        tellers[1].away = lambda call: call == "admit"
        await world.go_on(until=world.closes - 1)
        await work(world, 1)
        first = world.live.fault
        assert first is not None and first.since >= world.closes
        words = await page(desk, world)
        assert "This study waits for the teller students since" in words
        assert "the teller students does not answer (away). Nothing is lost. Ask who runs it" in words
        assert (
            "If nothing changes until" in words and "the study ends without a sum" in words and "needs you" not in words
        )
        world.clock.seconds += 400
        await world.app.tick()
        await work(world, 1)
        assert world.live.fault is not None and world.live.fault.since == first.since
        tellers[1].away = lambda _call: False
        await work(world, 5, Phase.PUBLISHED)
        assert "waits for the teller" not in await page(desk, world)


@pytest.mark.slow
async def test_names_words_and_addresses_stand_wherever_staff_present_the_study(tmp_path: Path) -> None:
    """On the study's page, on every card, in the mail and in the report; not for perturbed answers."""
    async with a_desk(tmp_path) as (desk, world, _tellers):
        manifest = world.live.manifest
        first = await page(desk, world)
        told = presented_tellers(manifest)
        assert [one.name for one in told] == list(NAMES) and len({one.words for one in told}) == 2
        for one in told:
            assert f"{one.name} {one.words} {one.address}" in first
            assert f"   {one.name} (program at {one.address}):\n   {one.words}\n" in mail(manifest)
        prints = words_of((await desk.get(f"/studies/{world.live.study.hex()}/fingerprints")).text)
        assert "1 the tellers' signatures" in prints
        await world.go_on(until=world.closes - 1)
        await work(world, 5, Phase.PUBLISHED)
        report = words_of((await desk.get(f"/studies/{world.live.study.hex()}/report")).text)
        for one in told:
            assert f"{one.name} {one.words} {one.address}" in report.partition("Who added it up")[2]
    assert presented_tellers(histogram(study_text())) == () and "teller" not in mail(histogram(study_text()))


@pytest.mark.slow
async def test_every_card_has_the_words_of_each_teller(tmp_path: Path) -> None:
    tellers = [MemoryTeller(tmp_path / name) for name in NAMES]
    clock = Clock()
    app = AggregatorApp(tmp_path / "home", clock, processes=0, link_to=lambda address, *_: tellers[int(address[-1])])
    async with app:
        world = await begin(app, clock, STUDY)
        async with opened(app, world) as desk:
            await desk.get(f"/studies/{world.live.study.hex()}")
            cards = await desk.post(f"/studies/{world.live.study.hex()}/invites", count="2", address="127.0.0.1:8750")
            for one in presented_tellers(world.live.manifest):
                assert words_of(cards.text).count(f"{one.name} (program at {one.address} ): {one.words}") == 2
        for member in world.peers:
            member.close()


@pytest.mark.slow
async def test_the_page_says_why_there_is_no_sum(tmp_path: Path) -> None:
    async with a_desk(tmp_path) as (desk, world, tellers):
        tellers[1].away = lambda _call: True
        await world.go_on(until=world.closes - 1)
        await work(world, world.live.manifest.release.retention / 5, Phase.ENDED)
        words = await page(desk, world)
        assert "This study ended without a sum: round 1 has no sum" in words
        assert "a teller did not come back in time (the teller students does not answer (away)" in words
        assert "Publish it anew with tellers that stay on" in words and "what each of them spent stays spent" in words
        assert "needs you" not in words and "waits for the teller" not in words


@pytest.mark.slow
def test_a_wait_begins_anew_for_another_teller() -> None:
    first = repeated(None, TellerAway("clinic"), 10.0, 0.0)
    same = repeated(first, TellerRefuses("clinic", "no"), 20.0, 0.0)
    other = repeated(same, TellerAway("students"), 30.0, 0.0)
    full = repeated(other, OSError("x"), 40.0, 0.0)
    assert [one.since for one in (first, same, other, full)] == [10.0, 10.0, 30.0, 40.0]
    assert [one.teller for one in (first, same, other, full)] == ["clinic", "clinic", "students", ""]
