"""The rows that the owner takes back from the store. Ledger, receipts, evidence and policy stay
(`peer.run.taking_back`)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from anon.errors import NoRoom
from peer.rules.lifecycle import Event
from peer.store import rows
from peer.store.applying import apply
from peer.store.database.store_file import StoreFile


class ErasingStore(StoreFile):
    """The part of the store that forgets by its owner's word."""

    def blank(self, snapshots: Mapping[bytes, bytes]) -> None:
        """Put these snapshots in the place of the studies' own, where there is one. Finished packets stay."""
        with self._writing("leaving") as connection:
            for study, snapshot in snapshots.items():
                known = (snapshot, study)
                connection.execute("UPDATE studies SET snapshot = ? WHERE study = ? AND snapshot IS NOT NULL", known)

    def leave_all(self, leaving: Mapping[bytes, tuple[Event, bytes | None]], reason: str) -> None:
        """Apply to each study the event by which its owner leaves it, and store its withdrawal if there is one."""
        with self._writing("leaving") as connection:
            for study, (event, withdrawal) in leaving.items():
                apply(connection, study, event, reason)
                if withdrawal is not None:
                    connection.execute("UPDATE studies SET withdrawal = ? WHERE study = ?", (withdrawal, study))

    def forget(self) -> None:
        """Erase the links that wait for an answer, all pauses, and the results that are this member's alone. A
        reservation of no study returns."""
        with self._writing("policy") as connection:
            connection.execute("DELETE FROM received")
            connection.execute("DELETE FROM waiting")
            connection.execute("DELETE FROM pauses")
            for entry in rows.entries_of_no_study(connection):
                rows.write_entry(connection, rows.read_ledger(connection).return_rest(entry), entry)

    def compact(self) -> bool:
        """Write the file anew, without what was erased before, and empty its log; whether that could be done."""
        connection = self._connection
        try:
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("VACUUM")
            return bool(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0)
        except (sqlite3.Error, NoRoom):
            return False
