"""Backup and restore of a home in one file, without refilling a budget or admitting anyone twice.

A backup is a photograph; the ledger only ever moves on. So a restore assumes the worst about the time since:

* An older ledger never replaces a newer one, nor one of another installation.
* Packets in the outbox keep their bytes: sending them again is no second perturbation. Nothing that could have left
  since the backup is perturbed again: a study that is not settled is not released any more, and its whole reservation
  counts as spent. A clock alone proves nothing: one that is behind, and an aggregator that shows another roster, would
  get a second packet. Only its owner's word lets a study go on whose windows have not opened: that the time is right,
  was right in the lost home, and that no other copy runs.
* The budget that was left counts as spent, because studies joined after the backup may have spent it. The owner may
  raise the lifetime knowingly. A *final* backup closes the home it is taken from, so nothing can happen after it, and
  its restore keeps the budget as it was.
* The invite's admission stays with the enrolment key: the same enrolment is sent again, never a second one.

Two living copies of one home (a final backup restored twice, a backup beside the home it was taken from) cannot know of
each other. So the values on which they would have to agree are fixed before they part. Every slot's random bytes are
fixed when the owner joins (`peer.release.SlotRandomness`). Every backup fixes the snapshot of every study that is
joined and not yet checked. It does so in the home and in the file alike. Whatever is imported later does not move the
answer. From one snapshot, one chain of documents and the same random bytes every copy makes the same packet: the
aggregator learns from the second what it knew from the first.

How long the home is held says nothing about its owner's data. The answers are worked out beside each other, and taken
up when the time is over that the studies' timetables allow. The owner's tables are copied after the home is let go. A
final backup copies them before, because nothing leaves this home any more once the file is written.

An aggregator that lives in the home comes along (`peer.store.backup.aggregator_copy`).

Not covered: two living copies whose aggregator tells each another story, and copies of the folder made by other means
whose data then differ. Their answers are two, each with its own noise, and may cost twice the epsilon. Nor does one
copy know what the other spent of the lifetime budget on studies joined after they joined.
"""

from __future__ import annotations

import math
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path

from anon.errors import AnonmlError, Malformed, Refused
from anon.storage.durable import KeptFile, connect, first_unsound, reading, writing
from anon.storage.lived import DatabaseMemory
from anon.storage.locks import synced
from anon.storage.migration import drop_copies, upgrade, version_of
from anon.storage.open_elsewhere import once_closed, replace_file
from anon.storage.overwriting import remove_file
from anon.storage.private_files import new_private
from anon.text.sentences import Term, attributed
from anon.values import frozen
from peer.data.evaluate import Evaluate, by_deadline, together
from peer.data.kept import DATA_KEPT
from peer.rules.schedule import evaluation_allowance
from peer.store.backup import aggregator_copy as other_role
from peer.store.backup.aggregator_copy import belongs, not_serving
from peer.store.backup.restored import mark_restored
from peer.store.database.integrity import write_digest
from peer.store.database.migrations import SCHEMA, upgrade_home
from peer.store.held_folder import HeldFolder
from peer.store.home import STORE_KEPT, PeerHome
from peer.store.store import Store

UNCONFIRMED = math.inf
"""In place of the time where its owner said nothing of it: any window may have opened since the backup."""
_DATA = "data.sqlite"
_NAMES = ("peer.sqlite", _DATA, "settings.json")
_FINAL = "final"
_KEPT = {"peer.sqlite": STORE_KEPT, _DATA: DATA_KEPT}
AGGREGATOR_KEPT = KeptFile(
    Term(
        "With it are enrolments, packets and published documents of the studies that this home runs; the peer's own "
        "files are not touched"
    ),
    Term("Restore a backup into an empty folder (`anonml peer restore FILE --home FOLDER`)"),
)
BACKUP_KEPT = KeptFile(
    Term("Nothing was restored, and nothing in the home that it was made from is touched"),
    Term(
        "Use another backup; where there is none and the home itself is lost, `anonml peer begin-anew` makes a new "
        "ledger"
    ),
)


@frozen
class Restoration:
    """The result of a restore: whether the backup was final, how many studies it had to close, and whether the home's
    aggregator came with it."""

    final: bool
    barred: int
    aggregator: bool = False


async def backup(
    home: PeerHome,
    file: Path,
    final: bool = False,
    evaluate: Evaluate | None = None,
    tell: Callable[[str], None] = lambda _line: None,
) -> int:
    """Write a consistent copy of the home to a new file (0600). It holds raw data and, without a passphrase, secrets.

    Returns for how many studies the answers were fixed: they are joined, their enrolment is open, and whatever is
    imported from now on does not move them. This takes as long as their timetables allow; `tell` hears how long, and
    then an empty line. `final` closes this home for good once the file is on the disk: it neither joins nor sends then.
    Raises `Refused` for a file that exists, and while another process runs the home.
    """
    _demand_new(home, file)
    upgrade_home(home)
    with ExitStack() as copying:
        with home.running(), not_serving(home.path) if final else nullcontext():
            folder = copying.enter_context(_scratch(home))
            fixed = await _fix_answers(home, evaluate or by_deadline(), tell)
            names = _copied_of(home, folder, [name for name in _NAMES if name != _DATA])
            names += other_role.copied(home.path, folder, _copied)
            if final:
                _write(file, folder, names + _copied_of(home, folder, [_DATA]), final)
                _close_for_good(home)
        if not final:
            _write(file, folder, names + _copied_of(home, folder, [_DATA]), final)
    return fixed


_SEED = 32
"""Bytes of the seed by which too many records are cut. All copies have the records that it drew."""


def _close_for_good(home: PeerHome) -> None:
    """The home and its aggregator are used here no more. The file, which is all there is then, is on the disk."""
    _retire(home.store_path)
    other_role.close_for_good(home.path)


def _demand_new(home: PeerHome, file: Path) -> None:
    if file.exists():
        raise Refused(f"{file.name}: exists already; name a new file")
    if not home.store_path.exists():
        raise Refused(f"{home.path}: there is nothing to back up; name the folder of a peer with --home")


async def _fix_answers(home: PeerHome, evaluate: Evaluate, tell: Callable[[str], None]) -> int:
    """Evaluate now what copies would otherwise evaluate apart; the number of studies it was done for."""
    with closing(Store(home.store_path, os.urandom)) as store:
        parting = [
            joined for joined in store.studies() if joined.unchecked and not joined.has_answers and not joined.refused
        ]
        studies = [joined.manifest for joined in parting]
        allowed = {study: (evaluation_allowance(study.timetable), os.urandom(_SEED)) for study in studies}
        if allowed:
            longest = max(seconds for seconds, _ in allowed.values())
            tell(f"fixing your answers: this takes {longest:.0f} seconds, whatever your data are ...")
        fixed = await together(evaluate, allowed, home.data_path)
        tell("")
        for study, answers in zip(parting, fixed, strict=True):
            store.freeze(study.study, answers)
        return len(parting)


def _copied_of(home: PeerHome, folder: Path, names: list[str]) -> list[str]:
    """Copy those of the home's own files that there are; their names."""
    present = [name for name in names if (home.path / name).exists()]
    for name in present:
        _copied(home.path / name, folder / name)
    return present


def restore(home: PeerHome, file: Path, now: float = UNCONFIRMED) -> Restoration:
    """Put a backup into a home that is empty or, unless the backup is final, older than it. `now`: unix seconds, by
    the owner's word.

    Raises `Refused` when the home was closed by a final backup, or has a newer ledger or another installation's. Raises
    it also if the backup is final and the home has any ledger, and for a newer program's backup. Raises `Malformed` for
    another file.
    """
    home.prepare()
    upgrade_home(home)
    with home.running(), home.uncopied(), _scratch(home) as folder:
        final = _unpacked(file, folder)
        _demand_sound(folder, file)
        incoming = folder / "peer.sqlite"
        upgrade(incoming, SCHEMA, nullcontext)
        if not version_of(incoming):  # an empty file would be made a ledger in which nothing was spent
            raise Malformed(f"{file.name}: not the backup of a peer; name another file")
        drop_copies(incoming)
        if home.store_path.exists():
            _demand_place(home, incoming, final)
        barred = mark_restored(incoming, now, final)
        came = other_role.put(home.path, folder, final)
        _put(home, folder)
    return Restoration(final, barred, came)


@contextmanager
def _scratch(home: PeerHome) -> Iterator[Path]:
    """A folder for copies. The files that a killed process leaves there, secrets included, go when the home is next
    held."""
    scratch = HeldFolder(home.scratch_path, os.urandom)
    try:
        yield scratch.path
    finally:
        scratch.remove()


def _retire(store: Path) -> None:
    with closing(connect(store, STORE_KEPT, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE meta SET value = '1' WHERE key = 'retired'")
        write_digest(connection)
        connection.execute("COMMIT")


def _copied(source: Path, target: Path) -> Path:
    """A consistent copy: SQLite's own backup for databases, which may be in use."""
    if source.suffix != ".sqlite":
        with once_closed(lambda: source.open("rb"), source) as content, new_private(target) as copy:
            shutil.copyfileobj(content, copy)
        return target
    new_private(target).close()
    kept = _KEPT.get(source.name, AGGREGATOR_KEPT)
    with closing(connect(source, kept)) as old, closing(connect(target, kept)) as new:
        if fault := first_unsound(old):
            raise kept.damaged(source, attributed(fault))
        old.backup(new)
        new.execute("PRAGMA journal_mode = DELETE")
    return target


def _write(file: Path, folder: Path, names: list[str], final: bool) -> None:
    """The whole file, on the disk and under its name, or none."""
    try:
        with new_private(file) as raw:
            with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
                for name in names:
                    once_closed(partial(archive.write, folder / name, name), folder / name)
                if final:
                    archive.writestr(_FINAL, b"")
            raw.flush()
            os.fsync(raw.fileno())
    except FileExistsError:
        raise
    except BaseException:
        remove_file(file)
        raise
    synced(file.parent)


def _unpacked(file: Path, folder: Path) -> bool:
    if not zipfile.is_zipfile(file):
        raise Malformed(f"{file.name}: is not a backup, or its end is missing; name another file")
    try:
        with zipfile.ZipFile(file) as archive:
            names = _own_names(archive, file)
            _demand_room(archive, file, shutil.disk_usage(folder).free)
            for name in names - {_FINAL}:
                (folder / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                whole = writing(folder / name, BACKUP_KEPT)
                with archive.open(name) as source, whole, new_private(folder / name) as target:
                    shutil.copyfileobj(source, target)
            return _FINAL in names
    except (AnonmlError, FileNotFoundError, PermissionError):
        raise
    except Exception:  # zipfile and its decompressors raise whatever a damaged file makes of them
        raise BACKUP_KEPT.damaged(file, Term("it cannot be unpacked")) from None


def _own_names(archive: zipfile.ZipFile, file: Path) -> set[str]:
    names = set(archive.namelist())
    if "peer.sqlite" not in names or not all(name in {*_NAMES, _FINAL} or belongs(name) for name in names):
        raise Malformed(f"{file.name}: not the backup of a peer; name another file")
    return names


def _demand_room(archive: zipfile.ZipFile, file: Path, free: int) -> None:
    """The room for all that it says it holds, before a byte is written. No more than that is unpacked."""
    needed = sum(part.file_size for part in archive.infolist())
    if needed > free:
        raise Refused(
            f"{file.name}: takes {needed >> 20:,} MiB when it is unpacked, and {free >> 20:,} MiB are free; free as "
            "much, or name another file"
        )


def _demand_sound(folder: Path, file: Path) -> None:
    """Every database of a backup, before anything of it is put anywhere."""
    for database in folder.rglob("*.sqlite"):
        with closing(connect(database, BACKUP_KEPT)) as connection:
            if fault := first_unsound(connection):
                raise BACKUP_KEPT.damaged(f"{file} ({database.name} in it)", attributed(fault))


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
    with closing(connect(store, STORE_KEPT)) as connection, reading(store, STORE_KEPT, Term("meta")):
        meta = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('installation', 'generation')"))
        return meta["installation"], int(meta["generation"])


def _put(home: PeerHome, folder: Path) -> None:
    """The store goes first and comes last: an interrupted restore leaves the home without one, to be restored again.

    Without its log an older store would be left, in which budget is unspent again. And SQLite would write a log or
    journal of the file that goes into the one that comes. The settings stay until then: they remember a ledger.
    """
    coming = [name for name in _NAMES if (folder / name).exists()]
    for name in coming:
        for ending in ("", "-wal", "-shm", "-journal") if name in _KEPT else ():
            remove_file(home.path / f"{name}{ending}")
    DatabaseMemory(home.store_path, STORE_KEPT).remember(_identity(folder / "peer.sqlite")[1])
    for name in reversed(coming):
        replace_file(home.path / name, folder / name)
    synced(home.path)
