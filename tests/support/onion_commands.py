"""Aggregators and peers of the command line that meet in a private Tor network, each a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.command_line import ENVIRONMENT, ROOT
from tests.support.studies import income_study

TWO_PACKETS = 'kind = "paper"\nepsilon_histogram = 0.75\nepsilon_binning = 0.5\npartitions = 2'
STARTING = 120


def onion_study(title: str, design: str, admission: str = "invite", **lengths: float) -> str:
    """A study file for two or more, who ask and send through Tor."""
    purpose = "To see a whole study through Tor."
    return income_study(
        design, title=title, purpose=purpose, admission=admission, minimum=2, **{"margin": 3, **lengths}
    )


class OnionServing:
    """`anonml aggregator serve --onion --json`, and what it has said so far. May be killed and started again."""

    def __init__(self, home: Path, *program: str, invites: int = 0, more: Sequence[str] = ()) -> None:
        self.home = home
        self.log = home.with_suffix(".log")
        self.address = ""
        self.addresses: list[str] = []
        self.links: dict[str, list[str]] = {}
        self.phases: dict[str, str] = {}
        self._program = program or ("-m", "anonml", "aggregator", "serve")
        self._words = ("--onion", "--home", str(home), "--invites", str(invites), "--json", *more)
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """Of the process that runs now, or did last."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Until its own onion has answered it."""
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, *self._program, *self._words, stdout=asyncio.subprocess.PIPE, stderr=log, cwd=ROOT,
                env=ENVIRONMENT,
            )  # fmt: skip
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), STARTING)
        assert line, self.log.read_text()
        self.addresses = json.loads(line)["addresses"]
        self.address = self.addresses[0]
        self._reader = asyncio.create_task(self._follow(self._process.stdout))

    async def _follow(self, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            said = json.loads(line)
            self.phases[said["study"]] = said["phase"]
            if "links" in said:
                self.links.setdefault(said["study"], said["links"])

    async def invited(self, study: str) -> list[str]:
        """The links that it gave out for a study."""
        return await self._when(lambda: self.links.get(study), 30)

    async def ended(self, study: str, seconds: float = 150) -> None:
        """Until a study is over."""
        await self._when(lambda: self.phases.get(study) in ("published", "abandoned"), seconds)

    async def _when(self, reached: Any, seconds: float) -> Any:
        for _ in range(int(seconds * 10)):
            if found := reached():
                return found
            await asyncio.sleep(0.1)
        raise AssertionError(f"nothing happens: {self.phases} {self.log.read_text()[-2000:]}")

    async def kill(self) -> None:
        """SIGKILL, now."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> int:
        """End the process as a service manager does, by SIGTERM. Returns its exit code."""
        return await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> int:
        if self._process is None:
            return 0
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)
        code = await asyncio.wait_for(self._process.wait(), 30)
        if self._reader is not None:
            await self._reader
        return code


def children_of(pid: int) -> list[int]:
    """Living children of a process."""
    found: list[int] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, listed.read_text().split())
    return found


def tors_of(pid: int) -> list[int]:
    """The tors that a process runs now."""
    found = []
    for child in children_of(pid):
        with suppress(OSError):
            if Path(f"/proc/{child}/comm").read_text().strip() == "tor":
                found.append(child)
    return found


def tor_of(pid: int) -> int | None:
    """The tor that a process runs, if it does now."""
    return next(iter(tors_of(pid)), None)


def listening(pid: int) -> list[str]:
    """Network addresses at which a process listens, in hexadecimal."""
    held = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            held.add(link.readlink().name)
    found = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] in ("0A", "07") and f"socket:[{fields[9]}]" in held:
                found.append(fields[1])
    return found


async def raw_through(socks: tuple[str, int], address: str, request: bytes, tries: int = 3) -> bytes:
    """The bytes that come back for bytes sent to an onion address. A circuit that broke gives none, so another is
    tried."""
    for _ in range(tries):
        if answer := await _once_through(socks, address, request):
            return answer
    return b""


async def _once_through(socks: tuple[str, int], address: str, request: bytes) -> bytes:
    """The same through one circuit of tor's SOCKS port (RFC 1928 and 1929)."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(*socks)
    try:
        user = os.urandom(8).hex().encode()
        writer.write(b"\x05\x01\x02")
        assert await reader.readexactly(2) == b"\x05\x02"
        writer.write(b"\x01" + bytes([len(user)]) + user + bytes([len(user)]) + user)
        assert await reader.readexactly(2) == b"\x01\x00"
        writer.write(b"\x05\x01\x00\x03" + bytes([len(host)]) + host.encode() + int(port).to_bytes(2, "big"))
        assert (await reader.readexactly(10))[:2] == b"\x05\x00"
        writer.write(request)
        return await asyncio.wait_for(reader.read(), 30)
    finally:
        writer.close()
