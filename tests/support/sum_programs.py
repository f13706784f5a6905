"""A whole study of exact sums by real programs: an aggregator, two tellers if the study has any, and processes of
peers. Programs are killed, and peers stay away.

The programs are `anonml aggregator serve` and `anonml teller serve`, started by `noted_program`. A program that was
killed is started again at once, as a service manager does. The time is virtual (`examples.clock`), if a plan does not
ask for the wall clock's: it stands still while anything works, or is being started again.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing, nullcontext
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen

from aggregator.app import LOOK_SECONDS
from anon.study.manifest import Manifest, Survey
from examples.clock import Keeper
from tests.support.command_line import ENVIRONMENT, ROOT
from tests.support.noted_program import CLOCK, KEEPER, LOOK, NOISE
from tests.support.protocols import parse_manifest
from tests.support.served_tellers import free_port
from tests.support.sum_peers import PROGRAM, numbers_of
from tests.support.sum_subjects import Subject

CRASH_AT = "ANONML_CRASH_AT"
PATIENCE = 600.0
AGGREGATOR = "aggregator"


LAST = (("report", 0), ("unsummed", 0))
FIFTH = 5
NEVER, ENROLLED = -2, -1
"""Of a peer that goes for good: it does not even enrol, or it goes before the first round opens."""


@frozen
class Plan:
    """The study, how many take part, how long its stages last in seconds of its clock, and who is killed or away.

    `points`: by program the crash points of its processes, one after the other. `returning`: one of five peers is
    offline in each round, and comes back. `gone`: by peer the last round that it lives through; then it goes for good.
    `kills`: the round in whose window the first process of peers is killed, and how long after its opening.
    `ahead`: peers run so many seconds ahead of each other on a virtual clock, so that they have something due at once.
    The windows' margin is longer, and the aggregator looks no sooner.
    """

    subject: Subject
    peers: int
    hosts: int
    enrol: int
    settle: int
    collect: int
    points: Mapping[str, Sequence[str]] = field(factory=dict)
    returning: bool = False
    gone: Mapping[int, int] = field(factory=dict)
    kills: tuple[int, int] | None = None
    tor: bool = False
    wall: bool = False
    ahead: int = 0

    def text(self, addresses: Sequence[str]) -> str:
        """The study file."""
        named = zip(self.subject.tellers, addresses, strict=True)
        tellers = "".join(f'[[tellers]]\nname = "{name}"\naddress = "{address}"\n' for name, address in named)
        text = self.subject.text(tellers, self.peers // 2)
        for name in ("enrol", "settle", "collect"):
            text, found = re.subn(rf'^{name} = ".*"$', f'{name} = "{getattr(self, name)}s"', text, flags=re.MULTILINE)
            assert found == 1
        margin = f'margin = "{self.ahead + 1}s"\n' if self.ahead else ""
        return text.replace("[schedule]\n", f"[schedule]\n{margin}")

    @property
    def look(self) -> float:
        """Seconds between two looks of the aggregator."""
        return self.ahead or LOOK_SECONDS

    @property
    def enrolling(self) -> int:
        """How many peers enrol."""
        return self.peers - [*self.gone.values()].count(NEVER)

    def is_offline(self, number: int, turn: int) -> bool:
        """True of one of five, another one in each round."""
        return self.returning and (number + turn) % FIFTH == 0

    def is_away(self, number: int, turn: int) -> bool:
        """True of a peer that is offline, or gone for good."""
        return self.is_offline(number, turn) or turn > self.gone.get(number, turn)

    def order(self, manifest: Manifest, numbers: Sequence[int]) -> dict[str, Any]:
        """The data of some peers, the windows that they miss, and when they go for good."""
        windows = [(survey.round, survey.window) for survey in manifest.surveys]
        away = {
            number: [[window.opens, window.closes] for turn, window in windows if self.is_offline(number, turn)]
            for number in numbers
        }
        last = {turn: window.closes + 1 for turn, window in windows}
        ends = last | {NEVER: manifest.timetable.published, ENROLLED: manifest.timetable.enrol_closes + 1}
        return {
            "columns": self.subject.columns, "rows": {number: self.subject.rows(number) for number in numbers},
            "away": away, "gone": {number: ends[self.gone[number]] for number in numbers if number in self.gone},
        }  # fmt: skip


@define
class Program:
    """One serving program, started again whenever it was killed."""

    words: tuple[str, ...]
    home: Path
    environment: dict[str, str]
    points: list[str]
    deaths: int = 0
    lived: list[float] = field(factory=list)
    """The seconds from each killing until the next process served."""
    process: asyncio.subprocess.Process | None = None
    keeping: asyncio.Task[None] | None = None

    @property
    def log(self) -> Path:
        return self.home.with_suffix(".log")

    async def start(self) -> str:
        """Until it serves; its address."""
        point = self.points.pop(0) if self.points else ""
        out = self.home.with_suffix(f".out-{self.deaths}")
        with out.open("wb") as told, self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.support.noted_program", *self.words, "--home", str(self.home), "--json",
                stdout=told, stderr=log, cwd=ROOT, env={**self.environment, CRASH_AT: point},
            )  # fmt: skip
        deadline = time.monotonic() + PATIENCE
        while not out.read_bytes().endswith(b"\n"):
            assert self.process.returncode is None and time.monotonic() < deadline, self.log.read_text()[-3000:]
            await asyncio.sleep(0.05)
        return str(json.loads(out.read_text().splitlines()[0])["address"])

    async def keep(self) -> None:
        """Start it again for as long as it is killed. Raises for any other end."""
        while True:
            assert self.process is not None
            code = await self.process.wait()
            assert code == -signal.SIGKILL, f"{self.words} ended with {code}: {self.log.read_text()[-3000:]}"
            self.deaths += 1
            since = time.monotonic()
            await self.start()
            self.lived.append(time.monotonic() - since)

    async def stop(self) -> None:
        """As a service manager does, for good."""
        if self.keeping is not None:
            self.keeping.cancel()
            await asyncio.gather(self.keeping, return_exceptions=True)
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(self.process.wait(), 30)


@define
class SumStudy:
    """The programs and what they left behind. Make it with `sum_programs`."""

    folder: Path
    plan: Plan
    keeper: Keeper | None
    programs: dict[str, Program] = field(factory=dict)
    hosts: list[asyncio.subprocess.Process] = field(factory=list)
    outcomes: list[dict[str, Any]] = field(factory=list)
    kept: dict[tuple[str, int], set[bytes]] = field(factory=dict)
    """By teller and round, every noisy share that was ever seen in its journal."""
    seconds: list[float] = field(factory=list)
    """Of each round, from its closing to its sum."""
    manifest: Manifest = field(init=False)
    ordered: tuple[Sequence[int], Sequence[str]] = field(init=False)
    """The peers of the first process, and their links."""

    @property
    def hosted(self) -> Sequence[range]:
        """The peers of each process."""
        return numbers_of(self.plan.peers, self.plan.hosts)

    @property
    def home(self) -> Path:
        """The aggregator's."""
        return self.folder / AGGREGATOR

    def now(self) -> float:
        return time.time() if self.keeper is None else self.keeper.clock()

    # Beginning

    async def begin(self) -> None:
        """Start the tellers and the aggregator, publish the study, and have everybody join."""
        tellers = self.plan.subject.tellers
        await asyncio.gather(*map(self._init, tellers))
        serve = ("--onion",) if self.plan.tor else ("--port", str(free_port()))
        started = [self._start(name, "teller", "serve") for name in tellers]
        self.hosts = [await self._host(place) for place in range(self.plan.hosts)]
        *addresses, address = await asyncio.gather(*started, self._start(AGGREGATOR, "aggregator", "serve", *serve))
        for program in self.programs.values():
            program.keeping = asyncio.create_task(program.keep())
        file = self.folder / "study.toml"
        file.write_text(self.plan.text(addresses))
        for name, content in self.plan.subject.given.items():
            (self.folder / f"{name}.csv").write_bytes(content)
        loopback = () if self.plan.tor else ("--loopback",)
        await self.command("study", "publish", file, *loopback, "--home", self.home)
        self.manifest = parse_manifest(self.documents()["manifest", 0])
        links = await self.command(
            "aggregator", "invite", "--count", self.plan.peers, "--address", address, "--home", self.home
        )
        hosted = [(numbers, [links[number] for number in numbers]) for numbers in self.hosted]
        for host, order in zip(self.hosts, hosted, strict=True):
            self._order(host, *order)
        self.ordered = hosted[0]

    async def _init(self, name: str) -> None:
        place = () if self.plan.tor else ("--loopback", "--port", str(free_port()))
        await self.command("teller", "init", "--name", name, *place, "--home", self.folder / name)

    async def _start(self, name: str, *words: str) -> str:
        noted = {NOISE: str(self.folder / f"{name}.noise")} if name != AGGREGATOR else {}
        points = list(self.plan.points.get(name, ()))
        joins = {}
        if self.keeper is not None and name == AGGREGATOR:
            joins = {KEEPER: str(self.keeper.place)} | ({LOOK: str(self.plan.look)} if self.plan.ahead else {})
        self.programs[name] = Program(words, self.folder / name, {**self._environment(), **noted, **joins}, points)
        return await self.programs[name].start()

    def _environment(self) -> dict[str, str]:
        return ENVIRONMENT | ({} if self.keeper is None else {CLOCK: str(self.keeper.clock.path)})

    async def command(self, *words: object, ends: int = 0) -> Any:
        """`anonml WORDS --json`, which must end with this code."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.support.noted_program", *map(str, words), "--json",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=ROOT, env=self._environment(),
        )  # fmt: skip
        out, errors = await process.communicate()
        assert process.returncode == ends, f"anonml {' '.join(map(str, words))}: {errors.decode()}{out.decode()}"
        return json.loads(out)

    async def _host(self, place: int) -> asyncio.subprocess.Process:
        folder = self.folder / f"peers-{place}"
        with folder.with_suffix(".log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable, "-m", PROGRAM, str(folder), stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE, stderr=log, cwd=ROOT, env=self._environment(),
            )  # fmt: skip

    def _order(self, host: asyncio.subprocess.Process, numbers: Sequence[int], links: Sequence[str]) -> None:
        until = self.manifest.timetable.ends + 600
        order = {"numbers": list(numbers), "links": list(links), "tor": self.plan.tor, "until": until}
        order["look"] = self.plan.look
        if self.plan.kills is not None and host is self.hosts[0]:
            turn, seconds = self.plan.kills
            order["killed"] = self.manifest.survey(turn).window.opens + seconds
        order |= self.plan.order(self.manifest, numbers)
        if self.keeper is not None:
            order |= {"clock": str(self.keeper.clock.path), "keeper": str(self.keeper.place)}
        assert host.stdin is not None
        host.stdin.write(json.dumps(order).encode() + b"\n")
        host.stdin.close()

    # Going on

    async def killed(self) -> None:
        """Until the first process of peers was killed. The time stands still from then on."""
        await self.until(lambda: self.hosts[0].returncode is not None, "killed")
        assert self.hosts[0].returncode == -signal.SIGKILL, self._said()

    async def revive(self, gone: Mapping[int, int]) -> None:
        """Start the process that was killed again, from its disk. These peers of it are gone for good from now on."""
        self.plan = evolve(self.plan, gone={**self.plan.gone, **gone}, kills=None)
        self.hosts[0] = await self._host(0)
        self._order(self.hosts[0], *self.ordered)

    async def through(self) -> None:
        """The whole study, each round of tellers to its sum, and every peer to its end; also one that ends unsummed."""
        enrolled = "SELECT count(*) FROM enrolments"
        await self.until(lambda: self._one(enrolled) == self.plan.enrolling, "enrolled")
        for survey in self.manifest.surveys if self.plan.subject.tellers else ():
            await self._round(survey)
        await self.until(lambda: not self.documents().keys().isdisjoint(LAST), "model published")
        for host in self.hosts:
            out, _ = await host.communicate()
            assert host.returncode == 0, "".join(log.read_text() for log in self.folder.glob("peers-*.log"))
            self.outcomes += json.loads(out)
        await self.until(lambda: all(map(self._over, self.plan.subject.tellers)), "tellers finished")

    async def _round(self, survey: Survey) -> None:
        """From its window to its sum. A virtual clock stands still meanwhile."""
        turn = survey.round
        await self.until(lambda: self.now() >= survey.window.closes, f"round {turn} closed")
        began = time.monotonic()
        with self.keeper.held() if self.keeper is not None else nullcontext():
            await self.until(lambda: ("sums", turn) in self.documents(), f"round {turn} summed")
        self.seconds.append(time.monotonic() - began)

    async def until(self, reached: Callable[[], bool], what: str) -> None:
        """Wait, and note what tellers journal meanwhile."""
        longest = PATIENCE + (0 if self.keeper is not None else max(0.0, self.manifest.timetable.ends - self.now()))
        deadline = time.monotonic() + longest
        while not reached():
            self._look()
            for program in self.programs.values():
                if program.keeping is not None and program.keeping.done():
                    program.keeping.result()
            assert not any(host.returncode for host in self.hosts), self._said()
            assert time.monotonic() < deadline, f"not {what}: {self._said()}"
            await asyncio.sleep(0.05)
        self._look()

    def _said(self) -> str:
        return "\n".join(f"{log.name}: {log.read_text()[-1500:]}" for log in sorted(self.folder.glob("*.log")))

    def _look(self) -> None:
        for name in self.plan.subject.tellers:
            for turn, noisy in self.journal(name, "SELECT round, noisy FROM ends WHERE noisy IS NOT NULL"):
                self.kept.setdefault((name, turn), set()).add(noisy)

    def _over(self, name: str) -> bool:
        return self.journal(name, "SELECT count(*) FROM offers WHERE study NOT NULL AND sealing != x''") == [(0,)]

    # Looking

    def journal(self, name: str, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of a teller's journal."""
        with closing(sqlite3.connect(self.folder / name / "teller.sqlite", timeout=30)) as store:
            store.execute("PRAGMA query_only = ON")
            return store.execute(query, values).fetchall()

    def _one(self, query: str) -> Any:
        with closing(sqlite3.connect(self.home / "aggregator.sqlite", timeout=30)) as store:
            store.execute("PRAGMA query_only = ON")
            return store.execute(query).fetchone()[0]

    def documents(self) -> dict[tuple[str, int], bytes]:
        """Everything that was published, by kind and part."""
        with closing(sqlite3.connect(self.home / "aggregator.sqlite", timeout=30)) as store:
            store.execute("PRAGMA query_only = ON")
            rows = store.execute(
                "SELECT kind, part, body FROM documents WHERE signature != x'' ORDER BY number"
            ).fetchall()
        return {(kind, part): body for kind, part, body in rows}


@asynccontextmanager
async def sum_programs(folder: Path, plan: Plan) -> AsyncIterator[SumStudy]:
    """A study that was published and joined; every program ends with it."""
    with nullcontext() if plan.wall else Keeper(folder / "clock", plan.hosts + 1, plan.ahead) as keeper:
        study = SumStudy(folder, plan, keeper)
        try:
            await study.begin()
            yield study
        finally:
            for host in study.hosts:
                if host.returncode is None:
                    host.kill()
                    await host.wait()
            for program in study.programs.values():
                await program.stop()


os.environ.setdefault("OMP_NUM_THREADS", "1")
