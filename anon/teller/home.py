"""A teller's folder: its lasting key, its journal, and a lock that one process holds."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from attrs import field, frozen

from anon.errors import Refused
from anon.nacl import SigningKey
from anon.storage.durable import Kept
from anon.storage.locks import locked
from anon.storage.private_files import held_private, write_private

DATABASE, SIGNING, LOCK = "teller.sqlite", "signing.key", "lock"
_RESTORE = "The studies that it serves cannot go on: a copy of before would sign and add noise a second time"
KEYS_KEPT = Kept("Without it nothing can be signed any more; the journal is not touched", _RESTORE)


@frozen
class TellerHome:
    """A folder of mode 0700. There is no backup of it, on purpose: a second copy could answer a second time."""

    path: Path
    key: SigningKey = field(repr=False)

    @property
    def journal(self) -> Path:
        """The journal's file."""
        return self.path / DATABASE

    def lock(self) -> int:
        """A descriptor that keeps other processes out until it is closed. Raises `Refused` if one is in."""
        descriptor = held_private(self.path / LOCK)
        if not locked(descriptor):
            os.close(descriptor)
            raise Refused(f"{self.path}: another process serves this teller; stop it first")
        return descriptor


def open_home(path: Path, random_bytes: Callable[[int], bytes]) -> TellerHome:
    """The home at `path`, made with a fresh key when there is none. Raises `Damaged` for a key that is gone or cut."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)
    key = path / SIGNING
    if not key.exists():
        if (path / DATABASE).exists():
            raise KEYS_KEPT.damaged(key, "missing beside a journal")
        write_private(key, random_bytes(32))
    seed = key.read_bytes()
    if len(seed) != 32:
        raise KEYS_KEPT.damaged(key, f"{len(seed)} bytes in place of 32")
    return TellerHome(path, SigningKey(seed))
