"""Two whole studies by programs, a histogram and a sum with two tellers: two peers on Windows' Python beside one on
Linux, against an aggregator and tellers on Linux. One of those on Windows is killed again and again."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field, frozen

from anon.kit.testnet import PrivateNetwork
from anon.route.tor import TorKeeper
from anon.storage.crash_points import VARIABLE
from examples.clock import Keeper
from peer.store.crash_points import POINTS
from tests.support.command_line import ENVIRONMENT
from tests.support.noted_program import CLOCK, KEEPER, LOOK
from tests.support.served_tellers import free_port
from tests.support.studies import course_of_three
from tests.support.sum_programs import Program
from tests.support.sums import MOMENTS, NAMES, sum_study
from tests.windows import wine
from tests.windows.commands import WAIT
from tests.windows.wine import DISK, LINUX, WINDOWS, System, needs_windows

pytestmark = [pytest.mark.process, pytest.mark.timeout(1800), needs_windows]
LENGTHS = {"enrol": 1200, "settle": 300, "collect": 1200}
HISTOGRAM = course_of_three("Ein Kurs mit Umlauten: Größe").format(**LENGTHS)
LOOK_SECONDS = "10"
"""Of the study's clock, between two looks of the aggregator."""
HERE = DISK / "users" / "Änne Müller 学生" / "Anon ML #1 100%"
"""Of the first, below a user's folder on C:. The second one's is on another drive."""
ON_WINDOWS = 2
LIVED = [point for point in POINTS if point.partition("-")[2] in {
    "send-of-enrolment", "commit-of-enrolment", "commit-of-evaluation", "commit-of-release", "commit-of-attempt",
    "send-of-packet", "commit-of-answer", "commit-of-end",
}]  # fmt: skip
"""The crash points of a study that goes well, as a member comes to them."""
DEATHS = ("after-send-of-enrolment", "after-commit-of-release", "after-send-of-packet")


@define
class Seen:
    """The output of the commands, by kind; on Windows first. `audits`: by study."""

    receipts: list[Any] = field(factory=list)
    statuses: list[Any] = field(factory=list)
    predictions: list[Any] = field(factory=list)
    consents: list[str] = field(factory=list)
    audits: list[dict[str, Any]] = field(factory=list)


@frozen
class Member:
    """One person, and the system that their commands run on. `times`: how these find the clock, and its keeper.
    `deaths`: the points at which this member's programs are killed, one after the other."""

    on: System
    home: Path
    times: Mapping[str, str]
    route: str
    deaths: Sequence[str] = ()

    async def live(self, file: Path, links: Sequence[str], over: Path) -> tuple[list[str], list[Any]]:
        """From an empty home to predictions, once the file `over` is there: what consent printed, and the rest."""
        settled = [
            ("import", file, "--table", "person"),
            ("budget", "--lifetime", "8", "--minimum-cohort", "3"),
            *(("join", link, "--yes", "--route", self.route) for link in links),
        ]
        lived = ("run", "--once", "--max-seconds", "9e5", "--route", self.route)
        last = [("receipts",), ("status",), *(("predict", link, "--route", self.route) for link in links)]
        rest = [self._at_home(lived), (WAIT, over), *(self._at_home((*words, "--json")) for words in last)]
        begun = [self._at_home(words) for words in settled]
        for point in self.deaths:
            await self.on.killed(*begun, *rest, **self.times, **{VARIABLE: point})
            begun = []
        said = await self.on.plain(*begun, *rest, **self.times)
        return said[: len(begun)], [json.loads(text) for text in said[-len(last) :]]

    def _at_home(self, words: Sequence[str | Path]) -> Sequence[str | Path]:
        return ("peer", *words, "--home", self.home)


@asynccontextmanager
async def port_of(keeper: Path) -> AsyncIterator[int]:
    """A port of this machine that leads to the keeper's socket."""

    async def joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        read, write = await asyncio.open_unix_connection(keeper)
        await asyncio.gather(_passed_on(reader, write), _passed_on(read, writer))

    async with await asyncio.start_server(joined, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def _passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with closing(writer):
        while content := await reader.read(2**16):
            writer.write(content)
            await writer.drain()


@define
class Staff:
    """The aggregator, and two tellers of the sum, by the clock of the keeper."""

    folder: Path
    keeper: Keeper
    programs: list[Program] = field(factory=list)
    studies: list[str] = field(factory=list)

    @property
    def home(self) -> Path:
        return self.folder / "staff"

    @property
    def _clock(self) -> dict[str, str]:
        return {CLOCK: str(self.keeper.clock.path)}

    async def run(self, *commands: Sequence[str | Path]) -> list[Any]:
        """Each `anonml COMMAND --json`."""
        told = await LINUX.plain(*((*words, "--json") for words in commands), **self._clock)
        return [json.loads(text) for text in told]

    async def begin(self, serve: Sequence[str], with_sum: bool) -> str:
        """The studies are published, and served at the address that is returned."""
        tellers = NAMES if with_sum else ()
        places = [
            ("teller", "init", "--name", name, "--loopback", "--port", str(free_port()), "--home", self.folder / name)
            for name in tellers
        ]
        addresses = [made["address"] for made in await self.run(*places)] if places else []
        await _all(self._serve(("teller", "serve"), self.folder / name) for name in tellers)
        named = zip(tellers, addresses, strict=True)
        said = "".join(f'[[tellers]]\nname = "{name}"\naddress = "{address}"\n' for name, address in named)
        texts = [HISTOGRAM, *([summed(said)] if with_sum else [])]
        files = [self.folder / f"study-{number}.toml" for number, _ in enumerate(texts)]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text)
        asked = (("study", "publish", file, "--loopback", "--home", self.home) for file in files)
        self.studies = [made["study"] for made in await self.run(*asked)]
        joins = {KEEPER: str(self.keeper.place), LOOK: LOOK_SECONDS}
        return await self._serve(("aggregator", "serve", *serve), self.home, **joins)

    async def _serve(self, words: tuple[str, ...], home: Path, **joins: str) -> str:
        self.programs.append(program := Program(words, home, {**ENVIRONMENT, **self._clock, **joins}, []))
        return await program.start()

    async def until_over(self) -> None:
        """Until all is published."""
        async with asyncio.timeout(wine.LONGEST):
            told = self.home.with_suffix(".out-0")
            await _until(lambda: told.read_text().count('"published"') == len(self.studies))

    async def audits(self, keys: Sequence[str]) -> list[dict[str, Any]]:
        """Of each study, by its export."""
        commands: list[Sequence[str | Path]] = []
        for number, (study, key) in enumerate(zip(self.studies, keys, strict=True)):
            place = self.folder / f"published-{number}"
            commands.append(("aggregator", "export", place, "--study", study, "--home", self.home))
            commands.append(("aggregator", "audit", place, "--key", key))
        return (await self.run(*commands))[1::2]

    async def stop(self) -> None:
        for program in self.programs:
            await program.stop()


def summed(tellers: str) -> str:
    """The study file of a sum."""
    text = sum_study(MOMENTS, tellers, minimum=3)
    for name, length in (("enrol", "1h"), ("settle", "10m"), ("collect", "1h")):
        text = text.replace(f'{name} = "{length}"', f'{name} = "{LENGTHS[name]}s"')
    return text


async def _until(reached: Callable[[], bool]) -> None:
    while not reached():
        await asyncio.sleep(0.05)


async def play(
    folder: Path,
    serve: Sequence[str] = ("--port", "0"),
    route: str = "auto",
    deaths: Sequence[str] = (),
    with_sum: bool = False,
) -> Seen:
    """From empty homes to predictions, by a clock that waits for all of them: a busy machine makes nobody late."""
    folder.mkdir(exist_ok=True)
    with wine.booted(), Keeper(folder / "clock", parties=4) as keeper:
        staff, over = Staff(folder, keeper), folder / "over"
        async with port_of(keeper.place) as port:
            here = {CLOCK: str(keeper.clock.path), KEEPER: str(port)}
            there = here | {CLOCK: wine.of_windows(keeper.clock.path)}
            members = [
                Member(WINDOWS, HERE, there, route, deaths),
                Member(WINDOWS, folder / "second", there, route),
                Member(LINUX, folder / "third", here, route),
            ]
            try:
                address = await staff.begin(serve, with_sum)
                asked = ("aggregator", "invite", "--count", str(len(members)), "--address", address)
                invited = await staff.run(*((*asked, "--study", one, "--home", staff.home) for one in staff.studies))
                lives = []
                for number, (member, links) in enumerate(zip(members, zip(*invited, strict=True), strict=True)):
                    file = folder / f"{number}.csv"
                    values = f"{25 + 20 * number},{('low', 'high')[number % 2]},{5 + number},some,{number % 2}"
                    file.write_bytes(f"age,income,sleep,cups,tired\r\n{values}\r\n".encode())
                    lives.append(member.live(file, links, over))
                _, *found = await asyncio.gather(_over(staff, over), *lives)
            finally:
                await staff.stop()
            audits = await staff.audits([links[0].split("key=")[1].split("&")[0] for links in invited])
    return Seen(
        [receipts for _, (receipts, *_) in found],
        [statuses for _, (_, statuses, *_) in found],
        [predictions for _, (_, _, *predictions) in found],
        ["".join(said) for said, _ in found],
        audits,
    )


async def _over(staff: Staff, over: Path) -> None:
    await staff.until_over()
    over.touch()


async def _all(works: Iterable[Coroutine[Any, Any, Any]]) -> None:
    async with asyncio.TaskGroup() as together:
        for work in works:
            together.create_task(work)


def demand_found_again(seen: Seen, studies: int) -> None:
    """One packet of each member and study, accepted and found again, and nothing else."""
    assert [[(one["status"], one["word"]) for one in mine] for mine in seen.receipts] == [
        [("included", "accepted")] * studies
    ] * 3
    assert [[one["state"] for one in mine] for mine in seen.statuses] == [["finished"] * studies] * 3
    for audit in seen.audits:
        assert audit["verdict"] == "all-checked" and audit["packets"] == audit["enrolled"] == 3
    assert len(seen.audits) == studies


def test_studies_of_windows_and_linux_go_from_a_file_to_packets_found_again_and_predictions(tmp_path: Path) -> None:
    """One packet each, charged once, also of a member whose programs were killed on the way. Windows predicts as Linux
    does, and names times by UTC and not by its own long names."""
    shutil.rmtree(HERE, ignore_errors=True)
    seen = asyncio.run(play(tmp_path / "study", deaths=DEATHS, with_sum=True))
    shutil.rmtree(HERE.parent, ignore_errors=True)
    demand_found_again(seen, 2)
    own = [found["probability"] for mine in seen.predictions for (found,) in mine[:1]]
    assert all(0 <= one <= 1 for one in own) and len(own) == 3
    assert "UTC" in "".join(seen.consents)
    assert not [text for text in seen.consents if "Standard Time" in text or "Daylight" in text]


@pytest.mark.soak
def test_a_peer_that_is_killed_at_every_point_sends_one_packet(tmp_path: Path) -> None:
    """Each death costs an interpreter on Windows: the other runs keep to three."""
    shutil.rmtree(HERE, ignore_errors=True)
    demand_found_again(asyncio.run(play(tmp_path / "study", deaths=LIVED, with_sum=True)), 2)


@pytest.mark.soak
@pytest.mark.tor
def test_windows_takes_part_through_tor_by_the_port_of_a_tor_elsewhere(
    tmp_path: Path, private_tor: PrivateNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The aggregator is an onion service. The tor, which Windows' peers reach by its SOCKS port, is of this system."""
    for environment in (os.environ, ENVIRONMENT):
        monkeypatch.setitem(environment, "ANONML_TORRC", str(private_tor.torrc_file))

    async def through() -> Seen:
        async with TorKeeper(tmp_path / "tor") as tor:
            host, port = await tor.socks()
            return await play(tmp_path / "study", ("--onion",), f"socks://{host}:{port}")

    shutil.rmtree(HERE, ignore_errors=True)
    demand_found_again(asyncio.run(through()), 1)
