"""The owner's data file, as a fault of it is told."""

from __future__ import annotations

from anon.storage.durable import Kept

RESTORE = "Restore a backup into an empty folder (`anonml peer restore FILE --home FOLDER`)"
DATA_KEPT = Kept(
    "With it are the tables that you imported; ledger, studies and packets that wait are another file and are not "
    "touched. Studies go on, and count as missing what cannot be read",
    f"{RESTORE}, or remove the file and import your data again",
    own=False,
)
