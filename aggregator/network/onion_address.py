"""The onion addresses at which an aggregator's studies are served."""

from __future__ import annotations

from collections.abc import Callable

from aggregator.store.home import Home
from anon.errors import Refused
from anon.serving.onion_key import keep_keys
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
    return next((address for address in addresses if address in addresses_of(serving)), next(iter(addresses), ""))


def onion_addresses(home: Home, random_bytes: Callable[[int], bytes], count: int = 0) -> str:
    """The onion addresses at which a home's studies are served to everybody, as a manifest spells them.

    They are those of the onion services that run, kept or passing. Otherwise they are those of the home's first `count`
    keys (0: all that are kept, at least one), each drawn when it is missing. Raises `Refused` where fewer than `count`
    run."""
    running = [address for address in addresses_of(home.served_at()) if is_onion(address.rpartition(":")[0])]
    if running and count > len(running):
        raise Refused(f"{len(running)} onion addresses are served now; stop, and serve with --onions {count} first")
    if running:
        return " ".join(running[: count or len(running)])
    return " ".join(key.address() for key in keep_keys(home.path, random_bytes, count))
