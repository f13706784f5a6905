"""A teller's folder: its lasting key, its name and address, its journal, and a lock that one process holds."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection
from pathlib import Path

from attrs import field

from anon.crypto.nacl import SigningKey
from anon.errors import InvalidValue, Refused
from anon.sharing.arrangement import KEY_SIZE, LONGEST_TEXT
from anon.storage.durable import KeptFile, reading
from anon.storage.locks import locked
from anon.storage.private_files import held_private, write_private
from anon.text.foreign import fault
from anon.text.sentences import Term
from anon.values import frozen
from anon.wire.addresses import teller_address_fault
from anon.wire.strict_json import read_json

DATABASE, SIGNING, LOCK, PLACE = "teller.sqlite", "signing.key", "lock", "place.json"
ALLOWED = "allowed.json"
_RESTORE = "The studies that it serves cannot go on: a copy of before would sign and add noise a second time"
KEYS_KEPT = KeptFile(Term("Without it nothing can be signed any more; the journal is not touched"), Term(_RESTORE))

ALLOWED_KEPT = KeptFile(
    Term("It names the aggregators that may ask"),
    Term("Stop the teller, remove the file, and name them again: `anonml teller allow`"),
)
PLACE_KEPT = KeptFile(
    Term("It holds the teller's name and address, and nothing secret"), Term("Run `anonml teller init` again")
)


@frozen
class Place:
    """How studies name a teller: its name, and host:port of its onion service or of this machine. Raises
    `InvalidValue`."""

    name: str
    address: str

    def __attrs_post_init__(self) -> None:
        if set("<>") & set(self.name):
            raise InvalidValue(f"teller's name: write the name by which people know you in place of {self.name}")
        if not 0 < len(self.name) <= LONGEST_TEXT or fault(self.name):
            raise InvalidValue(f"teller's name: expected a line of at most {LONGEST_TEXT} plain characters")
        if wrong := teller_address_fault(self.address):
            raise InvalidValue(f"teller's address: {wrong}")


@frozen
class TellerHome:
    """A folder of mode 0700. There is no backup of it, on purpose: a second copy could answer a second time."""

    path: Path
    key: SigningKey = field(repr=False)

    @property
    def journal(self) -> Path:
        """The journal's file."""
        return self.path / DATABASE

    def keep_place(self, place: Place) -> None:
        """The name and address from now on. Studies that were countersigned under others keep those."""
        write_private(self.path / PLACE, json.dumps({"name": place.name, "address": place.address}).encode())

    def place(self) -> Place:
        """Raises `Damaged` for a file that cannot be read."""
        with reading(self.path / PLACE, PLACE_KEPT, Term("its content")):
            told = read_json((self.path / PLACE).read_bytes())
            return Place(told["name"], told["address"])

    def allow(self, keys: Collection[bytes] | None) -> None:
        """The aggregators that may ask for offers and countersignatures from now on; None: any. Raises `InvalidValue`.
        """
        if keys is None:
            (self.path / ALLOWED).unlink(missing_ok=True)
            return
        if any(len(key) != KEY_SIZE for key in keys):
            raise InvalidValue(f"an aggregator's key: expected {KEY_SIZE} bytes, as `anonml aggregator init` prints it")
        write_private(self.path / ALLOWED, json.dumps(sorted(key.hex() for key in keys)).encode())

    def allowed(self) -> frozenset[bytes] | None:
        """The keys of these aggregators; None where none was ever named. Raises `Damaged` for a file that cannot be
        read."""
        file = self.path / ALLOWED
        if not file.exists():
            return None
        with reading(file, ALLOWED_KEPT, Term("its content")):
            keys = [bytes.fromhex(key) for key in read_json(file.read_bytes())]
            if any(len(key) != KEY_SIZE for key in keys):
                raise ValueError("a key of another length")
            return frozenset(keys)

    def is_served(self) -> bool:
        """True if a process holds the lock: it serves this teller, or leaves a study just now."""
        if not (self.path / LOCK).exists():
            return False
        try:
            os.close(self.lock())
        except Refused:
            return True
        return False

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
            raise KEYS_KEPT.damaged(key, Term("missing beside a journal"))
        write_private(key, random_bytes(32))
    seed = key.read_bytes()
    if len(seed) != 32:
        raise KEYS_KEPT.damaged(key, Term(f"{len(seed)} bytes in place of 32"))
    return TellerHome(path, SigningKey(seed))


def existing_home(path: Path, random_bytes: Callable[[int], bytes]) -> TellerHome:
    """The home at `path`, when a teller lives there. Raises `Refused`: a mistyped path must not make a new one."""
    if not (path / PLACE).is_file():
        raise Refused(f"{path}: no teller here; check --home, or make one: `anonml teller init --name NAME`")
    return open_home(path, random_bytes)
