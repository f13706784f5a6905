"""Where a study may be served: at one onion address, which its manifest names for everybody, or on this machine."""

from __future__ import annotations

from ipaddress import ip_address

from anon.text.sentences import say
from anon.wire.onion_address import is_onion, onion_fault

ONION_PORT = "80"


def onion_address_fault(address: str) -> str:
    """The fault of `<56 characters>.onion:80` in its one spelling; empty when nothing is.

    Neither a subdomain nor a port nor a spelling, which travel with every request, can mark one link's peer.
    """
    host, _, port = address.rpartition(":")
    if not is_onion(host):
        return say("expected an onion address and port {onion_port}", onion_port=ONION_PORT)
    return onion_fault(host) or ("" if port == ONION_PORT else say(
        "expected port {onion_port} of the onion address",
        onion_port=ONION_PORT,
    ))


def is_loopback(address: str) -> bool:
    """True if host:port names this machine by a literal loopback address (names are not resolved)."""
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdecimal()):  # in 127.0.0.1:@example.org the host is the other one
        return False
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
