"""The folder of pairing in a home: a lock that says whether it is on, what may be told of it, and its owner's wishes.

The kernel drops the lock with the process that holds it, so whatever is stored, pairing is off once that process is
gone. Nothing stored lets anybody in: no key, link, session or address is among it. Wishes are empty files, which the
process that holds the lock finds within half a second.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs
from attrs import field

from anon.errors import Refused
from anon.storage.locks import locked
from anon.storage.private_files import held_private, made_private, write_private
from anon.study.structuring import make_converter, structure
from anon.values import frozen
from anon.wire.strict_json import read_json
from peer.pairing.phones import PhoneRecord
from peer.store.home import PeerHome

_CONVERTER = make_converter()
_OFF = "wish-off"
_REVOKE = "wish-revoke-"
_NUMBER = re.compile(rf"{_REVOKE}([0-9]{{1,3}})\Z")
_LONGEST_SOCKET = 100
"""Bytes of a socket's path; the system allows 107, macOS 103."""
_SPELLABLE = re.compile(rb"[\x21\x23-\x7e]+\Z")
"""The characters in a word of tor's control port."""
_TEMPORARY = "anonml-pair-"
_PATIENCE = 1.0
_POLL = 0.02


def folder_of(home: PeerHome) -> PairingFolder:
    """The folder of pairing in a home."""
    return PairingFolder(home.path / "pairing")


@frozen
class PairingState:
    """The last stored state: since and until when (unix seconds), and the phones."""

    began: float
    until: float
    phones: tuple[PhoneRecord, ...]


@frozen
class Wishes:
    """The owner's wish for the pairing that is on, from another process."""

    off: bool = False
    revoke: frozenset[int] = frozenset()


@frozen
class PairingFolder:
    """`path`, made with mode 0700 when it is needed."""

    path: Path = field(converter=Path)

    @property
    def tor(self) -> Path:
        """The data directory of pairing's own tor. It keeps its entry guards, and nothing of any pairing."""
        return self.path / "tor"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder for one pairing, without what a killed one left. Raises `Refused` when pairing is on."""
        self._prepare()
        descriptor = self._opened()
        try:
            until = time.monotonic() + _PATIENCE  # somebody may be looking whether it is on
            while not locked(descriptor):
                if time.monotonic() > until:
                    raise Refused("pairing is on already; `anonml peer pair --list` shows it, `--off` ends it")
                time.sleep(_POLL)
            self._clear()
            yield
        finally:
            os.close(descriptor)

    def on(self) -> bool:
        """True if a living process holds the folder."""
        if not self.path.is_dir():
            return False
        descriptor = self._opened()
        try:
            return not locked(descriptor, shared=True)
        finally:
            os.close(descriptor)

    def write(self, state: PairingState) -> None:
        """Store what may be told, readable by the owner only."""
        write_private(self.path / "state.json", json.dumps(attrs.asdict(state)).encode())

    def state(self) -> PairingState | None:
        """The last stored state of a pairing that is on or was; None when there never was one. Raises `Malformed`."""
        try:
            data = read_json((self.path / "state.json").read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:
            data = None
        return structure(_CONVERTER, data, PairingState, "pairing/state.json")

    def wish_off(self) -> None:
        """Ask the pairing that is on to end. Raises `Refused` when none is."""
        self._wish(_OFF)

    def wish_revoked(self, number: int) -> None:
        """Ask the pairing that is on to revoke a phone. Raises `Refused` when none is."""
        self._wish(f"{_REVOKE}{number}")

    def wishes(self) -> Wishes:
        """The stored wish. A wish stays until the pairing ends: asking twice changes nothing."""
        names = [path.name for path in self.path.iterdir()]
        numbers = [match[1] for match in map(_NUMBER.match, names) if match]
        return Wishes(_OFF in names, frozenset(map(int, numbers)))

    @contextmanager
    def socket(self) -> Iterator[Path]:
        """Where the listener's socket goes: here, or in a new private folder where tor could not spell its path."""
        inside = os.fsencode(self.path.resolve() / "sock")
        if len(inside) <= _LONGEST_SOCKET and _SPELLABLE.match(inside):
            try:
                yield Path(os.fsdecode(inside))
            finally:
                Path(os.fsdecode(inside)).unlink(missing_ok=True)
            return
        with tempfile.TemporaryDirectory(prefix=_TEMPORARY, ignore_cleanup_errors=True) as folder:
            yield Path(folder) / "sock"

    def _wish(self, name: str) -> None:
        if not self.on():
            raise Refused("pairing is off; there is nothing to end or revoke")
        made_private(self.path / name)

    def _prepare(self) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)

    def _opened(self) -> int:
        return held_private(self.path / "on")

    def _clear(self) -> None:
        for path in self.path.iterdir():
            if path.name.startswith("wish-") or path.name == "sock":
                with suppress(OSError):
                    path.unlink()
        shutil.rmtree(self.path / "incoming", ignore_errors=True)
