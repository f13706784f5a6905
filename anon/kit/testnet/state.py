"""The folder in which a network of the command line says that it runs: a lock its owner holds, and what it tells."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import asdict, field

from anon.errors import Refused
from anon.storage.private_files import held_private, write_private
from anon.values import frozen
from anon.wire.strict_json import read_json

LOCK = "owner.lock"
TOLD = "network.json"
LOG = "owner.log"
NETWORK = "net"
OURS = frozenset((LOCK, TOLD, f"{TOLD}.new", LOG, NETWORK))


@frozen
class NetworkStatement:
    """The owner's statement about its network. `since` is Unix time, `seconds` from start to the first onion answer."""

    phase: str = field()
    pid: int
    since: float
    address: str
    torrc: str = ""
    socks: str = ""
    relays: int = 0
    seconds: float = 0.0
    attempts: int = 0
    troubles: list[str] = field(factory=list)
    tors: dict[str, int] = field(factory=dict)

    @phase.validator
    def _known(self, _: object, phase: str) -> None:
        if phase not in ("starting", "ready"):
            raise ValueError(f"expected a phase, got {phase!r}")

    @property
    def pids(self) -> list[int]:
        """All processes of the network, its owner first."""
        return [self.pid, *self.tors.values()]


def default_folder() -> Path:
    """Under the user's runtime directory, or in the temporary one under the user's number."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "anonml-testnet"
    return Path(tempfile.gettempdir()) / f"anonml-testnet-{os.getuid()}"


@frozen
class NetworkState:
    """One folder. The kernel (the lock) is asked if an owner lives, never of what a dead one left written."""

    folder: Path

    @property
    def network(self) -> Path:
        """The tors' files."""
        return self.folder / NETWORK

    @property
    def log(self) -> Path:
        """The last words of an owner in the background."""
        return self.folder / LOG

    def prepare(self) -> None:
        """Make the folder. Raises `Refused` when it is another's, or holds something else."""
        self.folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        self.demand_ours()
        if any(path.name not in OURS for path in self.folder.iterdir()):
            raise Refused(f"{self.folder} holds other files; name an empty folder with --folder")
        self.folder.chmod(0o700)

    def demand_ours(self) -> None:
        """Raises `Refused` for a folder of another user's, who could have made it first in a folder that all share. The
        processes it tells of would be ended, and the torrc it tells of used."""
        try:
            status = self.folder.lstat()
        except FileNotFoundError:
            return
        if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
            raise Refused(f"{self.folder} belongs to another user; name another folder with --folder")

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Be the owner, over an empty folder. Raises `Refused` while another is."""
        self.prepare()
        with os.fdopen(held_private(self.folder / LOCK), "r+") as lock:
            if not _taken(lock.fileno(), tries=10):
                raise Refused(f"a private network runs in {self.folder} already; `anonml testnet status` or `down`")
            self.clean()
            try:
                yield
            finally:
                self.clean()

    def is_owned(self) -> bool:
        """True if an owner lives. Raises `Refused` for another user's folder."""
        self.demand_ours()
        try:
            lock = (self.folder / LOCK).open("r+")
        except OSError:
            return False
        with lock:
            return not _taken(lock.fileno())

    def clean(self) -> None:
        """Remove what a network left. Only for the owner, or when there is none."""
        shutil.rmtree(self.network, ignore_errors=True)
        (self.folder / TOLD).unlink(missing_ok=True)

    def tell(self, standing: NetworkStatement) -> None:
        """Replace what is told, whole."""
        write_private(self.folder / TOLD, json.dumps(asdict(standing)).encode() + b"\n")

    def told(self) -> NetworkStatement | None:
        """The owner's last statement, if any. Raises `Refused` for another user's folder."""
        self.demand_ours()
        try:
            value: dict[str, Any] = read_json((self.folder / TOLD).read_bytes())
            return NetworkStatement(**value)
        except (OSError, ValueError, TypeError):
            return None


def _taken(descriptor: int, tries: int = 1) -> bool:
    """True if the lock could be had. Who asks whether it is free holds it for an instant, hence the tries."""
    for last in range(tries):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if last + 1 < tries:
                time.sleep(0.05)
        else:
            return True
    return False
