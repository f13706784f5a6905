"""A whole study on this machine: the aggregator in this process, every peer in one of its own behind a SOCKS port of its
own, under another locale, clock, environment or interpreter each.

Enrolment lasts until all are enrolled: then the clock that they share is moved on. From there on it runs as it is.
"""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import signal
import struct
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from attrs import define, field, frozen
from socks_recorder import SocksRecorder
from witnesses import strace

from aggregator.app import AggregatorApp
from anon.invite import Invite
from anon.onion import onion_host
from anon.study import parse_proposal
from tests.study_texts import questions

ROOT = Path(__file__).resolve().parents[2]
LIFE = Path(__file__).with_name("peer_life.py")
ADDRESS = onion_host(bytes(range(32))) + ":80"
STUDY = f"""{questions(age="bins = 3", answers=(">50K", "<=50K"))}

[design]
kind = "one-packet"
epsilon = 2.0
binning_share = 0.4

[cover]
connections = 2

[schedule]
enrol = "10m"
settle = "3s"
binning = "6s"
collect = "6s"

[cohort]
minimum = 2
"""
LONGEST = 120.0


@frozen
class Variant:
    """How a peer's process differs from the others."""

    name: str
    environment: Mapping[str, str] = field(factory=dict)
    skew: float = 0.0
    python: str = sys.executable
    traced: bool = False


@define
class Watched:
    """A peer's process and all that was seen of it."""

    variant: Variant
    socks: SocksRecorder
    folder: Path
    code: int | None = None
    said: str = ""

    @property
    def trap(self) -> Path:
        return self.folder / "trap"

    @property
    def trace(self) -> Path:
        return self.folder / "strace"


class Clock:
    """The machine's time and what was added to it, for all processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(struct.pack("<d", 0.0))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 8)

    def __call__(self) -> float:
        return time.time() + struct.unpack("<d", self._shared[:])[0]

    def forward(self, seconds: float) -> None:
        """Move on."""
        self._shared[:] = struct.pack("<d", struct.unpack("<d", self._shared[:])[0] + seconds)


@define
class Setting:
    """An aggregator that serves one study."""

    app: AggregatorApp
    clock: Clock
    invites: list[Invite]
    port: int
    folder: Path
    peers: list[Watched] = field(factory=list)

    async def peer(self, variant: Variant, number: int) -> Watched:
        """A peer behind its own SOCKS port."""
        folder = self.folder / f"peer-{number}"
        folder.mkdir()
        made = Watched(variant, await SocksRecorder(self.port).open(), folder)
        self.peers.append(made)
        return made

    async def live(self, peer: Watched, commands: Sequence[Sequence[str]], leak: str = "") -> None:
        """Run the commands in a process; it is ended if it takes too long."""
        clock, skew = str(self.clock.path), peer.variant.skew
        told = {"commands": commands, "trap": str(peer.trap), "clock": clock, "skew": skew, "leak": leak}
        words = [*(strace(peer.trace) if peer.variant.traced else []), peer.variant.python, str(LIFE), json.dumps(told)]
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
        environment = plain | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"} | dict(peer.variant.environment)
        process = await asyncio.create_subprocess_exec(
            *words,
            cwd=peer.folder,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            out, _ = await asyncio.wait_for(process.communicate(), LONGEST)
            peer.code, peer.said = process.returncode, out.decode("utf-8", "replace")
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)  # strace and what it traces
                await process.wait()

    def life(self, peer: Watched, number: int) -> list[list[str]]:
        """Everything a member does, from the first look to finding its packet in the transcript."""
        home, route = ["--home", str(peer.folder / "home")], ["--route", f"socks://127.0.0.1:{peer.socks.port}"]
        link = self.invites[number].link()
        return [
            ["peer", "budget", "--minimum-cohort", "2", *home],
            ["peer", "look", link, *home, *route],
            ["peer", "join", link, "--yes", *home, *route],
            ["peer", "run", *home, *route],
            ["peer", "receipts", "--json", *home],
        ]


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Setting]:
    """An aggregator at a loopback port, with a study and invites to an onion address."""
    clock, ready = Clock(folder / "clock"), asyncio.get_running_loop().create_future()
    async with AggregatorApp(folder / "aggregator", clock, os.urandom, processes=0) as app:
        manifest = await app.create_study(parse_proposal(STUDY), ADDRESS)
        invites = await app.create_invites(manifest.study_id, 20, ADDRESS)
        task = asyncio.create_task(app.serve("127.0.0.1", 0, ready.set_result))
        setting = Setting(app, clock, invites, await ready, folder)
        try:
            yield setting
        finally:
            for peer in setting.peers:
                peer.socks.close()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def whole_study(folder: Path, variants: Sequence[Variant]) -> list[Watched]:
    """One life of each variant, all in one study."""
    async with serving(folder) as setting, asyncio.TaskGroup() as group:
        (live,) = setting.app.studies()
        for number, variant in enumerate(variants):
            peer = await setting.peer(variant, number)
            group.create_task(setting.live(peer, setting.life(peer, number)))
        while await setting.app._tools.enrolments.count(live.study) < len(variants):
            if any(peer.code is not None for peer in setting.peers):
                raise AssertionError([peer.said for peer in setting.peers])
            await asyncio.sleep(0.2)
        setting.clock.forward(live.manifest.timetable.enrol_closes - setting.clock())
    return setting.peers
