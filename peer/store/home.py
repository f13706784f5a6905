"""Where a peer lives: one folder that only its owner can enter."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
from attrs import field

from anon.crypto.nacl import passphrase_key
from anon.errors import Malformed, Refused, of_the_system
from anon.storage.durable import KeptFile, reading
from anon.storage.locks import locked
from anon.storage.open_elsewhere import read_file
from anon.storage.private_files import close_folder, held_private, write_private
from anon.study.structuring import make_converter, structure
from anon.text.foreign import whole_place
from anon.text.sentences import Term, attributed, say
from anon.values import frozen
from anon.wire.strict_json import read_json
from peer.data.kept import RESTORE
from peer.rules.study_secrets import Vault
from peer.store.held_folder import clear_dead

_CONVERTER = make_converter()
FORK_SECONDS = 0.2
"""How long a lock may outlive its holder: in a program that is being started, until it is."""
INCOMING = "incoming"
"""The folder of files on their way into tables."""
PEOPLE = "people"
"""The folder of the rows that a prediction for people reads."""
_HEXADECIMAL = re.compile(r"(?:[0-9a-f]{2})*")
STORE_KEPT = KeptFile(
    say(
        "With it are the ledger of your budget, your studies and the packets that wait; nothing leaves from this "
        "home. Your tables (data.sqlite) and settings are other files and are not touched"
    ),
    say(
        "{restore}; without a backup, `anonml peer begin-anew` makes a new ledger whose budget counts as spent",
        restore=RESTORE,
    ),
)
SETTINGS_KEPT = KeptFile(
    say(
        "With it are machine settings and, in a home with a passphrase, the key of the studies' secrets; ledger and "
        "tables are other files and are not touched"
    ),
    say("{restore}; in a home without a passphrase the file can be removed, and the defaults hold", restore=RESTORE),
)


class RunElsewhere(Refused):
    """Another process runs this home."""


@frozen
class Settings:
    """Machine settings; nothing here changes the outcome of a study. Seconds throughout.

    `enrol_spread`: enrolment leaves at a random time within so long. `head_checks`: how often the heads are fetched
    again after the first time; the last is shortly before sending. `check_inclusion`: download the transcript and
    look for the own packet. `inclusion_patience`: when to give that up, after the study's end. `salt`: of the
    passphrase, in hexadecimal; empty when there is none. `sealed`: the key of the studies' secrets, under it.
    `notifications`: whether the desktop may tell the owner that something is (`peer.run.notices`).
    `installation`: of the ledger that was made here (`peer.store.ledger_marker`); no setting.
    """

    enrol_spread: float = 0.0
    head_checks: int = 4
    check_inclusion: bool = True
    inclusion_patience: float = 7 * 86400.0
    salt: str = ""
    sealed: str = ""
    notifications: bool = False
    installation: str = ""

    def __attrs_post_init__(self) -> None:
        if self.enrol_spread < 0 or self.inclusion_patience < 0 or not 0 <= self.head_checks <= 20:
            raise Malformed(say("settings: expected numbers of 0 or more, and at most 20 head checks"))
        if not all(_HEXADECIMAL.fullmatch(text) for text in (self.salt, self.sealed, self.installation)):
            raise Malformed(say("settings: salt, sealed and installation are hexadecimal"))


@frozen
class PeerHome:
    """The folder (0700) with the store, the owner's tables and the settings (0600 each)."""

    path: Path = field(converter=Path)

    @property
    def store_path(self) -> Path:
        """Ledger, studies and outbox."""
        return self.path / "peer.sqlite"

    @property
    def data_path(self) -> Path:
        """The owner's imported tables."""
        return self.path / "data.sqlite"

    @property
    def settings_path(self) -> Path:
        """Machine settings, JSON."""
        return self.path / "settings.json"

    @property
    def scratch_path(self) -> Path:
        """Copies while a backup is written or restored; empty at all other times."""
        return self.path / "scratch"

    def prepare(self) -> None:
        """Make the folder if there is none, and close it to others.

        Raises `Refused` when it cannot be made or written to, is a file, or another user owns it.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise Refused(
                say("{path}: is, or lies below, a file; choose a folder with --home", path=whole_place(self.path))
            ) from None
        except OSError as error:
            raise Refused(
                say(
                    "{path}: cannot be made ({strerror}); choose a folder with --home",
                    path=whole_place(self.path),
                    strerror=of_the_system(error),
                )
            ) from None
        if hasattr(os, "getuid") and self.path.stat().st_uid != os.getuid():  # Windows has access lists instead
            raise Refused(
                say("{path}: belongs to another user; choose another folder with --home", path=whole_place(self.path))
            )
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            raise Refused(
                say(
                    "{path}: cannot be written to; choose another folder with --home, or `chmod u+rwx` it",
                    path=whole_place(self.path),
                )
            )
        try:
            close_folder(self.path)
        except OSError as error:
            raise Refused(
                say(
                    "{path}: cannot be closed to other users of this machine ({strerror}); choose another folder with "
                    "--home",
                    path=whole_place(self.path), strerror=of_the_system(error),
                )
            ) from None

    def settings(self) -> Settings:
        """The stored settings, or the defaults. Raises `Damaged` for what is no JSON object, `Malformed` for unknown
        keys or wrong kinds."""
        try:
            text = read_file(self.settings_path)
        except FileNotFoundError:
            return Settings()
        with reading(self.settings_path, SETTINGS_KEPT, Term("not JSON")):
            data = dict(read_json(text))
        try:
            return structure(_CONVERTER, data, Settings, self.settings_path.name)
        except Malformed as fault:
            told = attributed(str(fault))
            raise Malformed(say("{fault}; correct the file, or restore a backup", fault=told)) from None

    def write_settings(self, settings: Settings) -> None:
        """Store the settings durably."""
        self.prepare()
        write_private(self.settings_path, json.dumps(attrs.asdict(settings), indent=2).encode() + b"\n")

    @contextmanager
    def unpaired(self) -> Iterator[None]:
        """Hold the folder of pairing, if there is one. Raises `Refused` while a phone is let in."""
        if not (self.path / "pairing").is_dir():
            yield
            return
        descriptor = held_private(self.path / "pairing" / "on")
        try:
            if not _locked_within(descriptor, 1.0):  # another process may be looking whether it is on
                raise Refused(say("pairing is on already; `anonml peer pair --list` shows it, `--off` ends it"))
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Hold the home for one runner. Raises `RunElsewhere` when another process runs it."""
        self.prepare()
        descriptor = held_private(self.path / "lock")
        try:
            if not _locked_within(descriptor, FORK_SECONDS):
                raise RunElsewhere(
                    say(
                        "{path}: another process runs this peer; stop it, or leave it to it",
                        path=whole_place(self.path),
                    )
                )
            for folder in (self.scratch_path, self.path / INCOMING, self.path / PEOPLE):
                clear_dead(folder)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def uncopied(self) -> Iterator[None]:
        """For whoever holds the home: no backup of it begins. Raises `Refused` while one still copies its tables."""
        if self.scratch_path.is_dir() and any(self.scratch_path.iterdir()):
            raise Refused(
                say(
                    "{path}: a backup of it is being written; wait for its end and repeat this",
                    path=whole_place(self.path),
                )
            )
        yield


def _locked_within(descriptor: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not (held := locked(descriptor)) and time.monotonic() < until:
        time.sleep(0.02)
    return held


def key_of(settings: Settings, passphrase: str | None, random_bytes: Callable[[int], bytes]) -> bytes | None:
    """The key of the home's secrets, None when they are plain. Raises `Refused` for a missing or wrong passphrase."""
    if not settings.salt:
        return None
    if passphrase is None:
        raise Refused(say("the secrets of this home are under a passphrase; give it"))
    vault = Vault(passphrase_key(passphrase, bytes.fromhex(settings.salt)), random_bytes)
    return vault.open(bytes.fromhex(settings.sealed))
