"""Several onion services before one server: each by itself, announced together, ended together. Without a tor."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
from attrs import define, field

from aggregator.network import onions
from aggregator.network.onions import Onions, server_behind
from anon.errors import Refused, Unreachable
from anon.route import Route, SocksRoute
from anon.serving.onion_key import OnionKey, draw_key, keep_key
from anon.storage.home import RESTORED
from tests.support.patience import PATIENCE
from tests.support.routes import Status

KEYS = tuple(draw_key(os.urandom) for _ in range(3))


def test_of_two_processes_that_draw_a_key_at_once_the_first_ones_stays(tmp_path: Path) -> None:
    """Each may publish a study meanwhile, whose manifest names its address."""
    kept: list[OnionKey] = []

    def drawn_while_another_draws(size: int) -> bytes:
        kept.append(keep_key(tmp_path, os.urandom))
        return os.urandom(size)

    assert [keep_key(tmp_path, drawn_while_another_draws)] == kept == [keep_key(tmp_path, os.urandom)]
    assert [file.name for file in tmp_path.iterdir()] == ["onion.key"]


@define
class Service:
    """In place of `OnionService`: it comes up, and goes on or fails, when a test says so."""

    key: OnionKey
    target: str
    folder: Path
    route_through: object
    announce: Callable[[str], None]
    say: Callable[[str], None]
    progress: Callable[[str], None]
    alone: Callable[[Route], Awaitable[None]] | None
    made: list[Service] = field(factory=list)
    up: asyncio.Event = field(factory=asyncio.Event)
    down: asyncio.Event = field(factory=asyncio.Event)
    ended: bool = False

    async def run(self) -> None:
        self.made.append(self)
        try:
            await self.up.wait()
            self.announce(self.key.address())
            await self.down.wait()
            raise Unreachable("it never came up")
        finally:
            self.ended = True


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Service]:
    """The services that run."""
    found: list[Service] = []
    monkeypatch.setattr(onions, "OnionService", lambda *words: Service(*words, made=found))
    return found


async def _running(
    home: Path, said: list[str], made: list[Service], keys: tuple[OnionKey, ...] = KEYS
) -> asyncio.Task[None]:
    several = Onions(keys, home, SocksRoute, lambda text: said.append(f"announced {text}"), said.append, said.append)
    task = asyncio.create_task(several.run("127.0.0.1:1", [bytes(32)]))
    while len(made) < len(keys):
        await asyncio.sleep(0)
    return task


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_each_has_a_tor_of_its_own_and_all_lead_to_one_server(tmp_path: Path, made: list[Service]) -> None:
    said: list[str] = []
    task = await _running(tmp_path, said, made)
    assert {one.target for one in made} == {"127.0.0.1:1"}
    assert [one.folder for one in made] == [tmp_path / "tor", tmp_path / "tor-2", tmp_path / "tor-3"]
    assert all(one.alone is None for one in made), "nothing is looked for in a home that was not restored"
    for one in made:
        one.say("x")
        one.progress("y")
    assert said == ["onion address 1 of 3: x", "y", "onion address 2 of 3: x", "onion address 3 of 3: x"]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert all(one.ended for one in made)


async def test_addresses_are_announced_together_once_all_answer(tmp_path: Path, made: list[Service]) -> None:
    said: list[str] = []
    task = await _running(tmp_path, said, made)
    for number in (2, 0):
        made[number].up.set()
        await _settle()
        assert said == []
    made[1].up.set()
    await _settle()
    assert said == ["announced " + " ".join(key.address() for key in KEYS)]
    task.cancel()


async def test_one_that_never_comes_up_ends_all_with_its_own_error(tmp_path: Path, made: list[Service]) -> None:
    said: list[str] = []
    task = await _running(tmp_path, said, made)
    made[1].up.set()
    made[1].down.set()
    with pytest.raises(Unreachable, match="it never came up"):
        await asyncio.wait_for(task, PATIENCE)
    assert said == [] and all(one.ended for one in made)


async def test_a_single_one_speaks_as_before(tmp_path: Path, made: list[Service]) -> None:
    said: list[str] = []
    task = await _running(tmp_path, said, made, KEYS[:1])
    made[0].say("tor has ended")
    made[0].up.set()
    await _settle()
    assert said == ["tor has ended", f"announced {KEYS[0].address()}"]
    task.cancel()


async def test_a_restored_home_asks_at_every_address_for_another_copy(tmp_path: Path, made: list[Service]) -> None:
    mark = tmp_path / RESTORED
    mark.touch()
    task = await _running(tmp_path, [], made)
    first, second, third = (one.alone for one in made)
    assert first is not None and second is not None and third is not None
    await first(Status())
    await third(Status())
    assert mark.exists(), "not settled before all were asked"
    with pytest.raises(Refused, match="another copy"):
        await second(Status(200))
    assert mark.exists()
    await second(Status())
    assert not mark.exists()
    task.cancel()


async def test_the_server_is_a_file_or_a_port_of_loopback(tmp_path: Path) -> None:
    ports: list[int] = []
    async with server_behind({}, tmp_path, None) as target:
        socket = Path(target.removeprefix("unix:"))
        assert target.startswith("unix:") and socket.stat().st_mode & 0o777 == 0o600
    assert not socket.exists() and ports == []
    async with server_behind({}, tmp_path, ports.append) as target:
        assert target == f"127.0.0.1:{ports[0]}"
        async with aiohttp.ClientSession() as session, session.get(f"http://{target}/") as answer:
            assert answer.status == 404
