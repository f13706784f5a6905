"""Studies of the toy `letters` by programs: `anonml aggregator serve`, and an `anonml peer run` for each member.

The time is virtual (`examples.clock`), and the test is a party of it. It goes on in `go_to` and `to_the_end` alone, so
no round ends while a process is ended, moved or started again. A process that came down holds the time, until another
comes in its place or the test lets it go.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from attrs import define, field

from anon.errors import Refused
from anon.protocols.board import read_page
from anon.protocols.contract import Place
from anon.study.manifest import Manifest
from examples.clock import Keeper, Party
from tests.support import command_line
from tests.support.command_line import ENVIRONMENT, ROOT, Done
from tests.support.letters import GROUP, KEYS
from tests.support.letters_program import PROGRAM
from tests.support.letters_study import PROTOCOLS, STUDY
from tests.support.noted_program import CLOCK, KEEPER

TEXT = STUDY.replace('"60m"', '"50s"').replace('"20m"', '"40s"')
"""With short stages: programs look around every second of the clock, or more often."""
LIMITS = ("--lifetime", "2", "--per-study", "2", "--measure", "zcdp", "--minimum-cohort", "2", "--minimum-window", "0")
STEP, HOUR = 10.0, 3600.0


@define
class LettersStudy:
    """The programs of a study, and their homes. Make it with `by_programs`."""

    folder: Path
    keeper: Keeper
    party: Party
    homes: dict[int, Path] = field(factory=dict)
    running: dict[int, asyncio.subprocess.Process] = field(factory=dict)
    """The process of each member that was not lost."""
    serving: asyncio.subprocess.Process = field(init=False)
    key: str = field(init=False)
    manifest: Manifest = field(init=False)

    @property
    def aggregator(self) -> Path:
        """The aggregator's home."""
        return self.folder / "aggregator"

    # Programs

    async def _start(
        self, log: str, *words: object, joins: bool = False, heard: bool = True
    ) -> asyncio.subprocess.Process:
        times = {CLOCK: str(self.keeper.clock.path)} | ({KEEPER: str(self.keeper.place)} if joins else {})
        with (self.folder / log).open("ab") as file:
            return await asyncio.create_subprocess_exec(
                sys.executable, "-m", PROGRAM, *map(str, words), stdout=asyncio.subprocess.PIPE if heard else file,
                stderr=file, cwd=ROOT, env=ENVIRONMENT | times,
            )  # fmt: skip

    async def attempt(self, *words: object) -> Done:
        """`anonml WORDS`, whatever comes of it."""
        process = await self._start("commands.log", *words)
        out, _ = await process.communicate()
        return Done(process.returncode or 0, out.decode(), "")

    async def said(self, *words: object) -> str:
        """`anonml WORDS`, which must succeed; its text."""
        done = await self.attempt(*words)
        assert done.code == 0, f"anonml {' '.join(map(str, words))}: {done.out}{self.logs()}"
        return done.out

    def logs(self) -> str:
        """The last words of all programs."""
        return "".join(f"\n{log.name}: {log.read_text()[-1500:]}" for log in sorted(self.folder.glob("*.log")))

    # Beginning

    async def begin(self, answers: Sequence[int]) -> None:
        """Publish the study and serve it. Members with these answers join, and their programs run."""
        (file := self.folder / "study.toml").write_text(TEXT)
        await self.said("study", "publish", file, "--loopback", "--home", self.aggregator)
        self.manifest = PROTOCOLS.manifest(self.documents()["manifest", 0])
        serve = ("aggregator", "serve", "--port", "0", "--json", "--home", self.aggregator)
        self.serving = await self._start("aggregator.log", *serve, joins=True)
        assert self.serving.stdout is not None
        line = await self.serving.stdout.readline()
        assert line, self.logs()
        self.key, address = (json.loads(line)[name] for name in ("key", "address"))
        invite = ("aggregator", "invite", "--count", len(answers), "--address", address, "--json")
        links = json.loads(await self.said(*invite, "--home", self.aggregator))
        async with asyncio.TaskGroup() as group:
            for number, (answer, link) in enumerate(zip(answers, links, strict=True)):
                group.create_task(self._join(number, answer, link))

    async def _join(self, number: int, answer: int, link: str) -> None:
        home = self.homes[number] = self.folder / f"member-{number}"
        (table := self.folder / f"{number}" / "person.csv").parent.mkdir()
        table.write_text(f"age,cups,tired\n30,2,{answer}\n")
        await command_line.anonml("peer", "import", table, "--all-rows", "--home", home)
        await command_line.anonml("peer", "budget", *LIMITS, "--home", home)
        await self.said("peer", "join", link, "--yes", "--json", "--home", home)
        await self.run(number)

    async def run(self, number: int) -> None:
        """`anonml peer run`, from now on."""
        words = ("peer", "run", "--home", self.homes[number])
        self.running[number] = await self._start(f"member-{number}.log", *words, joins=True, heard=False)

    # Going on

    async def go_to(self, instant: float) -> None:
        """Let the time go on to there (unix seconds). No program may end meanwhile."""
        there: asyncio.Future[Any] = asyncio.ensure_future(self.party.until(instant))
        processes = (self.serving, *self.running.values())
        ends: list[asyncio.Future[Any]] = [asyncio.ensure_future(process.wait()) for process in processes]
        done, _ = await asyncio.wait({there, *ends}, return_when=asyncio.FIRST_COMPLETED)
        assert done == {there}, self.logs()
        for end in ends:
            end.cancel()

    async def after(self, turn: int) -> None:
        """To the time when this round is over, and the next has not begun."""
        await self.go_to(1.0 + max(survey.window.closes for survey in self.manifest.surveys if survey.round == turn))

    async def to_the_end(self) -> None:
        """Until the study is over for every home that runs, and its program has ended by itself."""
        while any(self.stands(number)[0] != "finished" for number in self.running):
            assert self.party() < self.manifest.timetable.ends + HOUR, self.logs()
            await self.party.sleep(STEP)
        codes = [await process.wait() for process in self.running.values()]
        assert not any(codes), self.logs()

    async def end(self, number: int, how: signal.Signals = signal.SIGTERM) -> None:
        """End a member's process by this signal."""
        process = self.running.pop(number)
        process.send_signal(how)
        assert await process.wait() == -how, self.logs()

    async def lose(self, number: int) -> None:
        """End a member's process for good, and let it go."""
        await self.end(number)
        Party(self.keeper.clock.path, self.keeper.place).over()

    async def move(self, number: int, *how: str) -> str:
        """End a member's process, lose its home, and run another out of its backup; the words of the restore."""
        await self.end(number)
        home, file = self.homes[number], self.folder / f"member-{number}.backup"
        await self.said("peer", "backup", file, *how, "--home", home)
        shutil.rmtree(home)
        self.homes[number] = self.folder / f"moved-{number}"
        told = await self.said("peer", "restore", file, "--home", self.homes[number])
        await self.run(number)
        return told

    async def stop(self) -> None:
        """Kill all that still runs."""
        for process in (getattr(self, "serving", None), *self.running.values()):
            if process is not None and process.returncode is None:
                process.kill()
                await process.communicate()

    # Looking

    def documents(self) -> dict[Place, bytes]:
        """Everything that was published."""
        query = "SELECT kind, part, body FROM documents WHERE signature != x'' ORDER BY number"
        return {(kind, part): body for kind, part, body in _rows(self.aggregator / "aggregator.sqlite", query)}

    def writers(self) -> list[int]:
        """The members in the order of the first page. Each home keeps the digests of its packets while it goes on."""
        page = read_page(self.manifest, 0, self.documents()["page", 0])
        query = f"SELECT digest FROM outbox WHERE survey = {KEYS}"
        digests = {_rows(home / "peer.sqlite", query)[0][0]: number for number, home in self.homes.items()}
        return [digests[entry.digest] for entry in page.entries[KEYS].values()]

    def stands(self, number: int) -> tuple[str, list[str], int]:
        """A member's study, its packets by slot, and its charge, as stored."""
        store = self.homes[number] / "peer.sqlite"
        ((state, spent),) = _rows(store, "SELECT state, spent FROM studies JOIN ledger USING (study)")
        return state, [status for (status,) in _rows(store, "SELECT status FROM outbox ORDER BY slot")], spent

    async def heard(self) -> list[list[str]]:
        """By member, the greetings that `anonml peer received` writes. None where it says that there is no result."""
        return await asyncio.gather(*map(self._heard, sorted(self.homes)))

    async def _heard(self, number: int) -> list[str]:
        folder, (kind, part) = self.folder / f"received-{number}", GROUP
        words = ("peer", "received", self.manifest.study_id.hex(), folder, "--home", self.homes[number])
        if (done := await self.attempt(*words)).code == Refused.exit_code and not folder.exists():
            return []
        assert done.code == 0, self.logs()
        return [text for (text,) in json.loads((folder / f"{kind}-{part}.json").read_text())["rows"]]

    async def audited(self) -> dict[str, Any]:
        """The figures of `anonml aggregator audit`, of what `export` writes, and its exit code."""
        await self.said("aggregator", "export", self.folder / "published", "--home", self.aggregator)
        done = await self.attempt("aggregator", "audit", self.folder / "published", "--key", self.key, "--json")
        return {"code": done.code, **done.json}


def _rows(store: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(store, timeout=30)) as opened:
        opened.execute("PRAGMA query_only = ON")
        return opened.execute(query).fetchall()


def by_programs(
    folder: Path, answers: Sequence[int], live: Callable[[LettersStudy], Coroutine[Any, Any, None]]
) -> None:
    """A study of members with these answers, lived by programs. Everything that was started ends with it."""
    with Keeper(folder / "clock", parties=len(answers) + 2) as keeper:
        party = Party(keeper.clock.path, keeper.place, bars=True)

        async def lived() -> None:
            study = LettersStudy(folder, keeper, party)
            try:
                await study.begin(answers)
                await live(study)
            finally:
                await study.stop()

        with asyncio.Runner(loop_factory=party.loop) as runner:
            runner.run(lived())
