"""Backup and restore of a home in one file, without refilling a budget or admitting anyone twice.

A backup is a photograph; the ledger only ever moves on. So a restore assumes the worst about the time since:

* An older ledger never replaces a newer one, nor one of another installation.
* What is in the outbox keeps its bytes: sending them again is no second perturbation. Nothing that could have left
  since the backup is perturbed again: a study whose windows may have opened is not released any more, and its whole
  reservation counts as spent.
* The budget that was left counts as spent, because studies joined after the backup may have spent it. The owner may
  raise the lifetime knowingly. A *final* backup closes the home it is taken from, so nothing can happen after it, and
  its restore keeps the budget as it was.
* The invite's admission stays with the enrolment key: the same enrolment is sent again, never a second one.

Two living copies of one home (a final backup restored twice, a backup beside the home it was taken from) cannot know
of each other. So what they would have to agree on is fixed before they part: every slot's random bytes when the owner
joins (`peer.release.Drawn`), and by every backup the snapshot of every study that is joined and not yet checked, in the
home and in the file alike. Whatever is imported later does not move the answer. From one snapshot, one chain of
documents and the same random bytes every copy makes the same packet: the aggregator learns from the second what it knew
from the first.

An aggregator that lives in the home comes along (`peer.other_role`).

Not covered: two living copies whose aggregator tells each another story, and copies of the folder made by other means
whose data then differ. Their answers are two, each with its own noise, and may cost twice the epsilon. Nor does one
copy know what the other spent of the lifetime budget on studies joined after they parted.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

from attrs import frozen

from anon.errors import Malformed, Refused
from anon.migration import drop_copies, upgrade
from peer import other_role
from peer.checking import evaluated
from peer.home import PeerHome
from peer.migrations import SCHEMA, upgrade_home
from peer.other_role import belongs, not_serving
from peer.restored import mark_restored
from peer.schedule import LONGEST_ALLOWANCE
from peer.store import Store

_NAMES = ("peer.sqlite", "data.sqlite", "settings.json")
_FINAL = "final"


@frozen
class Restored:
    """What a restore did: whether the backup was final, how many studies it had to close, and whether the home's
    aggregator came with it."""

    final: bool
    barred: int
    aggregator: bool = False


def backup(home: PeerHome, file: Path, final: bool = False) -> int:
    """Write a consistent copy of the home to a new file (0600). It holds raw data and, without a passphrase, secrets.

    Returns for how many studies the answers were fixed: they are joined, their enrolment is open, and whatever is
    imported from now on does not move them. `final` closes this home for good: it neither joins nor sends any more.
    Raises `Refused` for a file that exists, and while another process runs the home.
    """
    if file.exists():
        raise Refused(f"{file.name}: exists already; name a new file")
    if not home.store_path.exists():
        raise Refused(f"{home.path}: there is nothing to back up; name the folder of a peer with --home")
    upgrade_home(home)
    with home.running(), _scratch(home) as folder, not_serving(home.path) if final else nullcontext():
        fixed = _fix_answers(home)
        if final:
            _retire(home.store_path)
            other_role.close_for_good(home.path)
        names = [name for name in _NAMES if (home.path / name).exists()]
        for name in names:
            _copied(home.path / name, folder / name)
        _write(file, folder, names + other_role.copied(home.path, folder, _copied), final)
    return fixed


def _fix_answers(home: PeerHome) -> int:
    """Evaluate now what copies would otherwise evaluate apart; the number of studies it was done for."""
    with closing(Store(home.store_path, os.urandom)) as store:
        parting = [study for study in store.studies() if study.unchecked and study.snapshot is None]
        for study in parting:
            store.freeze(study.study, evaluated(study.manifest, home.data_path, LONGEST_ALLOWANCE).to_bytes())
        return len(parting)


def restore(home: PeerHome, file: Path, now: float) -> Restored:
    """Put a backup into a home that is empty or, unless the backup is final, older than it. `now` is unix seconds.

    Raises `Refused` when the home was closed by a final backup, or has a ledger that is newer or of another
    installation, or has any and the backup is final, and for a newer program's backup; `Malformed` for another file.
    """
    home.prepare()
    upgrade_home(home)
    with home.running(), _scratch(home) as folder:
        final = _unpacked(file, folder)
        incoming = folder / "peer.sqlite"
        upgrade(incoming, SCHEMA, nullcontext)
        drop_copies(incoming)
        if home.store_path.exists():
            _demand_place(home, incoming, final)
        barred = mark_restored(incoming, now, final)
        came = other_role.put(home.path, folder)
        _put(home, folder)
    return Restored(final, barred, came)


@contextmanager
def _scratch(home: PeerHome) -> Iterator[Path]:
    """A folder for copies. What a killed process leaves there, secrets included, goes when the home is next held."""
    home.scratch_path.mkdir(mode=0o700)
    try:
        yield home.scratch_path
    finally:
        shutil.rmtree(home.scratch_path)


def _retire(store: Path) -> None:
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("UPDATE meta SET value = '1' WHERE key = 'retired'")


def _copied(source: Path, target: Path) -> Path:
    """A consistent copy: SQLite's own backup for databases, which may be in use."""
    if source.suffix != ".sqlite":
        shutil.copyfile(source, target)
        return target
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
        new.execute("PRAGMA journal_mode = DELETE")
    return target


def _write(file: Path, folder: Path, names: list[str], final: bool) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as raw:
        with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                archive.write(folder / name, name)
            if final:
                archive.writestr(_FINAL, b"")
        raw.flush()
        os.fsync(raw.fileno())


def _unpacked(file: Path, folder: Path) -> bool:
    try:
        with zipfile.ZipFile(file) as archive:
            names = set(archive.namelist())
            if "peer.sqlite" not in names or not all(one in {*_NAMES, _FINAL} or belongs(one) for one in names):
                raise Malformed(f"{file.name}: not the backup of a peer; name another file")
            for name in names - {_FINAL}:
                (folder / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with archive.open(name) as source, (folder / name).open("wb") as target:
                    shutil.copyfileobj(source, target)
                (folder / name).chmod(0o600)
            return _FINAL in names
    except (OSError, zipfile.BadZipFile):
        raise Malformed(f"{file.name}: cannot be read as the backup of a peer; name another file") from None


def _demand_place(home: PeerHome, incoming: Path, final: bool) -> None:
    with closing(Store(home.store_path, os.urandom)) as present:
        if present.retired():
            raise Refused("this home was closed by a final backup; restore into an empty folder instead (--home)")
    if final:
        raise Refused("a final backup goes into an empty folder, and this one has a ledger; name another with --home")
    theirs, ours = _identity(incoming), _identity(home.store_path)
    if theirs[0] != ours[0]:
        raise Refused("this home has a ledger of its own; restore into a new folder instead")
    if theirs[1] < ours[1]:
        raise Refused("the ledger here is newer than the backup; restoring would give spent budget back. Keep this one")


def _identity(store: Path) -> tuple[str, int]:
    with closing(sqlite3.connect(store)) as connection:
        found = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('installation', 'generation')"))
    return found["installation"], int(found["generation"])


def _put(home: PeerHome, folder: Path) -> None:
    """The store last: an interrupted restore leaves the home without one, to be restored again."""
    for leftover in ("peer.sqlite-wal", "peer.sqlite-shm", "data.sqlite-wal", "data.sqlite-shm"):
        (home.path / leftover).unlink(missing_ok=True)
    for name in reversed(_NAMES):
        if (folder / name).exists():
            (folder / name).replace(home.path / name)
    descriptor = os.open(home.path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
