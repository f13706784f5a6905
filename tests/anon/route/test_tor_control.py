"""The control client against a real tor that has no network, and against sockets that only pretend to be one."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anon.errors import Refused, Unreachable
from anon.route.tor import Controller, TorProcess, checked_onion, torrc_of_client
from tests.support.patience import turns
from tests.support.tries import examples

ROOT = Path(__file__).resolve().parents[3]
OFFLINE = ("DisableNetwork 1",)
CLIENT_KEY = "5BUTCTKYNZQ6SJMBKWJCP5EGG5YU3KBBTYFL74KBO24FJXAPAYNA"
COOKIE = bytes(range(32))


def running(pid: int) -> bool:
    """True if the process exists and is not merely waiting to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@asynccontextmanager
async def offline(folder: Path) -> AsyncIterator[TorProcess]:
    tor = await TorProcess.start(torrc_of_client(folder, OFFLINE), folder)
    try:
        yield tor
    finally:
        await tor.stop()


@pytest.mark.tor
async def test_getinfo_and_what_tor_says_of_its_settings(tmp_path: Path) -> None:
    async with offline(tmp_path / "tor") as tor:
        told = await tor.controller.get_info(
            "version", "process/pid", "status/bootstrap-phase", "net/listeners/control"
        )
        assert told["process/pid"] == str(tor.pid)
        assert "PROGRESS=0" in told["status/bootstrap-phase"]
        assert told["net/listeners/control"].startswith("unix:")
        configured = await tor.controller.command("GETCONF ClientOnly SafeSocks ControlPort")
        assert configured.values() == {"ClientOnly": "1", "SafeSocks": "1", "ControlPort": "0"}
        await tor.controller.signal("NEWNYM")
        with pytest.raises(Refused, match="tor refused GETINFO"):
            await tor.controller.get_info("no/such/key")


@pytest.mark.tor
async def test_commands_given_at_once_get_their_own_answers(tmp_path: Path) -> None:
    async with offline(tmp_path / "tor") as tor:
        keys = ["version", "process/pid", "process/uid", "config-file"] * 25
        answers = await asyncio.gather(*(tor.controller.get_info(key) for key in keys))
        assert [list(answer) for answer in answers] == [[key] for key in keys]
        with pytest.raises(Unreachable):
            await tor.controller.command("GETINFO version", 0)
        assert list(await tor.controller.get_info("process/uid")) == ["process/uid"]  # the late answer went to nobody


@pytest.mark.tor
async def test_onion_services_of_every_kind(tmp_path: Path) -> None:
    async with offline(tmp_path / "tor") as tor:
        control = tor.controller
        fresh = await control.add_onion("NEW:ED25519-V3", ["80,127.0.0.1:9"])
        assert checked_onion(f"{fresh.service_id}.onion:80")
        assert fresh.private_key.startswith("ED25519-V3:")
        assert fresh.private_key not in repr(fresh)
        await control.del_onion(fresh.service_id)
        own = await control.add_onion(
            fresh.private_key, [f"80,unix:{tmp_path}/web", "81,127.0.0.1:9"], client_keys=[CLIENT_KEY], most_streams=4
        )
        assert own == fresh
        listed = await control.get_info("onions/current")
        assert listed["onions/current"] == fresh.service_id
        with pytest.raises(Refused) as caught:
            await control.add_onion(fresh.private_key, ["80,127.0.0.1:9"])
        assert fresh.private_key[12:40] not in str(caught.value)
        await control.del_onion(fresh.service_id)
        with pytest.raises(Refused, match="tor refused DEL_ONION"):
            await control.del_onion(fresh.service_id)


@pytest.mark.tor
async def test_a_broken_key_is_not_repeated_in_the_error(tmp_path: Path) -> None:
    async with offline(tmp_path / "tor") as tor:
        secret = "VerySecretKeyMaterial" * 4
        for key in (f"ED25519-V3:{secret}", f"RSA9999:{secret}", secret):
            with pytest.raises(Refused, match="tor refused ADD_ONION") as caught:
                await tor.controller.add_onion(key, ["80"])
            assert secret not in str(caught.value)
        with pytest.raises(Refused) as caught:
            await tor.controller.add_onion("NEW:ED25519-V3", ["80"], client_keys=[secret])
        assert secret not in str(caught.value)


@pytest.mark.tor
@pytest.mark.parametrize(
    "port", ["80,unix:/a b", "80 Flags=Detach", "80\r\nSIGNAL HALT", "80,x\x00", '80,unix:"/a"', ""]
)
async def test_a_word_cannot_become_two(tmp_path: Path, port: str) -> None:
    async with offline(tmp_path / "tor") as tor:
        with pytest.raises(Refused):
            await tor.controller.add_onion("NEW:ED25519-V3", [port])
        with pytest.raises(Refused):
            await tor.controller.command("GETINFO version\r\nSIGNAL HALT")
        assert await tor.controller.get_info("onions/current") == {"onions/current": ""}


@pytest.mark.tor
async def test_events_reach_every_listener_and_end_with_tor(tmp_path: Path) -> None:
    async with offline(tmp_path / "tor") as tor:
        control, one = tor.controller, tor.controller.events
        async with control.watching("CONF_CHANGED"):
            async with control.watching("SIGNAL") as two:
                await control.signal("NEWNYM")
                await control.command("SETCONF MaxCircuitDirtiness=88")
                assert [(await anext(two)).name for _ in range(2)] == ["SIGNAL", "CONF_CHANGED"]
            await control.signal("NEWNYM")
            await control.command("SETCONF MaxCircuitDirtiness=99")
            heard = [(await anext(one)) for _ in range(3)]
        assert [event.name for event in heard] == ["SIGNAL", "CONF_CHANGED", "CONF_CHANGED"]
        assert heard[2].text.startswith("MaxCircuitDirtiness=99")
        os.kill(tor.pid, signal.SIGKILL)
        async with asyncio.timeout(2):
            assert [event async for event in one] == []
        with pytest.raises(Unreachable, match="start it again"):
            await tor.controller.get_info("version")
        assert not tor.alive


@pytest.mark.tor
async def test_stop_leaves_no_process_and_no_file_outside_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "e"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    monkeypatch.setenv("HOME", str(elsewhere))
    for folder in (tmp_path / "short", tmp_path / ("long" * 40)):
        tor = await TorProcess.start(torrc_of_client(folder, OFFLINE), folder)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        sockets = [*elsewhere.rglob("control"), *folder.glob("control")]
        assert len(sockets) == 1
        assert len(os.fsencode(sockets[0])) < 108
        assert stat.S_IMODE(sockets[0].parent.stat().st_mode) == 0o700
        await tor.stop()
        await tor.stop()
        assert not running(tor.pid)
        assert list(elsewhere.iterdir()) == []
        assert sorted(path.name for path in folder.iterdir()) == ["keys", "lock", "state"]


@pytest.mark.tor
@pytest.mark.soak
async def test_a_tor_that_does_not_listen_is_stopped_by_its_id(tmp_path: Path) -> None:
    tor = await TorProcess.start(torrc_of_client(tmp_path / "tor", OFFLINE), tmp_path / "tor")
    os.kill(tor.pid, signal.SIGSTOP)
    began = time.monotonic()
    await tor.stop()
    assert not running(tor.pid)
    assert time.monotonic() - began < 10


OWNER = """
import asyncio, sys
from pathlib import Path
from anon.route.tor import TorProcess, torrc_of_client
async def main():
    folder = Path(sys.argv[1])
    tor = await TorProcess.start(torrc_of_client(folder, ("DisableNetwork 1",)), folder)
    print(tor.pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.tor
def test_tor_ends_within_two_seconds_of_its_killed_owner(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path / "tor")], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert running(pid)
        owner.kill()
        owner.wait()
        killed = time.monotonic()
        while running(pid) and time.monotonic() - killed < 2:
            time.sleep(0.02)
        try:
            assert not running(pid)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


# --- sockets that only pretend -------------------------------------------------------------------

Answering = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def pretender(answering: Answering) -> AsyncIterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pretend") as folder:
        path = Path(folder) / "control"

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await answering(reader, writer)
            writer.close()

        server = await asyncio.start_unix_server(serve, str(path))
        async with server:
            yield path


def challenge(cookie: bytes, line: bytes) -> bytes:
    client_nonce, server_nonce = bytes.fromhex(line.split()[2].decode()), bytes(32)
    label = b"Tor safe cookie authentication server-to-controller hash"
    proof = hmac.digest(label, cookie + client_nonce + server_nonce, hashlib.sha256)
    return b"250 AUTHCHALLENGE SERVERHASH=%s SERVERNONCE=%s\r\n" % (
        proof.hex().upper().encode(),
        server_nonce.hex().encode(),
    )


@pytest.mark.tor
async def test_a_wrong_cookie_is_noticed_before_anything_is_proven(tmp_path: Path) -> None:
    async with offline(tmp_path / "tor"):
        with pytest.raises(Refused, match="does not know tor's cookie"):
            await Controller.connect(tmp_path / "tor" / "control", COOKIE)
        cookie = (tmp_path / "tor" / "control_auth_cookie").read_bytes()
        second = await Controller.connect(tmp_path / "tor" / "control", cookie)
        assert (await second.get_info("version"))["version"]
        await second.close()


async def test_a_lying_server_gets_no_proof() -> None:
    heard: list[bytes] = []

    async def lie(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            heard.append(line)
            writer.write(challenge(bytes(32), line) if line.startswith(b"AUTHCHALLENGE") else b"250 OK\r\n")

    async with pretender(lie) as path:
        with pytest.raises(Refused, match="does not know tor's cookie"):
            await Controller.connect(path, COOKIE)
        await turns()
    assert [line.split()[0] for line in heard] == [b"AUTHCHALLENGE"]


async def test_the_proof_is_the_one_of_the_specification_and_a_refusal_is_told() -> None:
    nonce = b"n" * 32

    async def strict(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(challenge(COOKIE, await reader.readline()))
        label = b"Tor safe cookie authentication controller-to-server hash"
        expected = hmac.digest(label, COOKIE + nonce + bytes(32), hashlib.sha256).hex().encode()
        verb, proof = (await reader.readline()).split()
        assert verb == b"AUTHENTICATE"
        writer.write(b"250 OK\r\n" if proof.lower() == expected else b"515 Authentication failed\r\n")
        await reader.readline()
        writer.write(b"515 Authentication failed: no\r\n")

    async with pretender(strict) as path:
        control = await Controller.connect(path, COOKIE, lambda size: nonce[:size])
        with pytest.raises(Refused, match="515"):
            await control.take_ownership()
        await control.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"250 OK\r\n", b"garbage\r\n", b"250 AUTHCHALLENGE SERVERHASH=zz SERVERNONCE=00\r\n",
        b'250 AUTHCHALLENGE SERVERHASH="\r\n', b"250 AUTHCHALLENGE SERVERHASH= SERVERNONCE=\r\n", b"515 no\r\n",
        b"250-more\r\n", b"250 OK\r\n250 OK\r\n", b"\x00" * 5000,
    ],
)
async def test_nonsense_in_place_of_a_challenge(answer: bytes) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(answer)
        await writer.drain()

    async with pretender(speak) as path:
        with pytest.raises((Refused, Unreachable)):
            await Controller.connect(path, COOKIE, seconds=2)


async def test_a_silent_server_and_none_at_all_end_in_time(tmp_path: Path) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with pretender(silent) as path:
        with pytest.raises(Unreachable, match=r"did not answer in 0\.2 seconds"):
            await Controller.connect(path, COOKIE, seconds=0.2)
    with pytest.raises(Unreachable):
        await Controller.connect(tmp_path / "none", COOKIE)


async def test_an_endless_answer_is_not_read_for_ever() -> None:
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(challenge(COOKIE, await reader.readline()))
        await reader.readline()
        writer.write(b"250 OK\r\n")
        await reader.readline()
        while True:
            writer.write(b"250-" + b"x" * 60_000 + b"\r\n")
            await writer.drain()
            sent += 60_000

    async with pretender(endless) as path:
        control = await Controller.connect(path, COOKIE, lambda size: bytes(size))
        with pytest.raises(Unreachable):
            await control.command("GETINFO version")
        assert control.closed
        await control.close()
    assert sent < 20 * 1024 * 1024


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.binary(max_size=60)
        | st.sampled_from([b"250 OK\r\n", b"650 A\r\n", b"250-a=b\r\n", b"250+x=\r\n", b".\r\n"]),
        max_size=8,
    )
)
def test_an_authenticated_server_that_babbles(answers: list[bytes]) -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(challenge(COOKIE, await reader.readline()))
        await reader.readline()
        writer.write(b"250 OK\r\n")
        await reader.readline()
        for answer in answers:
            writer.write(answer)
        await writer.drain()

    async def talk() -> None:
        async with pretender(babble) as path:
            control = await Controller.connect(path, COOKIE, seconds=2)
            with contextlib.suppress(Refused, Unreachable):
                await control.get_info("version")
            await control.close()
            with pytest.raises(Unreachable):
                await control.get_info("version")

    asyncio.run(talk())


async def test_what_repeats_a_key_is_not_passed_on() -> None:
    secret = "VerySecretKeyMaterial"

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(challenge(COOKIE, await reader.readline()))
        await reader.readline()
        writer.write(b"250 OK\r\n")
        while line := await reader.readline():
            writer.write(b"513 I do not like " + (line.strip() if b"Secret" in line else b"it") + b"\r\n")

    async with pretender(echo) as path:
        control = await Controller.connect(path, COOKIE)
        with pytest.raises(Refused, match=r"tor refused ADD_ONION \(513\)"):
            await control.add_onion(f"ED25519-V3:{secret}", ["80"])
        with pytest.raises(Refused, match="I do not like it"):
            await control.signal("NEWNYM")
        await control.close()
