"""Folders for what is the owner's and passes: held by the process that made them, and removed once it has ended.

The kernel lets go of a lock with the process that holds it, so a killed process's folder is known for what it is.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from anon.storage.locks import CLOSED_IN_CHILDREN, FOLLOWS_NO_LINK, locked

_IN_A_FILE = sys.platform == "win32"
"""Windows opens no folder: a file in it is locked instead."""
_POLL_SECONDS = 0.01


class HeldFolder:
    """A new folder (0700) below `root`, which is made with it; what killed processes left there goes before."""

    def __init__(self, root: Path, random_bytes: Callable[[int], bytes]) -> None:
        clear_dead(root)
        while True:
            self.path = root / random_bytes(8).hex()
            root.mkdir(mode=0o700, exist_ok=True)
            self.path.mkdir(mode=0o700)
            self._descriptor = _held(self.path)
            if self.path.is_dir():  # another process may have taken it for a dead one's before it was held
                return
            os.close(self._descriptor)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        if _IN_A_FILE:
            os.close(self._descriptor)
        shutil.rmtree(self.path, ignore_errors=True)
        if not _IN_A_FILE:
            os.close(self._descriptor)


def clear_dead(root: Path) -> None:
    """Remove the folders in `root` whose processes have ended, and let those of living ones be."""
    for left in root.iterdir() if root.is_dir() else ():
        with suppress(OSError):
            descriptor = os.open(_place(left), os.O_RDWR if _IN_A_FILE else os.O_RDONLY | FOLLOWS_NO_LINK)
            dead = locked(descriptor)
            if _IN_A_FILE:  # Windows removes no file that is open
                os.close(descriptor)
            if dead:
                shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()
            if not _IN_A_FILE:
                os.close(descriptor)


def _held(folder: Path) -> int:
    """A descriptor that holds the folder until it is closed."""
    flags = os.O_RDWR | os.O_CREAT if _IN_A_FILE else os.O_RDONLY
    descriptor = os.open(_place(folder), flags | CLOSED_IN_CHILDREN, 0o600)
    while not locked(descriptor, shared=True):  # another process looks if it is dead
        time.sleep(_POLL_SECONDS)
    return descriptor


def _place(folder: Path) -> Path:
    return folder / "held" if _IN_A_FILE and folder.is_dir() else folder
