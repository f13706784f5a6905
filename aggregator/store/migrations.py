"""How the aggregator's database moves on from one schema to the next (`anon.storage.migration`). The tables are those
of `studies`, `enrolments` and `packets`.

Numbers up to 7 are of programs before the first release. No step leads on from them.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from aggregator.store.home import KEPT, Home
from anon.storage.migration import Schema, upgrade

SCHEMA = Schema(8, {}, KEPT)


def upgrade_home(home: Home) -> Path | None:
    """Bring a home's database up to date; the copy that was kept, None when there was nothing to do.

    Raises `Refused` for the database of a newer program or of one before the first release, and while an older one
    serves the home.
    """
    return upgrade(home.database, SCHEMA, lambda: closing(home.lock()))
