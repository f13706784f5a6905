"""The forms of addresses of studies and tellers: onion addresses, which a manifest names for everybody, and this
machine's own."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import ip_address

from anon.text.sentences import Term, say
from anon.wire.onion_address import is_onion, onion_fault

ONION_PORT = "80"
MOST_ADDRESSES = 8
"""Onion addresses of one study."""
THIS_MACHINE = "127.0.0.1"
"""Where a teller is served that is tried without Tor."""
TELLER_ADDRESS = rf"^([a-z2-7]{{56}}\.onion:{ONION_PORT}|127\.0\.0\.1:[1-9][0-9]{{0,4}})$"
"""The form of a teller's address, for editors of study files. `teller_address_fault` decides."""
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_LAST_PORT = 2**16 - 1


def onion_address_fault(address: str) -> str:
    """The fault of `<56 characters>.onion:80` in its one spelling; empty when nothing is.

    Neither a subdomain nor a port nor a spelling, which travel with every request, can mark one link's peer.
    """
    host, _, port = address.rpartition(":")
    if not is_onion(host):
        return say("expected an onion address and port {onion_port}", onion_port=Term(ONION_PORT))
    return onion_fault(host) or ("" if port == ONION_PORT else say(
        "expected port {onion_port} of the onion address",
        onion_port=Term(ONION_PORT),
    ))


def addresses_of(text: str) -> tuple[str, ...]:
    """The addresses of a study, as a manifest and a home spell them: one space between two of them."""
    return tuple(text.split(" ")) if text else ()


def onion_addresses_fault(text: str) -> str:
    """The fault of several onion addresses, one space between two of them; empty when nothing is."""
    named = addresses_of(text)
    if len(named) > MOST_ADDRESSES or len(set(named)) != len(named):
        return say("expected at most {most} onion addresses, each named once", most=MOST_ADDRESSES)
    return next((fault for address in named if (fault := onion_address_fault(address))), "")


def teller_address_fault(address: str) -> str:
    """The fault of a teller's address in its one spelling; empty when nothing is. Two that differ are two places.

    It is an onion address with port 80, or 127.0.0.1 with a port. A name, another number or another port of an onion
    service could be a second spelling of one place, and is none.
    """
    host, _, port = address.rpartition(":")
    if host == THIS_MACHINE and _PORT.fullmatch(port) and int(port) <= _LAST_PORT:
        return ""
    if is_onion(host) and not (fault := onion_address_fault(address)):
        return ""
    found = f" ({fault})" if is_onion(host) else ""
    return (
        f"expected the teller's onion address with port {ONION_PORT}, or {THIS_MACHINE} and a port{found}; copy the "
        "address that `anonml teller words` shows"
    )


@lru_cache(maxsize=64)
def is_loopback(address: str) -> bool:
    """True if host:port names this machine by a literal loopback address (names are not resolved)."""
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdecimal()):  # in 127.0.0.1:@example.org the host is the other one
        return False
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
