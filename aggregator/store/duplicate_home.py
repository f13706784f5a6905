"""Two living copies of one aggregator equivocate: how a copy is kept from being served beside the other.

A backup that is not final may have a living original, so the home that it is restored to is not served until staff say
that they know. While a study was under way, what came after the backup is lost, and they have to say that they know
this, too. A database on a server is known by its place, and by a token of each time that the home was served from it:
one from before lacks the last. A final backup closes its home. Over Tor one address belongs to both copies: before a
restored home announces it, whoever answers there already is the other one.

Not noticed: two copies on loopback or behind different onion addresses, and folders that were copied by other means.
Peers that see both stories stop and keep the proof (docs/protocol.md).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from pathlib import Path

from aggregator.store.database import Database
from anon.errors import Refused, Unreachable
from anon.route import Route
from anon.storage.durable import KeptFile, reading
from anon.storage.home import RESTORED
from anon.storage.private_files import write_private
from anon.text.sentences import Term

MOVED = "moved"
"""The mark of a home that a final backup closed."""
SERVED = "served"
"""The token of the last time that the home was served from a database on a server."""
TOKEN_BYTES = 16
MOST_BYTES = 2 * 1024 * 1024
SERVED_KEPT = KeptFile(
    Term("It knows an older database by its lack of the last token"), Term("Remove it if the database was not restored")
)
_LOG = logging.getLogger(__name__)


def mark(home: Path, name: str) -> None:
    """Leave a mark in a home, durably."""
    write_private(home / name, b"")


def demand_here(home: Path) -> None:
    """Raises `Refused` in a home that was moved elsewhere."""
    if (home / MOVED).exists():
        raise Refused(f"{home}: this aggregator was moved elsewhere by a final backup; use the restored one")


class RestoredWord(IntEnum):
    """The word of staff about what was restored."""

    NOTHING = 0
    ALONE = 1
    """Every other copy is stopped for good."""
    INCOMPLETE = 2
    """And what came to studies after the backup is lost."""


def demand_known(place: object, known: int, lacking: Sequence[bytes]) -> None:
    """Raises `Refused` for what was restored at `place`, unless staff say that no other copy is alive. `lacking`: the
    studies that were under way."""
    if known < RestoredWord.ALONE:
        raise Refused(
            f"{place}: restored from a backup, and another copy of this aggregator may be alive. Two that are served "
            "tell peers two stories, and each peer that sees both stops and keeps the proof. Stop the other for good, "
            "then serve this one with --restored"
        )
    named = ", ".join(study.hex()[:8] for study in lacking)
    if lacking and known < RestoredWord.INCOMPLETE:
        raise Refused(
            f"{place}: restored from a backup while studies were under way ({named}). What came after the backup is "
            "lost: who sent it was charged and is missing in the result, and a document that was published since would "
            "be signed a second time. Tell the members, and publish these studies anew. To serve all the same, with "
            "results of what is left, add --incomplete"
        )
    if lacking:
        _LOG.warning("studies %s: what came after the backup is lost, and missing in their results", named)
    _LOG.warning("%s: served though restored from a backup; another copy must never be served again", place)


async def demand_alone(
    here: Path, database: Database, known: int, lacking: Sequence[bytes], random_bytes: Callable[[int], bytes]
) -> None:
    """Raises `Refused` for a home that was moved, and for what was restored (`demand_known`). Both know from now on
    that this home is served."""
    demand_here(here)
    original = await database.is_original(last_served(here))
    if not original or (here / RESTORED).exists():
        demand_known(here if original else database.place, known, lacking)
    if database.shared:
        token = random_bytes(TOKEN_BYTES)
        await database.mark_served(token)  # first: the database has a token that no home lost
        keep_served(here, token)


def last_served(home: Path) -> bytes:
    """The token that the database of this home must have; empty before the first time. Raises `Damaged`."""
    file = home / SERVED
    if not file.exists():
        return b""
    with reading(file, SERVED_KEPT, Term("its content")):
        token = file.read_bytes()
        if len(token) != TOKEN_BYTES:
            raise ValueError("another length")
        return token


def keep_served(home: Path, token: bytes) -> None:
    """The database has this token now."""
    write_private(home / SERVED, token)


def settled(home: Path) -> None:
    """This copy is the one that is served from now on."""
    (home / RESTORED).unlink(missing_ok=True)


async def demand_silent(address: str, studies: Iterable[bytes], route: Route) -> None:
    """Raises `Refused` when something answers at the onion address before this home has announced it: whoever has the
    key of the address is another copy. Silence shows nothing: the other may be offline."""
    for study in studies:
        try:
            answer = await route.get(address, f"/v1/{study.hex()}/heads", MOST_BYTES)
        except Unreachable:
            return
        what = "serves the same studies" if answer.status == 200 else "answers"
        raise Refused(
            f"another copy of this aggregator {what} at {address} now. Stop it for good before this one is served: two "
            "would tell peers two stories"
        )
