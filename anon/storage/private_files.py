"""Files for their owner alone: made with mode 0600 before the first byte is in them, whatever the umask says.

On Windows an access list stands in place of the mode (`anon.storage.access_lists`).

Every file of this program that holds something private is made here; `tests/attacks/test_private_files.py` names the
few that are not, and why. A folder of mode 0700 around them protects as well, but folders are copied and opened up.

Not protected: against root and other programs of the same user. File systems that keep neither modes nor lists are
outside this promise.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO

from anon.storage.locks import BINARY, CLOSED_IN_CHILDREN, synced
from anon.storage.open_elsewhere import once_closed, replace_file

if sys.platform == "win32":
    from anon.storage import access_lists

MODE = 0o600
_FLAGS = BINARY | CLOSED_IN_CHILDREN


def new_private(path: Path) -> BinaryIO:
    """A new file to write to. Raises `FileExistsError` for anything that is there, a dangling link too."""
    if sys.platform == "win32":
        return os.fdopen(access_lists.opened(path, _FLAGS, new=True), "wb")
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, MODE), "wb")


def new_private_text(path: Path) -> TextIOWrapper:
    """A new text file, UTF-8, whose line ends are written as given. Raises `FileExistsError`."""
    return TextIOWrapper(new_private(path), encoding="utf-8", newline="")


def held_private(path: Path) -> int:
    """A descriptor of a file that may be there: to lock it, or to have it made before a library opens it. Raises
    `Refused` where another program shares it with nobody."""
    return once_closed(lambda: open_private(path), path)


def open_private(path: Path) -> int:
    """The same, tried once. Raises `OSError`."""
    if sys.platform == "win32":
        return access_lists.opened(path, _FLAGS, new=False)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, MODE)
    # The mode above counts only where the file is new.
    if os.fstat(descriptor).st_mode & 0o077:
        os.fchmod(descriptor, MODE)
    return descriptor


def made_private(path: Path) -> None:
    """Make an empty file if there is none, and close one that is there to others."""
    os.close(held_private(path))


def close_folder(path: Path) -> None:
    """Close a folder that is there to others, and what will be made in it. Raises `OSError`.

    Windows lets others pass a folder that they may not list: all that lies in it already is closed as well.
    """
    if sys.platform == "win32":
        if access_lists.close_to_others(path, access_lists.ON_FOLDERS):
            for below in path.rglob("*"):
                inheriting = access_lists.ON_FOLDERS if below.is_dir() else access_lists.ON_FILES
                access_lists.close_to_others(below, inheriting)
    elif path.stat().st_mode & 0o077:
        path.chmod(0o700)


def write_private(path: Path, content: bytes) -> None:
    """Replace a file by new content: all of it or nothing survives a crash. Raises `Refused` (see `replace_file`)."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    _written(fresh, content)
    replace_file(path, fresh)
    synced(path.parent)


def keep_first(path: Path, content: bytes) -> None:
    """Make a file with this content if there is none. Of several processes at once the first one's stays, whole."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    try:
        _written(fresh, content)
        with suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
    synced(path.parent)


def _written(path: Path, content: bytes) -> None:
    with new_private(path) as file:
        file.write(content)
        file.flush()
        # Before it gets its name: else a crash may leave the name without its content.
        os.fsync(file.fileno())
