"""A second user of a Windows machine opens none of the first one's private files.

Wine makes a mode of an access list as a file is made, and a list of a mode as one is read. So two users of this system,
each with a Windows of its own, are kept apart by the lists that a peer's program sets. Wine hands no list of a folder
on to what is made below it: there the folder alone keeps others out, and Windows' list of the folder says who inherits.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.windows.wine import DISK, ENVIRONMENT, PLACE, WINDOWS, WINE, booted, needs_windows, of_windows

pytestmark = [pytest.mark.process, pytest.mark.timeout(600), needs_windows]
NOBODY = 65534
LET_IN, DENIED = 0, 5
"""Windows' numbers of errors."""
LISTS = """
import ctypes, json, sys
rights = ctypes.WinDLL("advapi32")
found = {}
for path in sys.argv[1:]:
    size, text = ctypes.c_ulong(), ctypes.c_wchar_p()
    rights.GetFileSecurityW(path, 5, None, 0, ctypes.byref(size))
    told = ctypes.create_string_buffer(size.value)
    assert rights.GetFileSecurityW(path, 5, told, size, ctypes.byref(size))
    assert rights.ConvertSecurityDescriptorToStringSecurityDescriptorW(told, 1, 5, ctypes.byref(text), None)
    found[path] = text.value
print(json.dumps(found))
"""
"""Windows' own words for the owner and the list of each path."""


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user of this machine may enter."""
    if os.getuid():
        pytest.skip("another user is played by root alone")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


class Stranger:
    """Another user, with a Windows of its own that has what the one small program needs."""

    def __init__(self, folder: Path) -> None:
        self._program, self._prefix = folder / "stranger.exe", folder / "stranger"
        compiler = ("x86_64-w64-mingw32-gcc", "-O2", "-s", "-municode", "-o", self._program)
        subprocess.run([*compiler, Path(__file__).with_name("stranger.c")], check=True)
        system = self._prefix / "drive_c" / "windows" / "system32"
        system.mkdir(parents=True)
        for name in ("ntdll", "kernel32", "kernelbase", "msvcrt"):
            shutil.copy(DISK / "windows" / "system32" / f"{name}.dll", system)
        for file in (*(PLACE / "prefix").glob("*.reg"), PLACE / "prefix" / ".update-timestamp"):
            shutil.copy(file, self._prefix)
        (self._prefix / "dosdevices").mkdir()
        for drive, place in (("c:", "../drive_c"), ("z:", "/")):
            (self._prefix / "dosdevices" / drive).symlink_to(place)
        for path in (self._prefix, *self._prefix.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    def tries(self, *attempts: tuple[str, Path]) -> list[int]:
        """The error of each verb on its path (`stranger.c`)."""
        words = [word for verb, path in attempts for word in (verb, of_windows(path))]
        environment = {**ENVIRONMENT, "HOME": str(self._prefix), "WINEPREFIX": str(self._prefix)}
        with subprocess.Popen(
            [WINE, self._program, *words], user=NOBODY, group=NOBODY, extra_groups=[], env=environment, cwd="/",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ) as program:  # fmt: skip
            assert program.stdout is not None
            said = program.stdout.read()
        errors = [int(number) for number in said.split()]
        assert len(errors) == len(attempts), said
        return errors


def _lived(shared: Path) -> tuple[list[Path], Path]:
    """The private files that a peer's commands made, and one that its user made for all."""
    person, public, home = shared / "person.csv", shared / "public.txt", shared / "home"
    person.write_text("age\n31\n")

    async def run() -> None:
        backup = shared / "copy.zip"
        await WINDOWS.plain(
            ("peer", "import", person, "--home", home), ("peer", "budget", "--lifetime", "3", "--home", home),
            ("peer", "notify", "off", "--home", home), ("peer", "backup", backup, "--home", home),
            ("peer", "restore", backup, "--home", shared / "second"),
        )  # fmt: skip
        made = await WINDOWS.done("-I", "-S", "-c", "import sys; open(sys.argv[1], 'w').close()", public)
        assert made.code == 0, made.err

    asyncio.run(run())
    below = [path for folder in (home, shared / "second") for path in folder.rglob("*") if path.is_file()]
    return [shared / "copy.zip", *below], public


def _others(paths: Sequence[Path]) -> list[str]:
    """The names of those whose list gives others than SYSTEM, administrators and their owner a right."""

    async def run() -> str:
        return (await WINDOWS.done("-I", "-S", "-c", LISTS, *paths)).out

    found = {}
    for path, said in json.loads(asyncio.run(run())).items():
        owner, _, listed = said.removeprefix("O:").partition("D:")
        named = {entry.rpartition(";")[2] for entry in listed.partition("(")[2].rstrip(")").split(")(")}
        found[path] = named - {"SY", "BA", owner}
    return [path.name for path in paths if found[of_windows(path)]]


def test_a_second_user_opens_no_private_file(shared: Path) -> None:
    """Also none of a home whose folder was opened up later. A file made for all is open: a list keeps them out."""
    with booted():
        private, public = _lived(shared)
        homes = [shared / "home", shared / "second"]
        assert _others([*private, *homes, public]) == [public.name]
    assert {"peer.sqlite", "data.sqlite", "settings.json", "copy.zip", "lock"} <= {path.name for path in private}
    stranger, free = Stranger(shared), shared / "free"
    free.mkdir()
    free.chmod(0o777)
    assert stranger.tries(("r", public), ("l", shared / "*"), ("n", free / "new")) == [LET_IN] * 3
    into = [(verb, home / name) for home in homes for verb, name in (("l", "*"), ("n", "new"), ("d", "lock"))]
    each = [(verb, path) for path in private for verb in "rw"]
    assert stranger.tries(*into, *each) == [DENIED] * len([*into, *each])
    for home in homes:
        home.chmod(0o755)
    assert dict(zip(each, stranger.tries(*each), strict=True)) == dict.fromkeys(each, DENIED)
