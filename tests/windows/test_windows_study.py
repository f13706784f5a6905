"""A whole study by programs: two peers on Windows' Python beside one on Linux, against an aggregator on Linux."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from anon.kit.testnet import PrivateNetwork
from anon.route.tor import TorKeeper
from examples.clock import Keeper
from tests.support.command_line import ENVIRONMENT, ROOT, finish
from tests.support.noted_program import CLOCK, KEEPER, LOOK
from tests.support.studies import course_of_three
from tests.support.sum_programs import Program
from tests.windows import wine
from tests.windows.wine import DISK, needs_windows

pytestmark = [pytest.mark.process, pytest.mark.timeout(1800), needs_windows]
STUDY = course_of_three("Ein Kurs mit Umlauten: Größe").format(enrol=1200, settle=300, collect=1200)
LOOK_SECONDS = "10"
"""Of the study's clock, between two looks of the aggregator."""
HERE = DISK / "users" / "Änne Müller 学生" / "Anon ML #1 100%"
"""Of the first, below a user's folder on C:. The second one's is on another drive."""
ON_WINDOWS = 2


@define
class Seen:
    """The output of the commands, by kind; on Windows first."""

    receipts: list[Any] = field(factory=list)
    statuses: list[Any] = field(factory=list)
    predictions: list[Any] = field(factory=list)
    consents: list[str] = field(factory=list)
    audit: dict[str, Any] = field(factory=dict)


async def on_linux(*commands: Sequence[str | Path], **more: str) -> list[str]:
    """Each `anonml COMMAND`, which must succeed; its text. `more`: of its environment."""
    return [await _on_linux(words, more) for words in commands]


async def _on_linux(words: Sequence[str | Path], more: dict[str, str]) -> str:
    pipe, program = asyncio.subprocess.PIPE, (sys.executable, "-m", "tests.support.noted_program", *map(str, words))
    done = await finish(
        await asyncio.create_subprocess_exec(*program, stdout=pipe, stderr=pipe, cwd=ROOT, env=ENVIRONMENT | more),
        longest=wine.LONGEST,
    )
    assert done.code == 0, f"anonml {' '.join(map(str, words))}: {done.err or done.out}"
    return done.out


@define
class Member:
    """One person, and the system that their commands run on. `times`: how these find the clock, and its keeper."""

    on: Callable[..., Awaitable[list[str]]]
    home: Path
    times: dict[str, str]
    route: str

    async def settle_in(self, file: Path) -> None:
        budget = ("peer", "budget", "--lifetime", "8", "--minimum-cohort", "3")
        await self._run(("peer", "import", file, "--table", "person"), budget)

    async def take_part(self, link: str, seen: Seen) -> None:
        commands = ("peer", "join", link, "--yes"), ("peer", "run", "--once", "--max-seconds", "9e5")
        said = await self._run(*((*words, "--route", self.route) for words in commands))
        seen.consents.append(said[0])

    async def look_back(self, link: str, seen: Seen) -> None:
        asked = [("peer", "receipts"), ("peer", "status"), ("peer", "predict", link, "--route", self.route)]
        found = await self._run(*((*words, "--json") for words in asked))
        for kept, text in zip((seen.receipts, seen.statuses, seen.predictions), found, strict=True):
            kept.append(json.loads(text))

    async def _run(self, *commands: Sequence[str | Path]) -> list[str]:
        return await self.on(*((*words, "--home", self.home) for words in commands), **self.times)


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


async def play(folder: Path, serve: Sequence[str] = ("--port", "0"), route: str = "auto") -> Seen:
    """From empty homes to predictions, by a clock that waits for all of them: a busy machine makes nobody late."""
    seen, staff = Seen(), folder / "staff"
    folder.mkdir(exist_ok=True)
    (folder / "study.toml").write_text(STUDY)
    with Keeper(folder / "clock", parties=4) as keeper:
        async with port_of(keeper.place) as port:
            here = {CLOCK: str(keeper.clock.path), KEEPER: str(keeper.place)}
            there = {CLOCK: wine.of_windows(keeper.clock.path), KEEPER: str(port)}
            members = [
                Member(wine.plain, HERE, there, route),
                Member(wine.plain, folder / "second", there, route),
                Member(on_linux, folder / "third", here, route),
            ]

            async def by_staff(*words: str | Path) -> Any:
                return json.loads(await _on_linux((*words, "--json"), {CLOCK: here[CLOCK]}))

            published = await by_staff("study", "publish", folder / "study.toml", "--home", staff)
            environment = {**ENVIRONMENT, **here, LOOK: LOOK_SECONDS}
            serving = Program(("aggregator", "serve", *serve), staff, environment, [])
            try:
                address = await serving.start()
                for number, _ in enumerate(members):
                    (folder / f"{number}.csv").write_bytes(
                        f"age,income\r\n{25 + 20 * number},{('low', 'high')[number % 2]}\r\n".encode()
                    )
                await _all(one.settle_in(folder / f"{number}.csv") for number, one in enumerate(members))
                words = ("--address", address, "--study", published["study"], "--home", staff)
                links = await by_staff("aggregator", "invite", "--count", str(len(members)), *words)
                await _all(one.take_part(link, seen) for one, link in zip(members, links, strict=True))
                async with asyncio.timeout(wine.LONGEST):
                    while '"published"' not in staff.with_suffix(".out-0").read_text():
                        await asyncio.sleep(0.05)
                await _all(one.look_back(link, seen) for one, link in zip(members, links, strict=True))
            finally:
                await serving.stop()
            key = links[0].split("key=")[1].split("&")[0]
            exported = ("aggregator", "export", folder / "published", "--study", published["study"], "--home", staff)
            await by_staff(*exported)
            seen.audit = await by_staff("aggregator", "audit", folder / "published", "--key", key)
    return seen


async def _all(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    async with asyncio.TaskGroup() as together:
        for work in works:
            together.create_task(work)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    shutil.rmtree(HERE, ignore_errors=True)
    found = asyncio.run(play(tmp_path_factory.mktemp("windows")))
    yield found
    shutil.rmtree(HERE.parent, ignore_errors=True)


def test_every_packet_of_windows_and_linux_is_accepted_and_found_again(seen: Seen) -> None:
    assert [[(one["status"], one["word"]) for one in mine] for mine in seen.receipts] == [
        [("included", "accepted")]
    ] * 3
    assert [[one["state"] for one in mine] for mine in seen.statuses] == [["finished"]] * 3
    assert seen.audit["verdict"] == "all-checked" and seen.audit["packets"] == seen.audit["enrolled"] == 3


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
    found = asyncio.run(through())
    assert [[(one["status"], one["word"]) for one in mine] for mine in found.receipts] == [
        [("included", "accepted")]
    ] * 3
    assert found.audit["verdict"] == "all-checked" and found.audit["packets"] == found.audit["enrolled"] == 3


def test_windows_predicts_for_its_owner_as_linux_does(seen: Seen) -> None:
    own = [mine["probability"] for (mine,) in seen.predictions]
    assert all(0 <= one <= 1 for one in own) and len(own) == 3


def test_consent_names_times_by_utc_and_not_by_windows_long_names(seen: Seen) -> None:
    assert not [text for text in seen.consents if "Standard Time" in text or "Daylight" in text]
