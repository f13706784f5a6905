"""The part of the peer that a phone's pages reach, whatever route led there.

The list of routes (`allowed`) says which pages a phone has; a page may do more than its route's name says, today or
after the next change. So those pages hold, in place of the peer, something that can read a few things and pause.
"""

from __future__ import annotations

from typing import NoReturn

from anon.errors import Refused
from peer.app import PeerApp
from peer.pairing.allowed import REFUSED
from peer.store.store import Store


class _Closed:
    """Every name that is not given here by itself raises `Refused`."""

    def __getattr__(self, name: str) -> NoReturn:
        raise Refused(REFUSED)


class _StoreInReach(_Closed):
    def __init__(self, store: Store) -> None:
        self.study = store.study


class PeerInReach(_Closed):
    """The peer as a phone's pages see it: no join, no leaving, no limits, no run, no secret of a study."""

    def __init__(self, peer: PeerApp) -> None:
        self.store = _StoreInReach(peer.store)
        self.budget, self.policy, self.status = peer.budget, peer.policy, peer.status
        self.pause, self.paused_until, self.resume = peer.pause, peer.paused_until, peer.resume
        self.manifest, self.known_tellers = peer.manifest, peer.known_tellers


def no_peer() -> NoReturn:
    """The whole peer of a phone's pages: they have none. Raises `Refused`."""
    raise Refused(REFUSED)


async def run_nothing() -> None:
    """The run of a phone's pages: they start none. Raises `Refused`."""
    raise Refused(REFUSED)
