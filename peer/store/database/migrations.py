"""How the peer's store moves on from one schema to the next (`anon.storage.migration`). New stores begin with
`schema.sql`.

Numbers up to 12 are of programs before the first release. No step leads on from them.
"""

from __future__ import annotations

from pathlib import Path

from anon.storage.migration import Schema, upgrade
from peer.store.home import STORE_KEPT, PeerHome

SCHEMA = Schema(13, {}, STORE_KEPT)


def upgrade_home(home: PeerHome) -> Path | None:
    """Bring a home's store up to date; the copy that was kept, None when there was nothing to do.

    Raises `Refused` for a home of a newer program or of one before the first release, and while another process runs
    the home.
    """
    return upgrade(home.store_path, SCHEMA, home.running)
