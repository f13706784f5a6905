"""Removing files for good: overwritten with zeros, synced to the disk, then unlinked.

Overwriting reaches the blocks of a disk that writes in place. It is no promise on an SSD, on a file system that copies
on write, or in snapshots of one (docs/threats.md).
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from anon.storage.locks import BINARY, CLOSED_IN_CHILDREN, FOLLOWS_NO_LINK
from anon.storage.open_elsewhere import once_closed, unlink_file

_PIECE = bytes(2**20)


def remove_file(path: Path) -> None:
    """Overwrite and unlink a file; nothing when there is none.

    A link is unlinked alone, and so is a file with a second name: that name may be of a backup, which is the owner's.
    """
    try:
        known = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISREG(known.st_mode) and known.st_nlink == 1:
        _overwrite(path, known.st_size)
    unlink_file(path)


def remove_folder(path: Path) -> None:
    """Overwrite and unlink all files below a folder, then the folder; nothing when there is none. Follows no link."""
    if path.is_symlink() or path.is_file():
        return remove_file(path)
    for parent, _folders, names in os.walk(path, followlinks=False):
        for name in names:
            remove_file(Path(parent, name))
    shutil.rmtree(path, ignore_errors=True)


def _overwrite(path: Path, size: int) -> None:
    flags = os.O_WRONLY | FOLLOWS_NO_LINK | CLOSED_IN_CHILDREN | BINARY
    descriptor = once_closed(lambda: os.open(path, flags), path)
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        while size > 0:
            # Unbuffered writes may be short, so what was written counts.
            size -= file.write(_PIECE[:size])
        os.fsync(file.fileno())
