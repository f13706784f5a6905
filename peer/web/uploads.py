"""Files on their way into the owner's tables: uploaded, looked at, imported or dropped. They stay in the home."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import BinaryIO

from anon.errors import Refused
from anon.storage.private_files import new_private
from anon.text.sentences import say
from peer.store.held_folder import HeldFolder, clear_dead
from peer.store.home import INCOMING

LARGEST = 4 * 2**30
MOST_WAITING = 100
_ROOM = 64 * 2**20
"""The space that must stay free on the disk."""


class Staging:
    """The folder of files that wait. Emptied when the page ends, and at once of what a killed one left.

    At most `waiting` files wait at a time, none larger than `largest` bytes.
    """

    def __init__(
        self, home: Path, random_bytes: Callable[[int], bytes], largest: int = LARGEST, waiting: int = MOST_WAITING
    ) -> None:
        self._root = home / INCOMING
        self._random_bytes = random_bytes
        self._largest, self._waiting = largest, waiting
        self._folder: HeldFolder | None = None
        clear_dead(self._root)

    async def take(self, name_untrusted: str, pieces: AsyncIterator[bytes]) -> str:
        """Store a file that arrives in pieces; its key. Raises `Refused` for one that is too large, or empty."""
        if sum(1 for _ in self._opened().iterdir()) >= self._waiting:
            raise Refused(say(
                "{waiting} files wait already; import them or drop them, then choose this one again",
                waiting=self._waiting,
            ))
        key = self._random_bytes(12).hex()
        folder = self._opened() / key
        folder.mkdir(mode=0o700)
        try:
            with new_private(folder / plain_name(name_untrusted)) as file:
                await self._store(file, pieces)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return key

    async def _store(self, file: BinaryIO, pieces: AsyncIterator[bytes]) -> None:
        size = 0
        async for piece in pieces:
            size += len(piece)
            if size > self._largest:
                raise Refused(say(
                    "larger than {largest:g} GB; import it with `anonml peer import FILE`",
                    largest=self._largest / 2**30,
                ))
            self.demand_room(len(piece))
            file.write(piece)
        if not size:
            raise Refused(say("no file was chosen, or it is empty; choose one"))

    def demand_room(self, more: int = 0) -> None:
        """Raises `Refused` unless the disk keeps enough room after so many bytes more."""
        if shutil.disk_usage(self._root.parent).free < _ROOM + more:
            raise Refused(say("the disk is nearly full; free some space and choose the file again"))

    def file(self, key_untrusted: str) -> Path:
        """The staged file of a key. Raises `Refused` when there is none."""
        folder = self._opened() / key_untrusted
        if not re.fullmatch(r"[0-9a-f]{24}", key_untrusted) or not folder.is_dir():
            raise Refused(say("this file is not waiting any more; choose it again"))
        return next(folder.iterdir())

    def names(self) -> dict[str, str]:
        """The file name of each key that waits."""
        if self._folder is None or not self._folder.path.is_dir():
            return {}
        return {file.parent.name: file.name for file in self._folder.path.glob("*/*")}

    def drop(self, key: str) -> None:
        """Remove a staged file."""
        shutil.rmtree(self.file(key).parent, ignore_errors=True)

    def close(self) -> None:
        """Remove all that waits."""
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    def _opened(self) -> Path:
        if self._folder is not None and not self._folder.path.is_dir():  # another process erased this home
            self.close()
        if self._folder is None:
            self._folder = HeldFolder(self._root, self._random_bytes)
        return self._folder.path


def plain_name(name_untrusted: str) -> str:
    """A file name that is safe here and keeps its words and endings, which the importer goes by."""
    last = re.split(r"[/\\]", name_untrusted)[-1]
    kept = re.sub(r"[^\w.\- ()]", "_", last, flags=re.ASCII).lstrip(".")[-100:]
    return kept or "file"
