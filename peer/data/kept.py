"""The owner's data file, as a fault of it is told."""

from __future__ import annotations

from anon.storage.durable import KeptFile
from anon.text.sentences import say

RESTORE = say("Restore a backup into an empty folder (`anonml peer restore FILE --home FOLDER`)")
DATA_KEPT = KeptFile(
    say(
        "With it are the tables that you imported; ledger, studies and packets that wait are another file and are not "
        "touched. Studies go on, and count as missing what cannot be read"
    ),
    say("{restore}, or remove the file and import your data again", restore=RESTORE),
    own=False,
)
