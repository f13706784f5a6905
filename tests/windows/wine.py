"""Commands under Windows' own Python, by Wine: each is a Windows process with pipes for its input and output.

Wine is not Windows. It has Windows' paths, code pages, registry, file locks, processes and job objects in its own way,
on the network and the clock of this machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pytest
from attrs import frozen

from tests.support import command_line
from tests.support.command_line import Done, finish

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / ".venv" / "windows"
COMMANDS = "tests.windows.commands"
PYTHON = PLACE / "python" / "python.exe"
WINE = Path(shutil.which("wine64") or "/usr/lib/wine/wine64")
DISK = PLACE / "prefix" / "drive_c"
"""The disk C: as this system sees it."""
ENVIRONMENT = {
    **{name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ},
    "LANG": "C.UTF-8",
    "WINEPREFIX": str(PLACE / "prefix"),
    "WINEDEBUG": "-all",
    "WINEDLLOVERRIDES": "mscoree,mshtml=;winemenubuilder.exe=d",
    "COLUMNS": "200",
}
"""Neither .NET nor a browser of Wine's own is looked for, and nothing is put into this system's menus."""
LONGEST = 1500.0
"""Seconds after which a program hangs, however busy the machine is: Wine takes minutes on a loaded one."""
GRACE = 5
"""Seconds in which the rest of an ended program's errors is read."""
CODE_PAGE = "cp1252"
"""Of a usual Windows in the West, and so of its pipes."""
KILLED = 9
"""Its exit code, by which a program ends itself at a point (`anon.storage.crash_points`)."""
needs_windows = pytest.mark.skipif(
    not (PLACE / "made").exists(), reason="`make .venv/windows/made` first: Windows' Python is not installed"
)


def make_disk(environment: Mapping[str, str], longest: float = LONGEST) -> None:
    """An empty disk C: and a registry. The files that were made decide, and not the exit code: on a busy machine this
    system's linker has failed when all was done and Wine ended."""
    made = subprocess.run(
        [WINE, "wineboot", "--init"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False,
        timeout=longest,
    )  # fmt: skip
    subprocess.run([WINE.with_name("wineserver64"), "-w"], env=environment, check=False, timeout=longest)
    assert (Path(environment["WINEPREFIX"]) / "system.reg").exists(), made.stderr.decode("utf-8", "replace")


@contextmanager
def booted() -> Iterator[None]:
    """Windows is up until the block ends. The first program starts Wine's own, which keep its output open as long as
    any program lives: no other's output would end with it."""
    holds, pipe = ("-I", "-S", "-c", "import sys; print(1, flush=True); sys.stdin.read()"), subprocess.PIPE
    with subprocess.Popen([WINE, PYTHON, *holds], env=ENVIRONMENT, stdin=pipe, stdout=pipe, stderr=pipe) as first:
        assert first.stdout is not None and first.stdin is not None and first.stdout.readline()
        try:
            yield
        finally:
            first.stdin.close()


def of_windows(path: Path) -> str:
    """The path as a Windows program names it: this system is its disk Z:."""
    if path.is_relative_to(DISK):
        return "C:\\" + "\\".join(path.relative_to(DISK).parts)
    return "Z:" + str(PurePosixPath(path)).replace("/", "\\")


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


WINDOWS = System((WINE, PYTHON), ENVIRONMENT, CODE_PAGE, of_windows)
LINUX = System((sys.executable,), command_line.ENVIRONMENT, "utf-8", str)
