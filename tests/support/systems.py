"""Pythons that run the project's commands: this machine's, Windows' by Wine, that of arm64 by an emulator."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from tests.support import command_line
from tests.support.command_line import ROOT, Done, finish

COMMANDS = "tests.support.commands_there"
LONGEST = 1500.0
"""Seconds after which a program hangs, however busy the machine is: Wine takes minutes on a loaded one."""
GRACE = 5
"""Seconds in which the rest of an ended program's errors is read."""
KILLED = 9
"""Its exit code, by which a program ends itself at a point (`anon.storage.crash_points`)."""


def _read(pipe: int, told: bytearray) -> None:
    with os.fdopen(pipe, "rb", buffering=0) as file:
        while piece := file.read(2**16):
            told += piece


@frozen
class System:
    """A Python that runs the project's commands. `named`: a path as its programs name it."""

    python: tuple[str | Path, ...]
    environment: Mapping[str, str]
    code_page: str
    named: Callable[[Path], str]

    async def start(
        self, *words: str | Path, errors: int = asyncio.subprocess.PIPE, **more: str
    ) -> asyncio.subprocess.Process:
        """`python WORDS`; `more`: of its environment. Without a standard input Wine gives no output either."""
        pipe, told = asyncio.subprocess.PIPE, [self.named(one) if isinstance(one, Path) else one for one in words]
        return await asyncio.create_subprocess_exec(
            *self.python, *told, stdin=pipe, stdout=pipe, stderr=errors, cwd=ROOT, env={**self.environment, **more}
        )

    async def done(self, *words: str | Path, **more: str) -> Done:
        """`python WORDS` to its end. Its errors are read until then: Wine's own services were once started with that
        pipe, `booted` or not, and keep it open."""
        (reading, written), told = os.pipe(), bytearray()
        reader = threading.Thread(target=_read, args=(reading, told), daemon=True)
        try:
            program = await self.start(*words, errors=written, **more)
        finally:
            os.close(written)
            reader.start()
        ended = await finish(program, self.code_page, LONGEST)
        await asyncio.to_thread(reader.join, GRACE)
        return Done(ended.code, ended.out, told.decode(self.code_page, "replace"))

    async def killed(self, *commands: Sequence[str | Path], **more: str) -> None:
        """`attempts` that are killed in the midst of one."""
        done = await self._run(commands, more)
        assert done.code == KILLED, done.err or done.out

    async def attempts(self, *commands: Sequence[str | Path], **more: str) -> list[Done]:
        """Each `anonml COMMAND`, whatever comes of it, one after the other in one process. `more`: of its
        environment."""
        done = await self._run(commands, more)
        assert done.code == 0, done.err or done.out
        return [Done(**one) for one in json.loads(done.out)]

    async def plain(self, *commands: Sequence[str | Path], **more: str) -> list[str]:
        """Each `anonml COMMAND`, which must succeed; its text, with Unix' ends of lines."""
        found = await self.attempts(*commands, **more)
        for done, words in zip(found, commands, strict=True):
            assert done.code == 0, f"anonml {' '.join(map(str, words))}: {done.err or done.out}"
        return [done.out.replace("\r\n", "\n") for done in found]

    async def _run(self, commands: Iterable[Sequence[str | Path]], more: Mapping[str, str]) -> Done:
        told = [
            [self.code_page, [self.named(word) if isinstance(word, Path) else word for word in one]] for one in commands
        ]
        return await self.done("-m", COMMANDS, json.dumps(told), **more)


LINUX = System((sys.executable,), command_line.ENVIRONMENT, "utf-8", str)
