"""The aggregator's part of a peer's home, in backup and restore: copied as it is, read by nobody here.

An aggregator that lives twice, or that goes back in time, signs two documents under one number, and honest peers then
hold evidence against it. So a final backup closes the part here (its folder is renamed, which every command of the
aggregator respects), and a restore never replaces a part that is there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from anon.errors import Refused
from anon.storage.home import AGGREGATOR, MOVED, RESTORED
from anon.storage.lived import ENDING
from anon.storage.locks import locked
from anon.storage.migration import KEPT
from anon.storage.private_files import held_private, made_private

_STUDIES = "studies"
_LOCK = "lock"
_PASSING = ("-wal", "-shm", ".new", ENDING, KEPT)


@contextmanager
def not_serving(home: Path) -> Iterator[None]:
    """Keep the aggregator's part, if there is one, from being served meanwhile. Raises `Refused` while it is."""
    if not (home / AGGREGATOR).is_dir():
        yield
        return
    descriptor = held_private(home / AGGREGATOR / _LOCK)
    try:
        if not locked(descriptor):
            raise Refused("this home's aggregator is being served; stop it before a final backup")
        yield
    finally:
        os.close(descriptor)


def close_for_good(home: Path) -> None:
    """The aggregator's part is not used here any more: another copy of it will be."""
    if (home / AGGREGATOR).is_dir():
        (home / AGGREGATOR).rename(home / MOVED)


def copied(home: Path, folder: Path, copy: Callable[[Path, Path], Path]) -> list[str]:
    """Copy the part into `folder`, databases first: a study's keys are there before the database knows it. Returns the
    names below `folder`."""
    place = home / MOVED if (home / MOVED).is_dir() else home / AGGREGATOR
    files = [source for source in (*place.glob("*"), *(place / _STUDIES).glob("*")) if _lasting(source)]
    names = []
    for source in sorted(files, key=lambda file: file.suffix != ".sqlite"):
        name = f"{AGGREGATOR}/{source.relative_to(place).as_posix()}"
        (folder / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        copy(source, folder / name)
        names.append(name)
    return names


def belongs(name: str) -> bool:
    """True if a name in a backup is one of the aggregator's part."""
    top, *rest = name.split("/")
    plain = all(part and not part.startswith(".") for part in rest)
    return top == AGGREGATOR and plain and (len(rest) == 1 or (len(rest) == 2 and rest[0] == _STUDIES))


def put(home: Path, folder: Path, final: bool) -> bool:
    """Move an unpacked part into a home that has none. True if there was one to move.

    Unless the backup is final the part is marked: its original may be alive, and it is not served before staff say
    that it is not.
    """
    if not (folder / AGGREGATOR).is_dir() or (home / AGGREGATOR).exists() or (home / MOVED).exists():
        return False
    for path in (folder / AGGREGATOR, *(folder / AGGREGATOR).rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    if not final:
        made_private(folder / AGGREGATOR / RESTORED)
    shutil.move(folder / AGGREGATOR, home / AGGREGATOR)
    return True


def _lasting(path: Path) -> bool:
    return path.is_file() and path.name != _LOCK and not path.name.endswith(_PASSING)
