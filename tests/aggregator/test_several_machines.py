"""Copies of a home, as on several machines, serve one database on a server; others' homes and copied databases do
not."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from pathlib import Path

import pytest

from aggregator.app import AggregatorApp
from aggregator.store.dialects import set_up
from aggregator.store.home import DATABASE_URL, open_home
from anon.errors import Malformed, Refused
from tests.support.clock import Clock
from tests.support.postgres import Server
from tests.support.protocols import parse_proposal
from tests.support.serving import Serving
from tests.support.shared_clock import SharedClock
from tests.support.world import FakePeer, in_memory, make_app, study_text

pytestmark = pytest.mark.postgres
STEPS_BACK_SECONDS = 25.0
ERASING_SECONDS = 30.0
"""Keys are erased after the database says so: a study that is not erased is loaded with its keys."""


@pytest.mark.process
async def test_copies_of_a_home_serve_one_database_and_take_over_from_each_other(
    postgres: Server, tmp_path: Path
) -> None:
    """Also a study that was published later: the copy with its keys leads, and the other follows once it has them."""
    url, clock, here, there = postgres.made(), SharedClock(tmp_path / "clock"), tmp_path / "here", tmp_path / "there"
    await set_up(open_home(here, os.urandom), url)
    serving = Serving(here, clock, postgres, url, tmp_path)
    async with AggregatorApp(here, clock, os.urandom, processes=0) as app:
        text = study_text(minimum=5, admission="open")
        first = await app.create_study(parse_proposal(text))
        shutil.copytree(here, there)
        try:
            one = await serving.start()
            await serving.led_by(lambda pid: pid == one)
            other = await serving.start(home=there)
            for pid in (one, other):
                assert (
                    await serving.post(pid, first.study_id, "enrol", FakePeer(first).sealed_enrolment()) == "accepted"
                )
            serving.kill(one)
            await serving.led_by(lambda pid: pid == other)

            second = await app.create_study(parse_proposal(text.replace("100s", "101s", 1)))
            one = await serving.start()
            await serving.led_by(lambda pid: pid == one, STEPS_BACK_SECONDS)
            peers = [FakePeer(second) for _ in range(3)]
            assert await serving.post(one, second.study_id, "enrol", peers[0].sealed_enrolment()) == "accepted"
            with pytest.raises(Malformed):
                await serving.post(other, second.study_id, "enrol", peers[1].sealed_enrolment())
            keys = app.home.secrets_path(second.study_id)
            shutil.copy(keys, there / "studies" / keys.name)
            await asyncio.sleep(1.5)
            assert await serving.post(other, second.study_id, "enrol", peers[1].sealed_enrolment()) == "accepted"
            serving.kill(one)
            await serving.led_by(lambda pid: pid == other)
            clock.seconds = second.timetable.enrol_closes
            for study in (first, second):
                await serving.reached("abandoned", study.study_id)
            clock.seconds = second.timetable.ends + second.release.retention
            for study in (first, second):
                await serving.reached("erased", study.study_id)
            deadline = time.monotonic() + ERASING_SECONDS
            while left := [path for path in (there / "studies").iterdir() if path.suffix == ".keys"]:
                assert time.monotonic() < deadline, f"each copy erases its own keys: {left}"
                await asyncio.sleep(0.1)
        finally:
            serving.end()


async def test_the_database_of_another_aggregator_is_refused(postgres: Server, tmp_path: Path) -> None:
    url = postgres.made()
    await set_up(open_home(tmp_path / "home", os.urandom), url)
    with pytest.raises(Refused, match="another aggregator"):
        await set_up(open_home(tmp_path / "second", os.urandom), url)
    third = open_home(tmp_path / "third", os.urandom)
    (third.path / DATABASE_URL).write_text(url)
    with pytest.raises(Refused, match="another aggregator"):
        async with make_app(third.path, Clock()):
            pass


async def test_a_copied_database_is_not_served_before_staff_say_so(postgres: Server, tmp_path: Path) -> None:
    """A dump that was restored has another place than its mark says."""
    url = postgres.made()
    name = url.split("/")[3].partition("?")[0]
    async with in_memory(tmp_path / "home", study_text(), database_url=url):
        pass
    postgres.run(f"CREATE DATABASE {name}_copy TEMPLATE {name}")
    shutil.copytree(tmp_path / "home", tmp_path / "copy")
    (tmp_path / "copy" / DATABASE_URL).write_text(url.replace(name, f"{name}_copy"))
    async with make_app(tmp_path / "copy", Clock()) as app:
        with pytest.raises(Refused, match="restored from a backup"):
            await app.serve("127.0.0.1", 0)
        for restored in (True, False):  # said once
            serving = asyncio.create_task(app.serve("127.0.0.1", 0, restored=restored))
            await asyncio.sleep(0.5)
            assert not serving.done()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


async def test_a_dump_that_is_put_back_at_its_place_is_known_by_the_token_that_it_lacks(
    postgres: Server, tmp_path: Path
) -> None:
    """Server and number are those of its mark. A copy of the home on another machine has a token of its own."""
    url = postgres.made()
    name = url.split("/")[3].partition("?")[0]

    async def serves(folder: Path) -> bool:
        async with make_app(folder, Clock()) as app:
            opened: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            serving = asyncio.create_task(app.serve("127.0.0.1", 0, opened.set_result))
            await asyncio.wait({serving, opened}, return_when=asyncio.FIRST_COMPLETED)
            serving.cancel()
            (error,) = await asyncio.gather(serving, return_exceptions=True)
            if isinstance(error, Refused):
                raise error
            return opened.done()

    async with in_memory(tmp_path / "home", study_text(), database_url=url):
        pass
    assert await serves(tmp_path / "home")
    async with make_app(tmp_path / "home", Clock()) as app:
        assert not await app.led(), "nobody serves"
        assert await app._database.leads() and await app.led()
    shutil.copytree(tmp_path / "home", tmp_path / "copy")
    dumped = postgres.run("SELECT token FROM served", name)
    for home in ("home", "copy", "home", "copy"):
        assert await serves(tmp_path / home)
    postgres.run(f"DELETE FROM served WHERE token != '{dumped}'", name)
    with pytest.raises(Refused, match="restored from a backup"):
        await serves(tmp_path / "home")
    postgres.run(f"DROP DATABASE {name} WITH (FORCE)")
    postgres.run(f"CREATE DATABASE {name} TEMPLATE template0")
    with pytest.raises(Refused, match="restored from a backup"):  # an empty one in its place
        await serves(tmp_path / "home")
