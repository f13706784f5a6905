"""Folders for what is the owner's and passes: held by the process that made them, and removed once it has ended.

The kernel lets go of a lock with the process that holds it, so a killed process's folder is known for what it is.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


class HeldFolder:
    """A new folder (0700) below `root`, which is made with it; what killed processes left there goes before."""

    def __init__(self, root: Path, random_bytes: Callable[[int], bytes]) -> None:
        clear_dead(root)
        while True:
            self.path = root / random_bytes(8).hex()
            root.mkdir(mode=0o700, exist_ok=True)
            self.path.mkdir(mode=0o700)
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)
            if self.path.is_dir():  # another process may have taken it for a dead one's before it was held
                return
            os.close(self._descriptor)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._descriptor)


def clear_dead(root: Path) -> None:
    """Remove the folders in `root` whose processes have ended, and let those of living ones be."""
    for left in root.iterdir() if root.is_dir() else ():
        with suppress(OSError):  # BlockingIOError: it is held
            descriptor = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()
            finally:
                os.close(descriptor)
