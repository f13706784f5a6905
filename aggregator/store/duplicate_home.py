"""Two living copies of one aggregator equivocate: how a copy is kept from being served beside the other.

A backup that is not final may have a living original, so the home that it is restored to is not served until staff say
that they know. A final backup closes its home. Over Tor one address belongs to both copies: before a restored home
announces it, whoever answers there already is the other one.

Not noticed: two copies on loopback or behind different onion addresses, and folders that were copied by other means.
Peers that see both stories stop and keep the proof (docs/protocol.md).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from anon.errors import Refused, Unreachable
from anon.route import Route
from anon.storage.home import RESTORED
from anon.storage.private_files import write_private

MOVED = "moved"
"""The mark of a home that a final backup closed."""
MOST_BYTES = 2 * 1024 * 1024
_LOG = logging.getLogger(__name__)


def mark(home: Path, name: str) -> None:
    """Leave a mark in a home, durably."""
    write_private(home / name, b"")


def demand_here(home: Path) -> None:
    """Raises `Refused` in a home that was moved elsewhere."""
    if (home / MOVED).exists():
        raise Refused(f"{home}: this aggregator was moved elsewhere by a final backup; use the restored one")


def demand_alone(home: Path, knowingly: bool) -> None:
    """Raises `Refused` in a home whose other copy may be alive, unless staff say that it is not."""
    demand_here(home)
    if not (home / RESTORED).exists():
        return
    if not knowingly:
        raise Refused(
            f"{home}: restored from a backup, and another copy of this aggregator may be alive. Two that are served "
            "tell peers two stories, and each peer that sees both stops and keeps the proof. Stop the other for good, "
            "then serve this one with --restored"
        )
    _LOG.warning("%s: served though restored from a backup; another copy must never be served again", home)


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
