"""Every kind of file that lies in a peer's home, and what becomes of it when its owner erases everything.

A new kind is entered here: a test lives through all that a peer does and finds nothing in the home that is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path


class Fate(StrEnum):
    """The fate of a file or a folder when everything is erased."""

    STAYS = "stays"
    GOES = "goes"
    UNKNOWN = "unknown"  # not this program's: the owner is told, and decides


_WITHIN = ("pairing",)
"""Folders whose entries have fates of their own."""
FATES = {
    # ledger, receipts, evidence and policy; what else is in it goes (`peer.run.taking_back`)
    "peer.sqlite": Fate.STAYS,
    "peer.sqlite-wal": Fate.STAYS,
    "peer.sqlite-shm": Fate.STAYS,
    "peer.sqlite-journal": Fate.STAYS,  # of a transaction that was cut off
    "peer.sqlite.v*": Fate.GOES,  # copies that an upgrade kept (`anon.storage.migration`)
    "peer.sqlite.damaged": Fate.GOES,  # a ledger in whose place a new one began (`peer.store.ledger_marker`)
    "peer.sqlite.lived": Fate.STAYS,  # how far the ledger came (`anon.storage.lived`)
    "peer.sqlite.lived.*": Fate.GOES,  # a killed writer's
    "data.sqlite*": Fate.GOES,
    "settings.json": Fate.STAYS,
    "*.json.new": Fate.GOES,  # a killed writer's
    "told.json": Fate.GOES,  # what notifications told of
    "lock": Fate.STAYS,
    "scratch": Fate.GOES,  # a killed backup's copies
    "incoming": Fate.GOES,  # files on their way into tables
    "people": Fate.GOES,  # rows of a prediction for people that was killed
    "tor": Fate.STAYS,  # the entry guards: new ones for no reason make an owner easier to find
    "pairing/on": Fate.STAYS,
    "pairing/tor": Fate.STAYS,
    "pairing/*": Fate.GOES,
    "aggregator": Fate.STAYS,  # the other role
    "aggregator.moved": Fate.STAYS,
}
"""Name or pattern -> fate; the first that fits."""


def fate_of(name: str) -> Fate:
    """The fate of an entry of a home; entries of `pairing` with the folder's name before theirs."""
    return next((fate for pattern, fate in FATES.items() if fnmatchcase(name, pattern)), Fate.UNKNOWN)


def entries(home: Path, fate: Fate) -> Iterator[Path]:
    """The names in a home that have this fate."""
    for path in sorted(home.iterdir()):
        within = sorted(path.iterdir()) if path.name in _WITHIN and path.is_dir() else (path,)
        yield from (entry for entry in within if fate_of(entry.relative_to(home).as_posix()) is fate)
