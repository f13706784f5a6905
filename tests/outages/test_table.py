"""Each cell of the table of outages, met by the real command: it goes on or ends as the table says, and loses
nothing."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from anon.errors import Unreachable
from anon.machine.outages import COMMANDS, DESK, PAGE, PAIR, PEERS, RUN, SERVE, STAY, TABLE, TELLER, Outage, OutageCell
from anon.serving import onion_service
from anon.serving.onion_key import draw_key
from tests.support import outage_commands as drivers
from tests.support.command_line import attempt
from tests.support.outage_commands import STEP, Driver, PairDriver, RunDriver
from tests.support.postgres import server
from tests.support.troubled import FULL, READ_ONLY, Troubled

DRIVERS: dict[str, type[Driver]] = {
    SERVE: drivers.ServeDriver,
    DESK: drivers.DeskDriver,
    TELLER: drivers.TellerDriver,
    RUN: drivers.RunDriver,
    STAY: drivers.StayDriver,
    PAGE: drivers.PageDriver,
    PAIR: PairDriver,
}
MINUTE = 60.0
HOURS = 5 * 3600.0
CELLS = [
    pytest.param(outage, command, id=f"{command}-{outage.name}", marks=[pytest.mark.soak] if (row + column) % 2 else [])
    for row, outage in enumerate(Outage)
    for column, command in enumerate(TABLE[outage])
]
"""Every other cell of each row and column runs in `make test-all`, and all in the soak."""


@asynccontextmanager
async def begun(command: str, folder: Path, **more: Any) -> AsyncIterator[Driver]:
    """The command, once it is there."""
    (folder / "disk").mkdir()
    driver = DRIVERS[command](folder / "disk", **more)
    try:
        await driver.begin()
        yield driver
    finally:
        driver.stop()


async def told(driver: Driver, said: str) -> None:
    """Until the command says it, or `anonml peer status`, of peers that run unseen."""
    async def shown() -> bool:
        if said in driver.command.said:
            return True
        if not isinstance(driver, RunDriver) or isinstance(driver, PairDriver):
            return False
        return said in (await attempt("peer", "status", "--home", driver.home)).out

    for _ in range(200):
        await driver.command.until(lambda: True)  # it is alive
        await asyncio.to_thread(driver.tries)
        if await shown():
            return
        driver.command.pass_time(STEP)
        await asyncio.sleep(0.05)
    raise AssertionError(f"{said!r} was not said: {driver.command.said}")


async def away_for_a_minute(driver: Driver, cell: OutageCell, **trouble: float) -> None:
    """It tells it, goes on through a minute of it, and works when that is over."""
    driver.command.trouble(**trouble)  # type: ignore[arg-type]
    driver.begins_to_work()
    if cell.said:
        await told(driver, cell.said)
    for _ in range(int(MINUTE / STEP)):
        driver.command.pass_time(STEP)
        await asyncio.sleep(0.05)
        assert not driver.command.ended(), driver.command.said
    driver.command.trouble()
    await driver.command.until(driver.works, STEP)
    driver.demand_nothing_lost()


async def full(driver: Driver, cell: OutageCell) -> None:
    await away_for_a_minute(driver, cell, disk=FULL)


async def read_only(driver: Driver, cell: OutageCell) -> None:
    await away_for_a_minute(driver, cell, disk=READ_ONLY)


async def network(driver: Driver, cell: OutageCell) -> None:
    await away_for_a_minute(driver, cell, network=errno.ENETUNREACH)


async def clock(driver: Driver, cell: OutageCell) -> None:
    for wall in (HOURS, -HOURS):
        driver.command.trouble(wall=wall)
        driver.begins_to_work()
        if cell.code is not None:
            assert await driver.command.ends(STEP) == cell.code
            assert cell.said in driver.command.said
            return
        if cell.said:
            await told(driver, cell.said)
    driver.command.trouble()
    await driver.command.until(driver.works, STEP)
    driver.demand_nothing_lost()


async def cut(driver: Driver, cell: OutageCell) -> None:
    """The command never takes a cut file for a new one: the next start ends with the code."""
    file = driver.home / driver.main_file
    os.truncate(file, file.stat().st_size // 2)
    file.with_name(f"{file.name}-wal").unlink(missing_ok=True)
    driver.begins_to_work()
    for _ in range(5):
        await asyncio.to_thread(driver.tries)
        if driver.command.ended():
            assert driver.command.code == cell.code and cell.said in driver.command.said
            return
        driver.command.pass_time(STEP)
        await asyncio.sleep(0.05)
    driver.command.kill()
    driver.command.start()
    assert await driver.command.ends(STEP) == cell.code
    assert cell.said in driver.command.said and "Traceback" not in driver.command.said


async def taken(driver: Driver, cell: OutageCell) -> None:
    driver.command.kill()
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", driver.own_port))
        other.listen()
        driver.command.start()
        assert await driver.command.ends() == cell.code
    assert cell.said in driver.command.said and "Traceback" not in driver.command.said
    await driver.again()
    driver.begins_to_work()
    await driver.command.until(driver.works, STEP)
    driver.demand_nothing_lost()


async def killed(driver: Driver, cell: OutageCell) -> None:
    driver.begins_to_work()
    await driver.command.until(driver.works, STEP)
    assert cell.code == 128 - driver.command.kill()
    await driver.again()
    driver.demand_nothing_lost()


async def database(driver: Driver, cell: OutageCell) -> None:
    assert isinstance(driver, drivers.ServeDriver) and driver.postgres is not None
    await driver.command.until(driver.works, STEP)
    await asyncio.to_thread(driver.postgres.control, "stop", "-m", "fast")
    await told(driver, cell.said)
    for _ in range(int(MINUTE / STEP)):
        driver.command.pass_time(STEP)
        await asyncio.sleep(0.05)
    await asyncio.to_thread(driver.postgres.control, "start")
    await driver.command.until(driver.works, STEP)
    back = "all studies can go on again"
    assert back in cell.goes_on
    await told(driver, back)
    driver.demand_nothing_lost()


MET: dict[Outage, Callable[[Driver, OutageCell], Awaitable[None]]] = {
    Outage.DATABASE: database,
    Outage.FULL: full,
    Outage.READ_ONLY: read_only,
    Outage.NETWORK: network,
    Outage.CLOCK: clock,
    Outage.CUT: cut,
    Outage.TAKEN: taken,
    Outage.KILLED: killed,
}


async def an_onion_address_is_put_up_again() -> None:
    """Its tor ends, does not come up for a while, and a disk is full; then the address answers again."""
    said: list[str] = []
    faults: list[Exception | None] = [None, Unreachable("no network"), OSError(errno.ENOSPC, "x", "torrc"), None]
    answered = asyncio.Event()

    async def one_round(service: onion_service.OnionService, answering: Callable[[], None]) -> None:
        fault = faults.pop(0) if faults else None
        if fault is not None:
            raise fault
        answering()
        if not faults:
            answered.set()
            await asyncio.Event().wait()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(onion_service.OnionService, "_round", one_round)
        patched.setattr(onion_service, "_PAUSE", 0.01)
        key = draw_key(os.urandom)
        service = onion_service.OnionService(key, "unix:x", Path("x"), None, said.append, said.append)  # type: ignore[arg-type]
        running = asyncio.create_task(service.run())
        await asyncio.wait_for(answered.wait(), 30)
        assert not running.done() and said[0] == key.address() and said[-1] == "the onion address answers again"
        running.cancel()


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize(("outage", "command"), CELLS)
async def test_a_command_meets_an_outage_as_the_table_says(tmp_path: Path, outage: Outage, command: str) -> None:
    cell = TABLE[outage][command]
    if cell.said == "onion address":
        return await an_onion_address_is_put_up_again()
    if outage is Outage.DATABASE:
        with server() as postgres:
            async with begun(command, tmp_path, postgres=postgres) as driver:
                await MET[outage](driver, cell)
        return
    async with begun(command, tmp_path) as driver:
        await MET[outage](driver, cell)


@pytest.mark.process
@pytest.mark.parametrize(("command", "words"), [(TELLER, "teller"), (RUN, "peer"), (SERVE, "aggregator")])
async def test_status_tells_a_full_disk(tmp_path: Path, command: str, words: str) -> None:
    driver = DRIVERS[command](tmp_path / "disk")
    driver.folder.mkdir()
    await driver.prepare()
    driver.command = Troubled(driver.folder, ("anonml", words, "status", "--home", str(driver.home)), disk=FULL)
    driver.command.start()
    try:
        assert await driver.command.ends() in (0, 1)
        assert "cannot be written (" in driver.command.said and "Traceback" not in driver.command.said
    finally:
        driver.stop()


def test_the_table_has_every_cell() -> None:
    """A command without a cell has no server, or no port, to lose."""
    assert set(TABLE) == set(MET) == set(Outage) and set(DRIVERS) == set(COMMANDS)
    lacking = {(outage, command) for outage in Outage for command in COMMANDS if command not in TABLE[outage]}
    none = {(Outage.DATABASE, command) for command in (TELLER, *PEERS, PAIR)}
    assert lacking == none | {(Outage.TAKEN, command) for command in (RUN, STAY, PAIR)}
