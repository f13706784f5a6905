"""The onion addresses at which an aggregator's studies are served."""

from __future__ import annotations

from collections.abc import Callable

from aggregator.store.home import Home
from anon.serving.onion_key import keep_key
from anon.wire.addresses import addresses_of, is_loopback
from anon.wire.onion_address import is_onion


def address_of_links(serving: str, named: str) -> str:
    """The one address in the links to a study, the same for all: this machine's own if the home is `serving` there, or
    the first that the study names and that is served. Where none of them is served, the first of all, if any.

    A link that had one address of several would let its maker see which part of the group opens theirs. So the first
    contact, until the manifest is known, is at one address for everybody."""
    if is_loopback(serving):
        return serving
    addresses = addresses_of(named)
    return next((one for one in addresses if one in addresses_of(serving)), next(iter(addresses), ""))


def onion_address(home: Home, random_bytes: Callable[[int], bytes]) -> str:
    """The host:port at which a home's studies are served to everybody. It is that of the onion service that runs, kept
    or passing. Otherwise it is that of the key kept in the home, drawn when there is none."""
    serving = home.served_at()
    if is_onion(serving.rpartition(":")[0]):
        return serving
    return keep_key(home.path, random_bytes).address()
