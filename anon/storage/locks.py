"""Locks on open files that end with their process, and folders put on the disk: POSIX's way and the way of Windows.

Windows has no shared locks of this kind: there a shared one keeps others out too. It locks one byte far beyond a file's
end, because it would keep others from reading locked bytes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if sys.platform != "win32":
    import fcntl
else:
    import msvcrt

BINARY: int = getattr(os, "O_BINARY", 0)
CLOSED_IN_CHILDREN: int = getattr(os, "O_CLOEXEC", 0) or getattr(os, "O_NOINHERIT", 0)
FOLLOWS_NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)
"""Flags of `os.open` where the system has them; else 0. Windows opens a file as text without the first."""
_FAR = 2**30


def locked(descriptor: int, shared: bool = False) -> bool:
    """True if the file's lock is this descriptor's now; it is let go when that is closed. Never waits."""
    try:
        _lock(descriptor, shared)
    except OSError:
        return False
    return True


if sys.platform != "win32":

    def _lock(descriptor: int, shared: bool) -> None:
        # A record lock of POSIX is lost when any descriptor of its file is closed (fcntl(2)); this one is not.
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)

else:

    def _lock(descriptor: int, shared: bool) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)


def synced(folder: Path) -> None:
    """Put a folder's names on the disk. Windows opens no folder; there the file system's journal does it."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
