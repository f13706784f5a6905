"""Where a peer lives: one folder that only its owner can enter."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
from attrs import field, frozen

from anon.errors import Malformed, Refused
from anon.study.structure import make_converter, structure

_CONVERTER = make_converter()


class RunElsewhere(Refused):
    """Another process runs this home."""


@frozen
class Settings:
    """Machine settings; nothing here changes the outcome of a study. Seconds throughout.

    `enrol_spread`: enrolment leaves at a random time within so long. `head_checks`: how often the heads are fetched
    again after the first time; the last is shortly before sending. `check_inclusion`: download the transcript and
    look for the own packet. `inclusion_patience`: when to give that up, after the study's end. `salt`: of the
    passphrase, in hexadecimal; empty when there is none. `sealed`: the key of the studies' secrets, under it.
    `notifications`: whether the desktop may tell the owner that something is (`peer.desktop.telling`).
    """

    enrol_spread: float = 0.0
    head_checks: int = 2
    check_inclusion: bool = True
    inclusion_patience: float = 7 * 86400.0
    salt: str = ""
    sealed: str = ""
    notifications: bool = False

    def __attrs_post_init__(self) -> None:
        if self.enrol_spread < 0 or self.inclusion_patience < 0 or not 0 <= self.head_checks <= 20:
            raise Malformed("settings: expected numbers of 0 or more, and at most 20 head checks")


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
            raise Refused(f"{self.path}: is, or lies below, a file; choose a folder with --home") from None
        except OSError as error:
            raise Refused(f"{self.path}: cannot be made ({error.strerror}); choose a folder with --home") from None
        if self.path.stat().st_uid != os.getuid():
            raise Refused(f"{self.path}: belongs to another user; choose another folder with --home")
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            raise Refused(f"{self.path}: cannot be written to; choose another folder with --home, or `chmod u+rwx` it")
        if self.path.stat().st_mode & 0o077:
            self.path.chmod(0o700)

    def settings(self) -> Settings:
        """The stored settings, or the defaults. Raises `Malformed` for unknown keys or wrong kinds."""
        try:
            text = self.settings_path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return Settings()
        try:
            data = json.loads(text)
        except ValueError:
            raise Malformed(f"{self.settings_path.name}: not JSON; correct or delete it") from None
        return structure(_CONVERTER, data, Settings, self.settings_path.name)

    def write_settings(self, settings: Settings) -> None:
        """Store the settings durably."""
        self.prepare()
        write_private(self.settings_path, json.dumps(attrs.asdict(settings), indent=2).encode() + b"\n")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Hold the home for one runner. Raises `RunElsewhere` when another process runs it."""
        self.prepare()
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RunElsewhere(
                    f"{self.path}: another process runs this peer; stop it, or leave it to it"
                ) from None
            shutil.rmtree(self.scratch_path, ignore_errors=True)  # a killed backup's
            yield
        finally:
            os.close(descriptor)


def write_private(path: Path, content: bytes) -> None:
    """Replace a file by new content, readable by its owner only: all of it or nothing survives a crash."""
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
