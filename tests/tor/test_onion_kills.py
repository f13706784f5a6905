"""SIGKILL at random instants of collection: a peer, its tor, the aggregator, or the aggregator's tor.

A killed tor is started again by its owner, a killed owner by the test, as a service manager would; the tor of a killed
owner must end by itself. The seed fixes who is killed and after how long; where things stand by then differs.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import define, field

from anon.kit.testnet import PrivateNetwork
from anon.study.manifest import Manifest
from anon.wire.replies import ACCEPTED
from tests.support import command_line
from tests.support.command_line import anonml, start
from tests.support.journal import TAG_BYTES, Ended, Journal
from tests.support.onion_commands import TWO_PACKETS, OnionServing, onion_study, tor_of
from tests.support.protocols import parse_manifest

pytestmark = pytest.mark.tor
VICTIMS = ("peer", "peer's tor", "aggregator", "aggregator's tor")
HERE = Path(__file__).parent
STARTING = 12.0
"""Seconds until the aggregator answers through Tor and its peers have their data, on a quiet machine."""


@define
class Runner:
    """One peer's `run`, started again until it has nothing left to do."""

    home: Path
    log: Path
    process: asyncio.subprocess.Process | None = None
    deaths: int = 0
    done: bool = False

    async def keep(self) -> None:
        """Until it ends by itself."""
        while not self.done:
            with self.log.open("ab") as log:
                words = ("peer", "run", "--once", "--max-seconds", "400", "--home", self.home)
                self.process = await start(*words, log=log)
            code = (await _ended(self.process)).returncode
            assert code in (0, -9, 7), self.log.read_text()
            self.done = code == 0
            self.deaths += code == -9
            await asyncio.sleep(0.5 if code == 7 else 0)


async def _ended(process: asyncio.subprocess.Process) -> asyncio.subprocess.Process:
    try:
        await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    return process


@define
class Killing:
    """One study that survives. Its windows, in seconds, are of a quiet machine; a slow one gets longer ones."""

    folder: Path
    random: Random
    peers: int
    enrol: int
    settle: int
    collect: int
    victims: Sequence[str] = ()
    killed: list[str] = field(factory=list)
    sent: list[tuple[str, bytes]] = field(factory=list)
    orphans: list[int] = field(factory=list)
    staff: OnionServing = field(init=False)
    runners: list[Runner] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.folder.mkdir()
        self.staff = OnionServing(self.folder / "staff", str(HERE / "recording_serve.py"))
        self.runners = [
            Runner(self.folder / f"peer-{number}", self.folder / f"peer-{number}.log") for number in range(self.peers)
        ]

    async def run(self, kills: int) -> None:
        """A whole study during whose collection so many processes are killed, about evenly."""
        began = time.monotonic()
        with _recorded(self.folder / "record"):
            await _all([self.staff.start(), *map(self._settle_in, range(self.peers))])
            slowness = max(1.0, (time.monotonic() - began) / STARTING)
            try:
                await self._live(kills, slowness)
            finally:
                await self.staff.stop()
        record = (self.folder / "record").read_text().splitlines()
        self.sent = [(line.split()[0], bytes.fromhex(line.split()[1])) for line in record]

    async def _live(self, kills: int, slowness: float) -> None:
        file = self.folder / "study.toml"
        lengths = {name: ceil(slowness * getattr(self, name)) for name in ("enrol", "settle", "collect")}
        file.write_text(onion_study("Killed", TWO_PACKETS, "open", **lengths))
        study = (await anonml("study", "publish", file, "--home", self.staff.home))["study"]
        (link,) = await self.staff.invited(study)
        await _all(anonml("peer", "join", link, "--yes", "--home", one.home) for one in self.runners)
        async with asyncio.TaskGroup() as running:
            for one in self.runners:
                running.create_task(one.keep())
            await self._kill(kills)
            await self._published(study)

    async def _settle_in(self, number: int) -> None:
        home, file = self.runners[number].home, self.folder / f"{number}.csv"
        file.write_text(
            f"age,sex,income\n{20 + 9 * number},{('Female', 'Male')[number % 2]},{('low', 'high')[number % 2]}\n"
        )
        await anonml("peer", "import", file, "--table", "person", "--home", home)
        await anonml("peer", "budget", "--minimum-cohort", "2", "--minimum-window", "0", "--home", home)

    async def _kill(self, kills: int) -> None:
        (window,) = self.manifest.windows
        await asyncio.sleep(max(0.0, window.opens - time.time()))
        length = (window.closes - time.time()) * 0.8 / kills
        for number in range(kills):
            rest = self.random.uniform(0.1, 0.9) * length
            await asyncio.sleep(rest)
            await self._kill_one(self.victims[number] if self.victims else self.random.choice(VICTIMS))
            for one in self.runners:
                Journal(one.home).look()
            await asyncio.sleep(length - rest)

    async def _kill_one(self, victim: str) -> None:
        alive = [one for one in self.runners if one.process is not None and one.process.returncode is None]
        runner = self.random.choice(alive or self.runners)
        owner = runner.process.pid if victim.startswith("peer") and runner.process else self.staff.pid
        tor = tor_of(owner) if Path(f"/proc/{owner}").exists() else None
        if victim.endswith("tor"):
            if tor is None:
                return await self._kill_one(victim.removesuffix("'s tor"))  # it is down just now
            _kill(tor)
        elif victim == "peer":
            _kill(owner)
        else:
            await self.staff.kill()
            await self.staff.start()
        if not victim.endswith("tor") and tor is not None:
            await self._see_end(tor)
        self.killed.append(victim)

    async def _see_end(self, tor: int) -> None:
        """A tor whose owner was killed is gone within two seconds."""
        for _ in range(20):
            if not Path(f"/proc/{tor}").exists():
                return
            await asyncio.sleep(0.1)
        self.orphans.append(tor)

    async def _published(self, study: str) -> None:
        while self.staff.phases.get(study) != "published":
            assert time.time() < self.manifest.timetable.ends + 60, self.staff.log.read_text()[-2000:]
            await asyncio.sleep(0.2)

    @property
    def home(self) -> Path:
        """The aggregator's."""
        return self.staff.home

    @property
    def manifest(self) -> Manifest:
        """The study's."""
        with closing(sqlite3.connect(self.home / "aggregator.sqlite", timeout=30)) as store:
            ((body,),) = store.execute("SELECT body FROM documents WHERE number = 0").fetchall()
        return parse_manifest(body)


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


@contextmanager
def _recorded(file: Path) -> Iterator[None]:
    command_line.ENVIRONMENT["ANONML_TEST_RECORD"] = str(file)
    yield
    del command_line.ENVIRONMENT["ANONML_TEST_RECORD"]


async def _all(works: Any) -> list[Any]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]
    return [task.result() for task in tasks]


def statuses_of(killing: Killing) -> Counter[str]:
    """The final status of every packet. None was lost, none left with different bytes, and each counts once."""
    ended = Ended(killing)  # type: ignore[arg-type]  # a study's home and manifest are all it needs
    assert killing.orphans == []
    spellings: dict[tuple[int, bytes], set[bytes]] = defaultdict(set)
    came: Counter[tuple[int, bytes]] = Counter()
    for word, sealed in killing.sent:
        plaintext, packet = ended.opened(sealed)
        place = packet.slot, packet.token[:TAG_BYTES]
        spellings[place].add(sealed)
        came[place] += word == "came"
        if word == ACCEPTED:
            assert plaintext in ended.accepted, "an acknowledged packet was lost"
    assert all(len(sealed) == 1 for sealed in spellings.values()), "a packet left with different bytes"
    assert max(came.values()) <= 4
    assert sum(map(len, ended.kept)) == len(ended.accepted), "a packet counts twice"
    statuses: Counter[str] = Counter()
    for runner in killing.runners:
        journal = Journal(runner.home)
        journal.look()
        assert journal.reserved == 0
        statuses.update(journal.statuses)
    assert statuses["included"] <= len(ended.accepted) <= len(ended.roster) * killing.manifest.packets
    return statuses


async def test_two_kills_of_a_study_through_tor(tmp_path: Path, through_tor: PrivateNetwork) -> None:
    """A peer's tor and the aggregator, in windows too short for the share of packets that survive to mean much."""
    victims = ("aggregator", "peer's tor")
    killing = Killing(tmp_path / "study", Random(3), peers=2, enrol=14, settle=4, collect=20, victims=victims)
    await killing.run(len(victims))
    assert len(killing.killed) == len(victims)
    statuses = statuses_of(killing)
    assert set(statuses) <= {"included", "given-up"} and statuses["included"] >= 1, statuses


@pytest.mark.soak
async def test_thirty_random_kills_of_studies_through_tor(tmp_path: Path, through_tor: PrivateNetwork) -> None:
    killed: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    for turn in range(3):
        killing = Killing(tmp_path / str(turn), Random(turn), peers=5, enrol=35, settle=8, collect=110)
        await killing.run(10)
        killed.update(killing.killed)
        statuses += statuses_of(killing)
    print(f"killed: {dict(killed)}; packets: {dict(statuses)}")
    assert killed.total() == 30
    assert set(statuses) <= {"included", "given-up"}, statuses
    assert statuses["included"] >= 0.9 * statuses.total(), statuses
