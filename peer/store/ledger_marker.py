"""A home whose ledger is gone is not a new one: what remembers that a peer lived here, and how to begin anew.

The ledger says what was spent for life, so a home that lost it must not begin with a full budget. That a ledger was
made is remembered beside it (`anon.storage.lived`), in the settings and in the header of the data file; each is enough.
Somebody who removes them all has a new home: the budget binds its owner, and nobody else can see what they spent.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from attrs import evolve

from anon.errors import AnonmlError, Damaged, Refused
from anon.storage.durable import connect
from anon.storage.lived import DatabaseMemory
from anon.storage.migration import version_of
from anon.storage.overwriting import remove_file
from anon.text.foreign import whole_place
from anon.text.sentences import say
from peer.data.kept import DATA_KEPT
from peer.store.home import STORE_KEPT, PeerHome
from peer.store.store import Store

_MARK = 0x416E6F4D
"""SQLite's application_id of a data file beside which a ledger was made."""
ASIDE = ".damaged"
BEGAN_ANEW = say("set aside when the home began anew: what was spent before is not known")


def demand_ledger(home: PeerHome) -> None:
    """Raises `Damaged` when this home had a ledger and has none, or an empty one."""
    lived = has_lived(home)
    if lived and version_of(home.store_path, STORE_KEPT) == 0:
        _memory(home).demand(0, None)


def has_lived(home: PeerHome) -> bool:
    """True if a ledger was ever made here."""
    return _memory(home).known() is not None or bool(home.settings().installation) or _is_marked(home.data_path)


def remember(home: PeerHome, installation: str) -> None:
    """A ledger is here. A file that cannot be marked now is marked when the home is opened next."""
    settings = home.settings()
    if settings.installation != installation:
        with suppress(OSError):
            home.write_settings(evolve(settings, installation=installation))
    if home.data_path.exists() and not _is_marked(home.data_path):
        with suppress(AnonmlError, sqlite3.Error), closing(connect(home.data_path, DATA_KEPT, timeout=1)) as connection:
            connection.execute(f"PRAGMA application_id = {_MARK}")


def begin_anew(home: PeerHome) -> Path | None:
    """Make a new ledger in a home whose own is missing or damaged, with all of its budget spent. The damaged file is
    kept beside it under the name that is returned; None when there was none.

    Raises `Refused` where the ledger is whole, or where there was none.
    """
    with home.running():
        if not home.store_path.exists() and not has_lived(home):
            path = whole_place(home.path)
            raise Refused(say("{path}: no peer lived here; there is nothing to begin anew", path=path))
        if _is_whole(home.store_path):
            path = whole_place(home.store_path)
            raise Refused(say("{path}: whole; a new ledger is for a home that lost its own", path=path))
        kept = _moved_aside(home.store_path)
        _memory(home).forget()
        with closing(Store(home.store_path, os.urandom)) as store:
            store.restored((), BEGAN_ANEW, b"begun anew" + os.urandom(8))
            remember(home, store.installation())
        return kept


def _memory(home: PeerHome) -> DatabaseMemory:
    return DatabaseMemory(home.store_path, STORE_KEPT)


def _is_whole(store: Path) -> bool:
    if not store.exists() or store.stat().st_size == 0:
        return False
    try:
        Store(store, os.urandom).close()
    except Damaged:
        return False
    return True


def _moved_aside(store: Path) -> Path | None:
    kept = store.with_name(store.name + ASIDE)
    for ending in ("-wal", "-shm", "-journal"):  # overwritten: they hold secrets as the store does
        remove_file(store.with_name(store.name + ending))
    if not store.exists():
        return None
    return store.replace(kept)


def _is_marked(data: Path) -> bool:
    try:
        with data.open("rb") as file:
            return int.from_bytes(file.read(72)[68:72], "big") == _MARK
    except OSError:
        return False
