"""The onion address at which an aggregator's studies are served."""

from __future__ import annotations

from collections.abc import Callable

from aggregator.store.home import Home
from anon.serving.onion_key import keep_key
from anon.wire.onion_address import is_onion


def onion_address(home: Home, random_bytes: Callable[[int], bytes]) -> str:
    """The host:port at which a home's studies are served to everybody. It is that of the onion service that runs, kept
    or passing. Otherwise it is that of the key kept in the home, drawn when there is none."""
    serving = home.served_at()
    if is_onion(serving.rpartition(":")[0]):
        return serving
    return keep_key(home.path, random_bytes).address()
