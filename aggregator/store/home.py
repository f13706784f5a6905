"""Where an aggregator keeps its keys and its database: a directory of mode 0700, every secret file of mode 0600."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

from attrs import field, frozen
from nacl.signing import SigningKey

from aggregator.store.duplicate_home import MOVED, demand_here, mark
from anon.credential import SecretKey, generate_secret_key, public_key
from anon.crypto.sealing.opening import Opener
from anon.errors import Damaged, Malformed, Refused, because
from anon.protocols.resolve import StudyKeys
from anon.serving.onion_key import ONION_KEYS
from anon.storage.durable import KeptFile, connect, first_unsound, reading
from anon.storage.home import RESTORED
from anon.storage.locks import locked
from anon.storage.private_files import held_private, new_private, write_private
from anon.text.sentences import Term, attributed
from anon.wire.cbor import decode, encode
from anon.wire.messages import seed_commitment
from anon.wire.strict_json import read_json

DATABASE = "aggregator.sqlite"
DATABASE_URL = "database.url"
"""The address of the database of a home that keeps it on a server; it may hold a password."""
VERSION = 2
"""Of a study's key file."""
_SIGNING = "signing.key"
_STUDIES = "studies"
_LOCK = "lock"
_PLACE = "serving"
_FAULTS = "faults.json"
_DIGESTS, _FINAL = "digests.json", "final"
_RESTORE = "Restore a backup into an empty folder: `anonml aggregator restore FILE --home FOLDER`"
KEPT = KeptFile(
    Term(
        "With it are enrolments, packets and published documents of its studies; the key files beside it are not "
        "touched, and whatever was exported is whole"
    ),
    Term(_RESTORE),
)
"""The database."""
KEYS_KEPT = KeptFile(
    Term("Without it nothing can be signed or opened any more; the database is not touched"), Term(_RESTORE)
)
"""A key's file."""
BACKUP_KEPT = KeptFile(
    Term("Nothing was restored, and nothing in the home that it was made from is touched"),
    Term("Use another backup of the aggregator"),
)


@frozen
class StudySecrets:
    """One study's secrets: sealing key, credential key and the value that opens everything hidden; 32 bytes each.

    The values form a hash chain, so that one commitment in the manifest fixes both. It commits to `seed_value`,
    revealed when the roster closes. That in turn commits to `score_value`, revealed when collection closes.
    """

    sealing_key: bytes = field(repr=False)
    credential_key: SecretKey = field(repr=False)
    score_value: bytes = field(repr=False)

    def __attrs_post_init__(self) -> None:
        if any(len(part) != 32 for part in (self.sealing_key, self.credential_key, self.score_value)):
            raise Malformed("study keys: expected three values of 32 bytes; restore the backup")

    @property
    def seed_value(self) -> bytes:
        """The value that the seed document reveals."""
        return seed_commitment(self.score_value)

    def public(self, aggregator_key: bytes) -> StudyKeys:
        """The manifest's fields for these secrets."""
        sealing = Opener(self.sealing_key).public_key
        return StudyKeys(aggregator_key, sealing, public_key(self.credential_key), seed_commitment(self.seed_value))


def draw_study_secrets(random_bytes: Callable[[int], bytes]) -> StudySecrets:
    """Fresh secrets for one study."""
    return StudySecrets(random_bytes(32), generate_secret_key(random_bytes), random_bytes(32))


ERASED = StudySecrets(bytes(32), SecretKey(bytes(32)), bytes(32))
"""In place of the secrets of a study that is erased: they open nothing that a peer sealed."""


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
        body = encode([VERSION, secrets.sealing_key, secrets.credential_key, secrets.score_value])
        write_private(self.secrets_path(study), body)

    def load_secrets(self, study: bytes) -> StudySecrets:
        """A study's secrets. Raises `Damaged` when they are missing or cannot be read."""
        path = self.secrets_path(study)
        if not path.exists() and (self.path / DATABASE_URL).exists():
            raise Damaged(
                f"{path}: missing. Where the study was published from another copy of this home, copy this file from "
                "there; it is taken up at once. Else restore it from a copy of the folder"
            )
        if not path.exists():
            raise KEYS_KEPT.damaged(path, Term("missing"))
        with reading(path, KEYS_KEPT, Term("study keys")):
            version, sealing, credential, score = decode(path.read_bytes(), "study keys")
            if version != VERSION:
                raise Malformed("study keys: unknown version")
            return StudySecrets(sealing, SecretKey(credential), score)

    def erase_secrets(self, study: bytes) -> None:
        """Overwrite and remove a study's secrets, as far as the disk allows; nothing recorded opens with them later."""
        path = self.secrets_path(study)
        if not path.exists():
            return
        with path.open("r+b") as kept:
            kept.write(bytes(path.stat().st_size))
            kept.flush()
            os.fsync(kept.fileno())
        path.unlink()

    def secrets_path(self, study: bytes) -> Path:
        """The file of a study's secrets."""
        return self.path / _STUDIES / f"{study.hex()}.keys"

    def demand_keys_of(self, study: bytes, secrets: StudySecrets, named: StudyKeys) -> None:
        """Raises `Damaged` for keys that are not those that the study's manifest names."""
        if named.aggregator_key != self.public_key:
            raise KEYS_KEPT.damaged(self.path / _SIGNING, Term("not the key that this home's studies name"))
        with reading(self.secrets_path(study), KEYS_KEPT, Term("study keys")):
            if secrets.public(self.public_key) != named:
                raise ValueError

    def lock(self) -> io.BufferedRandom:
        """Hold the home for one serving command, its further processes included, until the returned file is closed.
        Raises `Refused` when another holds it, and in a home that was moved elsewhere."""
        demand_here(self.path)
        handle = os.fdopen(held_private(self.path / _LOCK), "r+b")
        if not locked(handle.fileno()):
            handle.close()
            raise Refused(f"{self.path}: another process is serving it; stop that one first")
        return handle

    def keep_faults(self, faults: Mapping[bytes, str]) -> None:
        """Tell other processes why studies do not go on."""
        named = {study.hex(): sentence for study, sentence in faults.items()}
        write_private(self.path / _FAULTS, json.dumps(named).encode())

    def kept_faults(self) -> dict[bytes, str]:
        """Why studies did not go on when the home was served last. A file that cannot be read counts as absent."""
        try:
            named = read_json((self.path / _FAULTS).read_bytes())
            return {bytes.fromhex(study): str(sentence) for study, sentence in named.items()}
        except (OSError, ValueError, AttributeError):
            return {}

    @contextmanager
    def place(self, address: str) -> Iterator[None]:
        """Tell other processes of this home, while the block lasts, that it is served at `address` (host:port).

        The kernel drops the lock with the process, so what a killed one told is not believed.
        """
        with os.fdopen(held_private(self.path / _PLACE), "r+") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)  # waits for `served_at` alone
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
        if (path / DATABASE).exists() or (path / DATABASE_URL).exists() or any((path / _STUDIES).iterdir()):
            raise KEYS_KEPT.damaged(key, Term("missing beside a database"))
        write_private(key, random_bytes(32))
    seed = key.read_bytes()
    if len(seed) != 32:
        raise KEYS_KEPT.damaged(key, Term(f"{len(seed)} bytes in place of 32"))
    return Home(path, SigningKey(seed))


def backup(home: Path, target: Path, final: bool = False) -> None:
    """Write keys and a consistent copy of the database into one file of mode 0600. Raises `Refused` if it exists.

    `final` closes this home for good, so that its copy can be served elsewhere; raises `Refused` while it is served.
    It holds every secret and every enrolment: keep it as carefully as the home itself.
    """
    if target.exists():
        raise Refused(f"{target}: already exists; name a new file")
    if (home / DATABASE_URL).exists():
        raise Refused(f"{home}: its database is on a PostgreSQL server; stop the aggregator, then keep the output of "
                      "pg_dump together with a copy of this folder")
    with tempfile.TemporaryDirectory(dir=home) as scratch, _held(home) if final else nullcontext():
        if final:
            mark(home, MOVED)
        try:
            _write_backup(home, Path(scratch), target, final)
        except BaseException:
            if final:
                (home / MOVED).unlink(missing_ok=True)
            raise


def _held(home: Path) -> closing[io.BufferedRandom]:
    # A home whose key is there draws none, so `bytes` is never asked for random ones.
    return closing(open_home(home, bytes).lock())


def _write_backup(home: Path, scratch: Path, target: Path, final: bool) -> None:
    names = [name for name in (_SIGNING, *ONION_KEYS) if (home / name).exists()]
    names += [f"{_STUDIES}/{path.name}" for path in sorted((home / _STUDIES).glob("*.keys"))]
    (scratch / _STUDIES).mkdir()
    for name in names:
        with (home / name).open("rb") as content, new_private(scratch / name) as copy:
            shutil.copyfileobj(content, copy)
    if (home / DATABASE).exists():
        _copy_database(home / DATABASE, scratch / DATABASE)
        names.append(DATABASE)
    with new_private(scratch / _DIGESTS) as listed:
        listed.write(json.dumps({name: _digest(scratch / name) for name in names}).encode())
    with new_private(target) as handle, tarfile.open(fileobj=handle, mode="w") as archive:
        archive.add(scratch / _STUDIES, _STUDIES, recursive=False)
        for name in [_DIGESTS, *names]:
            archive.add(scratch / name, name)
        if final:
            archive.addfile(tarfile.TarInfo(_FINAL))


def _digest(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def restore(source: Path, home: Path) -> None:
    """Unpack a backup into an empty or absent home. Raises `Refused` when there is anything in it.

    Unless the backup is final the home is marked: another copy may be alive, and `serve` asks
    (`aggregator.store.duplicate_home`). Packets accepted after the backup are gone though their senders hold
    acknowledgements: restore only when the home itself is lost. Where documents were published since, others are
    signed under the same numbers; peers that saw the first ones stop and keep both as evidence.
    """
    if home.exists() and any(home.iterdir()):
        raise Refused(f"{home}: not empty; name a directory that does not exist yet")
    try:
        archive = tarfile.open(source, mode="r:")  # noqa: SIM115
    except (tarfile.TarError, OSError) as error:
        raise Malformed(f"{source}: not a backup of an aggregator{because(error)}") from None
    with archive:
        _unpacked(archive, home, source)


def _unpacked(archive: tarfile.TarFile, home: Path, source: Path) -> None:
    """Write the keys and the database of a backup; leaves nothing behind when it is none.

    Each file is written here, and not by `tarfile`: its guard against hostile archives is missing before Python 3.11.4.
    """
    try:
        members = archive.getmembers()
        _demand_own(members, source)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.chmod(0o700)
        (home / _STUDIES).mkdir(mode=0o700)
        for member in members:
            content = archive.extractfile(member) if member.name != _FINAL else None
            if content is not None:
                with content, new_private(home / member.name) as target:
                    shutil.copyfileobj(content, target)
        _demand_whole(home, source)
        if not any(member.name == _FINAL for member in members):
            mark(home, RESTORED)
    except BaseException as error:
        _emptied(home)
        if isinstance(error, tarfile.TarError | ValueError | FileExistsError | EOFError):
            raise Malformed(f"{source}: not a backup of an aggregator{because(error)}") from None
        raise


def _demand_whole(home: Path, source: Path) -> None:
    """Raises `Damaged` unless every file is the one that was backed up."""
    listed = home / _DIGESTS
    if not listed.is_file() or not (home / _SIGNING).is_file():
        raise Malformed(f"{source}: not a backup of an aggregator (it has no key, or no digests of its files)")
    with reading(source, BACKUP_KEPT, Term("digests")):
        for name, digest in dict(read_json(listed.read_bytes())).items():
            if not (home / name).is_file() or _digest(home / name) != digest:
                raise BACKUP_KEPT.damaged(source, Term(f"{name} in it is not what was backed up"))
    listed.unlink()
    if (home / DATABASE).exists():
        with closing(connect(home / DATABASE, BACKUP_KEPT)) as connection:
            if fault := first_unsound(connection):
                raise BACKUP_KEPT.damaged(source, attributed(fault))


def _demand_own(members: list[tarfile.TarInfo], source: Path) -> None:
    if not all(map(_belongs, members)):
        raise Malformed(f"{source}: holds more than an aggregator's keys and database; name another file")


def _belongs(member: tarfile.TarInfo) -> bool:
    """True if a name in a backup is one that `backup` writes: no path leaves the home, nothing is a link."""
    folder, _, name = member.name.rpartition("/")
    if member.isdir():
        return member.name == _STUDIES
    if folder:
        return member.isreg() and folder == _STUDIES and name not in ("", ".", "..")
    return member.isreg() and name in (_SIGNING, *ONION_KEYS, DATABASE, _DIGESTS, _FINAL)


def _emptied(home: Path) -> None:
    """The files that a failed restore has written go, so that it can be tried again."""
    if home.is_dir():
        for path in home.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _copy_database(source: Path, target: Path) -> None:
    new_private(target).close()
    with closing(connect(source, KEPT)) as reader, closing(connect(target, KEPT)) as writer:
        if fault := first_unsound(reader):
            raise KEPT.damaged(source, attributed(fault))
        reader.backup(writer)


