"""The tor route and its keeper in a private Tor network: circuits, headers, deaths, sharing, and nothing around the
side."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from attrs import define, field

from anon.errors import Refused, Unreachable
from anon.kit.testnet.network import PrivateNetwork
from anon.route import DirectRoute, SocksRoute
from anon.route.tor import TorKeeper, TorProcess, TorRoute, checked_onion, torrc_of_client
from anon.route.tor.route import REPLIES, reply_code

pytestmark = pytest.mark.tor
ROOT = Path(__file__).resolve().parents[3]
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
GONE = "2gzyxa5ihm7nsggfxnu52rck2vv4rvmdlkiu3zzui5du4xyclen53wid.onion:80"  # whole, and announced by nobody here
JOINED = "HSCR_JOINED"

# --- a network for all tests of this file ---------------------------------------------------------


@pytest.fixture(scope="module")
def lines(private_tor: PrivateNetwork) -> tuple[str, ...]:
    """The lines of a torrc by which a tor joins the session's private network."""
    return private_tor.lines


@define
class Service:
    """An onion service that answers ok, and what it saw."""

    address: str = ""
    heads: list[bytes] = field(factory=list)
    bodies: list[bytes] = field(factory=list)
    silent: bool = False

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            length = next(
                (
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length")
                ),
                0,
            )
            self.bodies.append(await reader.readexactly(length))
            if not self.silent:
                writer.write(ANSWER)
            else:
                await reader.read()
            await writer.drain()
        writer.close()


@asynccontextmanager
async def serving(folder: Path, lines: tuple[str, ...]) -> AsyncIterator[Service]:
    service = Service()
    server = await asyncio.start_unix_server(service.answer, str(folder / "web"))
    tor = await TorProcess.start(torrc_of_client(folder / "service", lines), folder / "service")
    try:
        await tor.bootstrap(60)
        onion = await tor.controller.add_onion("NEW:ED25519-V3", [f"80,unix:{folder}/web"])
        service.address = f"{onion.service_id}.onion:80"
        yield service
    finally:
        await tor.stop()
        server.close()


async def sooner_or_later(exchange: Callable[[], object], seconds: float = 30) -> object:
    """The first answer: a service that was just made is announced a second or two later."""
    until = time.monotonic() + seconds
    while True:
        try:
            return await exchange()  # type: ignore[misc]
        except Unreachable:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.3)


def keeping(folder: Path, lines: tuple[str, ...]) -> TorKeeper:
    return TorKeeper(folder, extra=lambda: lines, seconds=60)


# --- circuits, headers, errors --------------------------------------------------------------------


async def test_each_exchange_has_a_circuit_of_its_own_and_no_header_that_tells(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    async with serving(tmp_path, lines) as service, keeping(tmp_path / "tor", lines) as keeper:
        route = TorRoute(keeper)
        await sooner_or_later(lambda: route.get(service.address, "/v1/x", 10))
        assert keeper.tor is not None
        async with keeper.tor.controller.watching("CIRC_MINOR", "CIRC", "STREAM") as events:
            await asyncio.gather(*(route.post(service.address, "/v1/x", bytes(2048), 10) for _ in range(6)))
            mine = await _circuits(events)
            assert len(mine) == 6
            assert len(set(mine)) == 6
            # the negative control: one user and password for all puts all on one circuit
            host, port = await keeper.socks()
            same = SocksRoute(host, port, random_bytes=lambda size: b"s" * size)
            for _ in range(3):
                await same.post(service.address, "/v1/x", bytes(2048), 10)
            assert len(set(await _circuits(events))) == 1
    for head, body in zip(service.heads[1:7], service.bodies[1:7], strict=True):
        request, *headers = head.decode().strip().split("\r\n")
        assert request == "POST /v1/x HTTP/1.1"
        assert headers == [f"Host: {service.address.removesuffix(':80')}", "Content-Length: 2048", "Connection: close"]
        assert body == bytes(2048)


async def _circuits(events: object) -> list[str]:
    """The circuit of every stream that has come to its end by now."""
    await asyncio.sleep(0.5)
    succeeded: list[str] = []
    while events._held:  # type: ignore[attr-defined]
        event = await anext(events)  # type: ignore[call-overload]
        words = event.text.split(" ")
        if event.name == "STREAM" and words[1] == "SUCCEEDED":
            succeeded.append(words[2])
    return succeeded


async def test_a_service_that_is_not_there_and_one_that_is_silent(tmp_path: Path, lines: tuple[str, ...]) -> None:
    async with serving(tmp_path, lines) as service, keeping(tmp_path / "tor", lines) as keeper:
        with pytest.raises(Unreachable, match="not announced; nothing is lost"):
            await TorRoute(keeper).get(GONE, "/", 10)
        await sooner_or_later(lambda: TorRoute(keeper).get(service.address, "/", 10))
        with pytest.raises(Unreachable, match=r"nothing listens behind it|could not be reached|could not reach it"):
            await TorRoute(keeper).get(service.address.replace(":80", ":81"), "/", 10)
        service.silent = True
        began = time.monotonic()
        with pytest.raises(Unreachable):
            await TorRoute(keeper, timeout=3).get(service.address, "/", 10)
        assert time.monotonic() - began < 5
        host, port = await keeper.socks()
        with pytest.raises(Unreachable):  # tor itself carries nothing but onion traffic
            await SocksRoute(host, port, timeout=5).get("example.org:80", "/", 10)


@pytest.mark.parametrize(
    "address",
    [
        "example.org:80", "127.0.0.1:80", "abc.onion:80", GONE.replace("wid.onion", "wie.onion"),
        GONE.replace(":80", ":0"),
        GONE.replace(":80", ":65536"), GONE.replace(":80", ""), GONE.upper().replace("ONION", "onion"), "a." + GONE,
        GONE.replace(".onion", ".onion."),
        GONE.replace("wid.onion", "wic.onion"), GONE[1:], ":80", "", GONE.replace(":80", ":８０"),
        "expyuzz4wqqyqhjn.onion:80",
        "3" + GONE[1:], GONE.replace("rck2vv", "rcl2vv"),
    ],
)
async def test_only_whole_v3_addresses_and_nothing_is_started_for_others(tmp_path: Path, address: str) -> None:
    keeper = TorKeeper(tmp_path / "tor", extra=lambda: ("DisableNetwork 1",), seconds=2)
    with pytest.raises(Refused, match="ask for"):
        await TorRoute(keeper).get(address, "/", 10)
    assert not (tmp_path / "tor").exists()
    assert checked_onion(GONE) == GONE


def test_every_extended_error_has_one_action() -> None:
    assert {code for code in REPLIES if code >= 0xF0} == set(range(0xF0, 0xF8))
    for code in range(0xF0, 0xF8):
        assert reply_code(Exception(f"Invalid reply code: {code:#02X}")) == code
    assert reply_code(Exception("Malformed connect reply")) == -1


# --- life and death of the keeper's tor -----------------------------------------------------------


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


async def test_a_killed_tor_costs_at_most_one_exchange(tmp_path: Path, lines: tuple[str, ...]) -> None:
    async with serving(tmp_path, lines) as service, keeping(tmp_path / "tor", lines) as keeper:
        route = TorRoute(keeper)
        await sooner_or_later(lambda: route.get(service.address, "/", 10))
        for _ in range(3):
            assert keeper.tor is not None
            os.kill(keeper.tor.pid, signal.SIGKILL)
            failed = 0
            for _ in range(3):
                try:
                    assert (await route.get(service.address, "/", 10)).body == b"ok"
                except Unreachable as error:
                    assert "nothing is lost" in str(error)
                    failed += 1
            assert failed <= 1
        pid = keeper.tor.pid
    assert gone(pid)
    assert sorted(path.name for path in (tmp_path / "tor").iterdir()) == ["data", "owner"]
    assert stat.S_IMODE((tmp_path / "tor").stat().st_mode) == 0o700


async def test_concurrent_first_uses_start_one_tor(tmp_path: Path, lines: tuple[str, ...]) -> None:
    async with keeping(tmp_path / "tor", lines) as keeper:
        impatient = asyncio.create_task(keeper.socks())
        await asyncio.sleep(0.05)
        impatient.cancel()  # whoever gives up does not stop the start for the others
        assert len(set(await asyncio.gather(*(keeper.socks() for _ in range(20))))) == 1
        place = tmp_path / "tor" / "running"
        assert stat.S_IMODE(place.stat().st_mode) == 0o600


async def test_close_while_it_starts_leaves_nothing(tmp_path: Path, lines: tuple[str, ...]) -> None:
    keeper = keeping(tmp_path / "tor", lines)
    starting = asyncio.create_task(keeper.socks())
    while keeper.tor is None:
        await asyncio.sleep(0.01)
    pid = keeper.tor.pid
    await keeper.close()
    with pytest.raises((Unreachable, asyncio.CancelledError)):
        await starting
    assert gone(pid)
    assert await keeper.socks()  # it may be used again
    await keeper.close()


HOLDER = """
import asyncio, sys
from pathlib import Path
from anon.route.tor import TorKeeper
async def main():
    keeper = TorKeeper(Path(sys.argv[1]), extra=lambda: tuple(sys.argv[2:]), seconds=60)
    print(*await keeper.socks(), keeper.tor.pid, flush=True)
    await asyncio.sleep(120)
asyncio.run(main())
"""


async def test_processes_of_one_home_share_a_tor_and_outlive_its_owner(tmp_path: Path, lines: tuple[str, ...]) -> None:
    folder = tmp_path / "tor"
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, str(folder), *lines, stdout=subprocess.PIPE, cwd=ROOT
    )
    try:
        assert owner.stdout is not None
        while not (folder / "owner").exists() and owner.returncode is None:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.5)  # it holds the folder and is starting: the second waits for it
        async with keeping(folder, lines) as keeper:
            shared = await keeper.socks()
            host, port, pid = (await owner.stdout.readline()).split()
            assert shared == (host.decode(), int(port))
            assert keeper.tor is None
            owner.kill()
            await owner.wait()
            for _ in range(100):
                if gone(int(pid)):
                    break
                await asyncio.sleep(0.02)
            assert gone(int(pid))
            assert await keeper.socks() != shared
            assert keeper.tor is not None
            assert keeper.tor.alive
    finally:
        with contextlib.suppress(ProcessLookupError):
            owner.kill()
        await owner.wait()


async def test_a_stale_or_forged_note_is_not_believed(tmp_path: Path, lines: tuple[str, ...]) -> None:
    folder = tmp_path / "tor"
    (folder / "data").mkdir(parents=True)
    for text in ("", "127.0.0.1:9050", str(tmp_path), str(tmp_path / "nothing"), "\x00" * 500, "x" * 5000):
        (folder / "running").write_text(text)
        for cookie in (b"", bytes(32)):
            (folder / "data" / "control_auth_cookie").write_bytes(cookie)
            assert await TorKeeper(folder, extra=lambda: lines, seconds=0.5)._published() is None


async def test_who_listens_in_a_dead_tors_place_hears_nothing(tmp_path: Path, lines: tuple[str, ...]) -> None:
    """The owner lives and has not noticed yet that its tor died; somebody else has taken the ports and sockets."""
    folder, heard = tmp_path / "tor", list[bytes]()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(100))
        writer.write(b"250 AUTHCHALLENGE SERVERHASH=%s SERVERNONCE=%s\r\n" % (b"0" * 64, b"0" * 64))
        await asyncio.sleep(0.1)
        writer.close()

    async with keeping(folder, lines) as owner:
        host, port = await owner.socks()
        assert owner.tor is not None
        cookie, control = (folder / "data" / "control_auth_cookie").read_bytes(), owner.tor.control
        other = TorKeeper(folder, extra=lambda: lines, seconds=2)
        assert await other.socks() == (host, port)
        os.kill(owner.tor.pid, signal.SIGKILL)
        while owner.tor.alive:
            await asyncio.sleep(0.02)
        impostor = await asyncio.start_server(hear, host, port)
        control.unlink(missing_ok=True)
        (folder / "data" / "control_auth_cookie").write_bytes(cookie)
        beside = await asyncio.start_unix_server(hear, control)
        try:
            with pytest.raises(Unreachable):
                await other.socks()
        finally:
            impostor.close()
            beside.close()
    assert heard
    assert all(one.startswith(b"AUTHCHALLENGE") for one in heard)


# --- nothing around the side ----------------------------------------------------------------------


@define
class Trap:
    """The connections and name look-ups of the process while the trap was on, from audit events."""

    on: bool = False
    connected: list[object] = field(factory=list)
    looked_up: list[object] = field(factory=list)

    def hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.on:
            return
        if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
            self.connected.append(arguments[1])
        elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"):
            self.looked_up.append(arguments[0])


TRAP = Trap()


@pytest.fixture
def trap() -> Iterator[Trap]:
    if not getattr(Trap, "installed", False):
        sys.addaudithook(TRAP.hear)
        Trap.installed = True  # type: ignore[attr-defined]
    TRAP.connected, TRAP.looked_up, TRAP.on = [], [], True
    yield TRAP
    TRAP.on = False


async def test_only_tor_is_connected_to_and_no_name_is_looked_up(
    tmp_path: Path, lines: tuple[str, ...], trap: Trap
) -> None:
    trap.on = False
    async with serving(tmp_path, lines) as service, keeping(tmp_path / "tor", lines) as keeper:
        trap.on = True
        route = TorRoute(keeper)
        await sooner_or_later(lambda: route.post(service.address, "/v1/x", b"body", 10))
        for address in (GONE, "example.org:80", "192.0.2.1:80"):
            with pytest.raises((Refused, Unreachable)):
                await route.get(address, "/", 10)
        trap.on = False
        allowed = {await keeper.socks(), str(tmp_path / "tor" / "data" / "control")}
    assert set(trap.connected) == allowed
    assert trap.looked_up == []


async def test_the_trap_sees_one_direct_request(trap: Trap) -> None:
    with pytest.raises(Unreachable):
        await DirectRoute(timeout=2).get("127.0.0.1:1", "/", 10)
    assert trap.connected == [("127.0.0.1", 1)]
    with contextlib.suppress(OSError):
        await asyncio.get_running_loop().getaddrinfo("localhost", 80)
    assert trap.looked_up == ["localhost"]


# --- a wrong clock --------------------------------------------------------------------------------

SHIFT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += CLOCK_SHIFT;
    return failed;
}
time_t time(time_t *out) {
    struct timespec now; clock_gettime(CLOCK_REALTIME, &now); if (out) *out = now.tv_sec; return now.tv_sec;
}
int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec now; (void)zone; clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec; out->tv_usec = now.tv_nsec / 1000; return 0;
}
"""


def wrong_clock(folder: Path, shift: int) -> Path:
    """The system's tor with its wall clock moved by `shift` seconds."""
    compiler, tor = shutil.which("cc"), shutil.which("tor")
    if compiler is None or tor is None or sys.platform != "linux":
        pytest.skip("a C compiler is needed to move tor's clock")
    (folder / "shift.c").write_text(SHIFT)
    subprocess.run(
        [compiler, f"-DCLOCK_SHIFT={shift}", "-shared", "-fPIC", "-o", folder / "shift.so", folder / "shift.c", "-ldl"],
        check=True,
    )
    program = folder / "tor-with-wrong-clock"
    program.write_text(f'#!/bin/sh\nLD_PRELOAD="{folder}/shift.so" exec "{tor}" "$@"\n')
    program.chmod(0o755)
    return program


@pytest.mark.soak
@pytest.mark.parametrize("shift", [2 * 86_400, -2 * 86_400])
async def test_a_clock_two_days_off_is_named(tmp_path: Path, lines: tuple[str, ...], shift: int) -> None:
    folder = tmp_path / "tor"
    tor = await TorProcess.start(torrc_of_client(folder, lines), folder, program=wrong_clock(tmp_path, shift))
    try:
        began = time.monotonic()
        with pytest.raises(Unreachable, match=r"clock-skew while loading the directory.*set this machine's clock"):
            await tor.bootstrap(40)
        assert time.monotonic() - began < 25
    finally:
        await tor.stop()


async def test_a_clock_an_hour_and_a_half_off_still_works(tmp_path: Path, lines: tuple[str, ...]) -> None:
    folder = tmp_path / "tor"
    tor = await TorProcess.start(torrc_of_client(folder, lines), folder, program=wrong_clock(tmp_path, 5400))
    try:
        await tor.bootstrap(40)
        assert tor.state.done
    finally:
        await tor.stop()
