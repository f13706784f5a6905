"""Whole studies by programs, whose members have systems of their own: an aggregator and tellers are on this one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from anon.storage.crash_points import VARIABLE
from examples.clock import Keeper
from tests.support.command_line import ENVIRONMENT
from tests.support.commands_there import WAIT
from tests.support.noted_program import CLOCK, KEEPER, LOOK
from tests.support.served_tellers import free_port
from tests.support.studies import course_of_three
from tests.support.sum_programs import Program
from tests.support.sums import MOMENTS, NAMES, sum_study
from tests.support.systems import LINUX, LONGEST, System

LENGTHS = {"enrol": 1200, "settle": 300, "collect": 1200}
HISTOGRAM = course_of_three("Ein Kurs mit Umlauten: Größe").format(**LENGTHS)
LOOK_SECONDS = "10"
"""Of the study's clock, between two looks of the aggregator."""


@define
class Seen:
    """The output of the commands, by kind, in the order of the members. `audits`: by study."""

    receipts: list[Any] = field(factory=list)
    statuses: list[Any] = field(factory=list)
    predictions: list[Any] = field(factory=list)
    consents: list[str] = field(factory=list)
    audits: list[dict[str, Any]] = field(factory=list)


@frozen
class Member:
    """One person, and the system that their commands run on. `deaths`: the points at which this member's programs are
    killed, one after the other."""

    on: System
    home: Path
    route: str = "auto"
    deaths: Sequence[str] = ()

    async def live(
        self, file: Path, links: Sequence[str], over: Path, times: Mapping[str, str]
    ) -> tuple[list[str], list[Any]]:
        """From an empty home to predictions, once the file `over` is there: what consent printed, and the rest.
        `times`: how the commands find the clock, and its keeper."""
        settled = [
            ("import", file, "--table", "person"),
            ("budget", "--lifetime", "8", "--minimum-cohort", "3"),
            *(("look", link, "--route", self.route) for link in links),
            *(("join", link, "--yes", "--route", self.route) for link in links),
        ]
        lived = ("run", "--once", "--max-seconds", "9e5", "--route", self.route)
        last = [("receipts",), ("status",), *(("predict", link, "--route", self.route) for link in links)]
        rest = [self._at_home(lived), (WAIT, over), *(self._at_home((*words, "--json")) for words in last)]
        begun = [self._at_home(words) for words in settled]
        for point in self.deaths:
            await self.on.killed(*begun, *rest, **times, **{VARIABLE: point})
            begun = []
        said = await self.on.plain(*begun, *rest, **times)
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
        async with asyncio.timeout(LONGEST):
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
    folder: Path, members: Sequence[Member], serve: Sequence[str] = ("--port", "0"), with_sum: bool = False
) -> Seen:
    """From empty homes to predictions, by a clock that waits for all of them: a busy machine makes nobody late."""
    folder.mkdir(exist_ok=True)
    with Keeper(folder / "clock", parties=1 + len(members)) as keeper:
        staff, over = Staff(folder, keeper), folder / "over"
        async with port_of(keeper.place) as port:
            try:
                address = await staff.begin(serve, with_sum)
                asked = ("aggregator", "invite", "--count", str(len(members)), "--address", address)
                invited = await staff.run(*((*asked, "--study", one, "--home", staff.home) for one in staff.studies))
                lives = []
                for number, (member, links) in enumerate(zip(members, zip(*invited, strict=True), strict=True)):
                    file = folder / f"{number}.csv"
                    values = f"{25 + 20 * number},{('low', 'high')[number % 2]},{5 + number},some,{number % 2}"
                    file.write_bytes(f"age,income,sleep,cups,tired\r\n{values}\r\n".encode())
                    times = {CLOCK: member.on.named(keeper.clock.path), KEEPER: str(port)}
                    lives.append(member.live(file, links, over, times))
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
