"""Commands under Windows' own Python, by Wine: each is a Windows process with pipes for its input and output.

Wine is not Windows. It has Windows' paths, code pages, registry, file locks, processes and job objects in its own way,
on the network and the clock of this machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import pytest

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
CODE_PAGE = "cp1252"
"""Of a usual Windows in the West, and so of its pipes."""
needs_windows = pytest.mark.skipif(
    not (PLACE / "made").exists(), reason="`make .venv/windows/made` first: Windows' Python is not installed"
)


def of_windows(path: Path) -> str:
    """The path as a Windows program names it: this system is its disk Z:."""
    if path.is_relative_to(DISK):
        return "C:\\" + "\\".join(path.relative_to(DISK).parts)
    return "Z:" + str(PurePosixPath(path)).replace("/", "\\")


async def start(*words: str | Path, **more: str) -> asyncio.subprocess.Process:
    """`python WORDS` on Windows; `more`: of its environment. Without a standard input Wine gives no output either."""
    pipe, told = asyncio.subprocess.PIPE, [of_windows(one) if isinstance(one, Path) else one for one in words]
    return await asyncio.create_subprocess_exec(
        WINE, PYTHON, *told, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT, env=ENVIRONMENT | more
    )


async def attempts(*commands: Sequence[str | Path], code_page: str = CODE_PAGE, **more: str) -> list[Done]:
    """Each `anonml COMMAND` on Windows, whatever comes of it, one after the other in one process. `more`: of its
    environment."""
    told = [[code_page, [of_windows(word) if isinstance(word, Path) else word for word in one]] for one in commands]
    done = await finish(await start("-m", COMMANDS, json.dumps(told), **more), longest=LONGEST)
    assert done.code == 0, done.err or done.out
    return [Done(**one) for one in json.loads(done.out)]


async def plain(*commands: Sequence[str | Path], **more: str) -> list[str]:
    """Each `anonml COMMAND` on Windows, which must succeed; its text, with Unix' ends of lines."""
    found = await attempts(*commands, **more)
    for done, words in zip(found, commands, strict=True):
        assert done.code == 0, f"anonml {' '.join(map(str, words))}: {done.err or done.out}"
    return [done.out.replace("\r\n", "\n") for done in found]
