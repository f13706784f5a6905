"""What a phone's pages reach of the peer behind them, whatever route led there.

The list of routes (`allowed`) says which pages a phone has; a page may do more than its route's name says, today or
after the next change. So those pages hold, in place of the peer, something that can read a few things and pause.
"""

from __future__ import annotations

from typing import Any, Final, cast

from anon.errors import Refused
from peer.app import PeerApp
from peer.pairing.allowed import REFUSED

_PEER: Final = frozenset({"accounting", "budget", "manifest", "pause", "paused_until", "policy", "resume", "status"})
_STORE: Final = frozenset({"state", "study"})


class _Narrow:
    """The named attributes of something else. Every other one raises `Refused`."""

    def __init__(self, names: frozenset[str], whole: object, **parts: object) -> None:
        self._names, self._whole, self._parts = names, whole, parts

    def __getattr__(self, name: str) -> Any:
        if name in self._parts:
            return self._parts[name]
        if name not in self._names:
            raise Refused(REFUSED)
        return getattr(self._whole, name)


def within_reach(peer: PeerApp) -> PeerApp:
    """The peer as a phone's pages see it: no join, no leaving, no limits, no run, no secret of a study."""
    return cast(PeerApp, _Narrow(_PEER, peer, store=_Narrow(_STORE, peer.store)))
