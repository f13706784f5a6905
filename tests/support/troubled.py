"""A command of ours on a machine in trouble: a disk that takes nothing below its folder, clocks that leap, a kill.

The command is the real program. `trouble.c` stands between it and the C library, and does as a file says that the test
writes. So time passes for the command when the test says so, and no load of this machine decides anything.
"""

from __future__ import annotations

import asyncio
import errno
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from attrs import define, field

from tests.support.command_line import ENVIRONMENT, ROOT
from tests.support.patience import PATIENCE

FULL, READ_ONLY = errno.ENOSPC, errno.EROFS
_STATE = struct.Struct("=iidd")
SOURCE = Path(__file__).with_name("trouble.c")


@cache
def library() -> Path:
    """The compiled library, made once for a process of tests."""
    made = Path(mkdtemp(prefix="anonml-trouble-")) / "trouble.so"
    compiler = shutil.which("cc")
    assert compiler is not None, "a C compiler is needed: tests/parts names its package"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", made, SOURCE, "-ldl"], check=True)
    return made


@define
class Troubled:
    """`python -m WORDS`, or `anonml WORDS`, whose home is below `folder`. `said`: all that it printed."""

    folder: Path
    words: tuple[str, ...]
    leap: float = 0.0
    wall: float = 0.0
    disk: int = 0
    network: int = 0
    code: int | None = None
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        """Begin, or begin again, in the trouble that there is."""
        self._tell()
        environment = {
            **ENVIRONMENT,
            "TROUBLE": str(self._control),
            "TROUBLED": f"{self.folder}/",
            "LD_PRELOAD": str(library()),
        }
        environment |= {"PYTHONUNBUFFERED": "1", "COLUMNS": "1000"}
        self.code = None
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *self.words],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def _control(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.trouble")

    @property
    def _log(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.said")

    def _tell(self) -> None:
        if not self._control.exists():
            self._control.write_bytes(bytes(_STATE.size))
        with self._control.open("r+b") as file:
            file.write(_STATE.pack(self.disk, self.network, self.leap, self.wall))

    def trouble(self, disk: int = 0, network: int = 0, wall: float = 0.0) -> None:
        """From now on the disk and every connection fail so (0: no more), and the wall clock is off by so many
        seconds."""
        self.disk, self.network, self.wall = disk, network, wall
        self._tell()

    def pass_time(self, seconds: float) -> None:
        """So much later, by all clocks."""
        self.leap += seconds
        self._tell()

    @property
    def said(self) -> str:
        """Standard output and errors, of all its starts."""
        return self._log.read_text() if self._log.exists() else ""

    def ended(self) -> bool:
        """True once it has ended; `code` is then its exit code, negative for a signal."""
        assert self._process is not None
        self.code = self._process.poll()
        return self.code is not None

    async def until(self, reached: Callable[[], object], seconds: float = 0.0, alive: bool = True) -> None:
        """Look again and again; by its clock `seconds` pass between two looks."""
        deadline = time.monotonic() + PATIENCE
        while not await asyncio.to_thread(reached):
            assert time.monotonic() < deadline, f"it never came: {self.said}"
            assert not alive or not self.ended(), f"it ended with {self.code}: {self.said}"
            await asyncio.sleep(0.05)
            if seconds:
                self.pass_time(seconds)

    async def says(self, *texts: str, seconds: float = 0.0, after: int = 0, alive: bool = True) -> None:
        """Until it has said all of these, after so many characters."""
        await self.until(lambda: all(text in self.said[after:] for text in texts), seconds, alive)

    async def ends(self, seconds: float = 0.0) -> int:
        """Its exit code, once it has ended by itself."""
        await self.until(self.ended, seconds, alive=False)
        assert self.code is not None
        return self.code

    def kill(self) -> int:
        """SIGKILL, now; its exit code."""
        assert self._process is not None
        self._process.kill()
        self.code = self._process.wait()
        return self.code

    def close(self) -> None:
        """End it, if it runs."""
        if self._process is not None and not self.ended():
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
