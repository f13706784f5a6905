"""A whole study on this machine: the aggregator in this process, every peer in one of its own behind a SOCKS port of
its own, under another locale, clock, environment or interpreter each.

Enrolment lasts until all are enrolled: then the clock that they share is moved on. It runs as real time does, but not
while this process is starved.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from attrs import define, field, frozen

from aggregator.app import AggregatorApp
from anon.wire.invite import Invite
from anon.wire.onion_address import onion_host
from tests.support.protocols import parse_proposal
from tests.support.shared_clock import Flow, SharedClock
from tests.support.socks_recorder import SocksRecorder
from tests.support.studies import questions
from tests.support.witnesses import strace

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
settle = "6s"
binning = "12s"
collect = "12s"

[cohort]
minimum = 2
"""
LONGEST, PATIENCE = 120.0, 20.0


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


@define
class Setting:
    """An aggregator that serves one study."""

    app: AggregatorApp
    clock: SharedClock
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
        """Run the commands in a process. One that takes too long is ended, and says where it was.

        It prints into a file: its end is waited for, and not that of everything that might hold a pipe of it.
        """
        clock, skew = str(self.clock.path), peer.variant.skew
        told = {"commands": commands, "trap": str(peer.trap), "clock": clock, "skew": skew, "leak": leak}
        words = [*(strace(peer.trace) if peer.variant.traced else []), peer.variant.python, str(LIFE), json.dumps(told)]
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
        own = {"PYTHONPATH": str(ROOT), "COLUMNS": "200", "PYTHONFAULTHANDLER": "1"}
        environment = plain | own | dict(peer.variant.environment)
        printed = peer.folder / "printed"
        with printed.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                *words, cwd=peer.folder, env=environment, stdout=out, stderr=out, start_new_session=True
            )
        try:
            await asyncio.wait_for(process.wait(), LONGEST)
        except TimeoutError:
            await _end(process, signal.SIGABRT)
            raise AssertionError(f"{peer.variant.name} waits: {printed.read_text(errors='replace')}") from None
        finally:
            await _end(process, signal.SIGKILL)
        peer.code, peer.said = process.returncode, printed.read_text("utf-8", "replace")

    def life(self, peer: Watched, number: int) -> list[list[str]]:
        """Everything a member does, from the first look to finding its packet in the transcript."""
        home, route = ["--home", str(peer.folder / "home")], ["--route", f"socks://127.0.0.1:{peer.socks.port}"]
        link = self.invites[number].link()
        return [
            ["peer", "budget", "--minimum-cohort", "2", "--minimum-window", "0", *home],
            ["peer", "look", link, *home, *route],
            ["peer", "join", link, "--yes", *home, *route],
            ["peer", "run", *home, *route],
            ["peer", "receipts", "--json", *home],
        ]


async def _end(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Signal strace and what it traces, if they run, and wait for a while."""
    if process.returncode is None:
        os.killpg(process.pid, number)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), PATIENCE)


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Setting]:
    """An aggregator at a loopback port, with a study and invites to an onion address."""
    clock, ready = SharedClock(folder / "clock"), asyncio.get_running_loop().create_future()
    async with AggregatorApp(folder / "aggregator", clock, os.urandom, processes=0) as app:
        manifest = await app.create_study(parse_proposal(STUDY), ADDRESS)
        invites = await app.create_invites(manifest.study_id, 20, ADDRESS)
        task = asyncio.gather(app.serve("127.0.0.1", 0, ready.set_result), Flow(clock, 1.0).run())
        setting = Setting(app, clock, invites, await ready, folder)
        try:
            yield setting
        finally:
            for peer in setting.peers:
                peer.socks.close()
            task.cancel()
            async with asyncio.timeout(PATIENCE):
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
        setting.clock.seconds = live.manifest.timetable.enrol_closes
    return setting.peers
