"""A Windows desktop of its own, by Wine on an X server: an empty disk C:, a registry, a tray, and no Python.

Links are handed to a script in place of a browser, which keeps the last one. Pages are then walked in Chromium.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import define
from PIL import Image, ImageGrab

from tests.docs.walking import until
from tests.support.browsing import missing
from tests.windows.wine import ENVIRONMENT, WINE, make_disk

OUT = Path(__file__).parent / "out"
SIZE = (1000, 700)
SHIM = Path(__file__).with_name("bcryptprimitives.c")
COMPILER = "x86_64-w64-mingw32-gcc"
LONGEST = 600
PROGRAMS = (COMPILER, "Xvfb", "xdotool")
ICON = (SIZE[0] - 10, SIZE[1] - 10)
"""Of the tray, whose one icon is in the corner."""


def lacking() -> str:
    """The part of the system without which there is no such desktop, or an empty text."""
    if not WINE.exists():
        return "wine is missing: install it (Debian: apt-get install wine64)"
    absent = [name for name in PROGRAMS if not shutil.which(name)]
    return f"missing: {', '.join(absent)}" if absent else missing()


@define
class Desktop:
    """One user's, below `folder`."""

    folder: Path
    display: str

    @property
    def user(self) -> Path:
        """The user's folder on C:."""
        (found,) = (one for one in (self.folder / "prefix/drive_c/users").iterdir() if one.name != "Public")
        return found

    @property
    def home(self) -> Path:
        """A peer's."""
        return self.user / ".anonml-peer"

    @property
    def environment(self) -> dict[str, str]:
        named = {"WINEPREFIX": str(self.folder / "prefix"), "HOME": str(self.folder), "DISPLAY": self.display}
        return ENVIRONMENT | named

    def run(self, *words: str | Path, code: int = 0) -> str:
        """A Windows program that ends with this exit code; what it said."""
        done = subprocess.run(
            [WINE, *words], env=self.environment, capture_output=True, check=False, timeout=LONGEST,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        said = (done.stdout + done.stderr).decode("utf-8", "replace")
        assert done.returncode == code, f"{words}: {done.returncode}: {said}"
        return said

    def begin(self, *words: str | Path) -> subprocess.Popen[bytes]:
        """A Windows program that goes on. Its output is dropped."""
        nothing = subprocess.DEVNULL
        return subprocess.Popen([WINE, *words], env=self.environment, stdin=nothing, stdout=nothing, stderr=nothing)

    def opened(self) -> str:
        """The next address that a program opens in the browser."""
        kept = self.folder / "opened"
        until(kept.exists, "a page opens in the browser", LONGEST)
        link = kept.read_text("utf-8")
        kept.unlink()
        return link

    def picture(self, name: str) -> None:
        """Keep the corner of the screen in which the tray is."""
        OUT.mkdir(exist_ok=True)
        file, (right, bottom) = OUT / f"{name}.png", SIZE
        ImageGrab.grab(xdisplay=self.display).save(file)
        cut(file, (right - 460, bottom - 180, right, bottom))

    def point(self, x: int, y: int, button: int) -> None:
        """Click there; 3 is the right button."""
        words = ["xdotool", "mousemove", str(x), str(y), "click", str(button)]
        subprocess.run(words, env=self.environment, check=True, timeout=60)

    def close(self) -> None:
        """End every program of this desktop."""
        server = WINE.with_name("wineserver64")
        subprocess.run([server, "-k"], env=self.environment, check=False, timeout=60)
        subprocess.run([server, "-w"], env=self.environment, check=False, timeout=60)


@contextmanager
def desktop(folder: Path) -> Iterator[Desktop]:
    """A fresh one until the block ends."""
    folder.mkdir()
    browser = folder / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {folder}/opened.new && mv {folder}/opened.new {folder}/opened\n')
    browser.chmod(0o700)
    with _screen() as display:
        fresh = Desktop(folder, display)
        try:
            make_disk(fresh.environment)
            system = folder / "prefix/drive_c/windows/system32"
            compiler = (COMPILER, "-shared", "-O2", "-s", "-nostdlib", "-e", "0")
            words = [*compiler, "-o", system / "bcryptprimitives.dll", SHIM, "-ladvapi32"]
            subprocess.run(words, check=True)
            wide, high = SIZE
            for key, name, value in (
                ("WineBrowser", "Browsers", str(browser)),
                ("Explorer", "Desktop", "AnonML"),
                ("Explorer\\Desktops", "AnonML", f"{wide}x{high}"),
            ):
                fresh.run("reg", "add", rf"HKCU\Software\Wine\{key}", "/v", name, "/d", value, "/f")
            yield fresh
        finally:
            fresh.close()


@contextmanager
def _screen() -> Iterator[str]:
    words = ["Xvfb", "-displayfd", "1", "-screen", "0", "1024x768x24"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        number = server.stdout.readline().strip()
        try:
            yield f":{number}"
        finally:
            server.terminate()


def is_calm(file: Path, seconds: float = 60) -> bool:
    """True once this file is gone."""
    deadline = time.monotonic() + seconds
    while file.exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    return not file.exists()


def cut(file: Path, box: tuple[int, int, int, int]) -> None:
    """Replace a picture by a part of it, in few colours: docs/pictures has copies of these."""
    with Image.open(file) as whole:
        part = whole.convert("RGB").crop(box)
    part.quantize(48, dither=Image.Dither.NONE).save(file, optimize=True)


def environment_of(home: Path) -> dict[str, str]:
    """Of commands on this system: a home of their own, and this process's Tor if there is one."""
    return {**os.environ, "HOME": str(home), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
