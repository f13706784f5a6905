"""Where an aggregator keeps its keys and its database: a directory of mode 0700, every secret file of mode 0600."""

from __future__ import annotations

import fcntl
import io
import os
import sqlite3
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import field, frozen
from nacl.public import PrivateKey
from nacl.signing import SigningKey

from anon.credential import SecretKey, generate_secret_key, public_key
from anon.encoding import decode, encode
from anon.errors import Malformed, Refused
from anon.messages import seed_commitment
from anon.resolve import StudyKeys

DATABASE = "aggregator.sqlite"
ONION_KEY = "onion.key"
_SIGNING = "signing.key"
_STUDIES = "studies"
_LOCK = "lock"
_PLACE = "serving"
_VERSION = 1


@frozen
class StudySecrets:
    """One study's secrets: sealing key, credential key and the value that opens everything hidden; 32 bytes each.

    The values form a hash chain, so that one commitment in the manifest fixes both: it commits to `seed_value`,
    revealed when the roster closes, which in turn commits to `score_value`, revealed when collection closes.
    """

    sealing_key: bytes = field(repr=False)
    credential_key: SecretKey = field(repr=False)
    score_value: bytes = field(repr=False)

    def __attrs_post_init__(self) -> None:
        if any(len(part) != 32 for part in (self.sealing_key, self.credential_key, self.score_value)):
            raise Malformed("study keys: expected three values of 32 bytes; restore the backup")

    @property
    def seed_value(self) -> bytes:
        """What the seed document reveals."""
        return seed_commitment(self.score_value)

    def public(self, aggregator_key: bytes) -> StudyKeys:
        """What the manifest says of these secrets."""
        sealing = bytes(PrivateKey(self.sealing_key).public_key)
        return StudyKeys(aggregator_key, sealing, public_key(self.credential_key), seed_commitment(self.seed_value))


def draw_study_secrets(random_bytes: Callable[[int], bytes]) -> StudySecrets:
    """Fresh secrets for one study."""
    return StudySecrets(random_bytes(32), generate_secret_key(random_bytes), random_bytes(32))


@frozen
class Home:
    """An aggregator's directory. Make it with `open_home`."""

    path: Path
    signing_key: SigningKey = field(repr=False)

    @property
    def public_key(self) -> bytes:
        """The Ed25519 key that peers pin, 32 bytes."""
        return bytes(self.signing_key.verify_key)

    @property
    def database(self) -> Path:
        """The database's file."""
        return self.path / DATABASE

    def store_secrets(self, study: bytes, secrets: StudySecrets) -> None:
        """Keep a study's secrets, durably, before its manifest exists anywhere."""
        body = encode([_VERSION, secrets.sealing_key, secrets.credential_key, secrets.score_value])
        write_secret(self.path / _STUDIES / f"{study.hex()}.keys", body)

    def load_secrets(self, study: bytes) -> StudySecrets:
        """A study's secrets. Raises `Refused` when they are missing, `Malformed` when damaged."""
        path = self.path / _STUDIES / f"{study.hex()}.keys"
        if not path.exists():
            raise Refused(f"{path}: missing; restore the backup that holds this study's keys")
        fields = decode(path.read_bytes(), "study keys")
        if not isinstance(fields, list) or len(fields) != 4 or fields[0] != _VERSION:
            raise Malformed("study keys: not in the expected form; restore the backup")
        return StudySecrets(fields[1], SecretKey(fields[2]), fields[3])

    def lock(self) -> io.BufferedRandom:
        """Hold the home for one serving process until the returned file is closed. Raises `Refused` when it is held."""
        handle = (self.path / _LOCK).open("a+b")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            handle.close()
            raise Refused(f"{self.path}: another process is serving it; stop that one first") from None
        return handle

    @contextmanager
    def place(self, address: str) -> Iterator[None]:
        """Tell other processes of this home, while the block lasts, that it is served at `address` (host:port).

        The kernel drops the lock with the process, so what a killed one told is not believed.
        """
        with (self.path / _PLACE).open("a+") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)  # waits for nobody but a glance of `served_at`
            handle.truncate(0)
            handle.write(address)
            handle.flush()
            yield

    def served_at(self) -> str:
        """The address at which a process serves this home now; empty when none does."""
        try:
            with (self.path / _PLACE).open() as handle:
                try:
                    fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    return handle.read()
        except FileNotFoundError:
            pass
        return ""


def open_home(path: Path, random_bytes: Callable[[int], bytes]) -> Home:
    """The home at `path`, made with a fresh signing key when there is none yet."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)
    (path / _STUDIES).mkdir(mode=0o700, exist_ok=True)
    key = path / _SIGNING
    if not key.exists():
        if (path / DATABASE).exists():
            raise Refused(f"{key}: missing beside a database; restore the backup that holds it")
        write_secret(key, random_bytes(32))
    seed = key.read_bytes()
    if len(seed) != 32:
        raise Malformed(f"{key}: expected 32 bytes, got {len(seed)}; restore the backup")
    return Home(path, SigningKey(seed))


def backup(home: Path, target: Path) -> None:
    """Write keys and a consistent copy of the database into one file of mode 0600. Raises `Refused` if it exists.

    It holds every secret and every enrolment: keep it as carefully as the home itself.
    """
    if target.exists():
        raise Refused(f"{target}: already exists; name a new file")
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        copy = Path(scratch) / DATABASE
        if (home / DATABASE).exists():
            _copy_database(home / DATABASE, copy)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as handle, tarfile.open(fileobj=handle, mode="w") as archive:
            archive.add(home / _SIGNING, _SIGNING)
            archive.add(home / _STUDIES, _STUDIES)
            if (home / ONION_KEY).exists():
                archive.add(home / ONION_KEY, ONION_KEY)
            if copy.exists():
                archive.add(copy, DATABASE)


def restore(source: Path, home: Path) -> None:
    """Unpack a backup into an empty or absent home. Raises `Refused` when there is anything in it.

    What was accepted after the backup is gone though its senders hold acknowledgements: restore only when the home
    itself is lost. Where documents were published since, others are signed under the same numbers; peers that saw the
    first ones stop and keep both as evidence.
    """
    if home.exists() and any(home.iterdir()):
        raise Refused(f"{home}: not empty; name a directory that does not exist yet")
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    home.chmod(0o700)
    try:
        with tarfile.open(source) as archive:
            archive.extractall(home, filter="data")
    except (tarfile.TarError, OSError) as error:
        raise Malformed(f"{source}: not a backup of an aggregator ({type(error).__name__})") from None
    for path in home.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)


def _copy_database(source: Path, target: Path) -> None:
    reader, writer = sqlite3.connect(source), sqlite3.connect(target)
    try:
        reader.backup(writer)
    finally:
        reader.close()
        writer.close()


def write_secret(path: Path, body: bytes) -> None:
    """Write a new file of mode 0600 completely or not at all."""
    scratch = path.with_name(path.name + ".new")
    scratch.unlink(missing_ok=True)
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as handle:
        handle.write(body)
        handle.flush()
        os.fsync(handle.fileno())
    scratch.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
