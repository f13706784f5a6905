"""Where a study may be served: at onion addresses, which its manifest names for everybody, or on this machine."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address

from anon.text.sentences import Term, say
from anon.wire.onion_address import is_onion, onion_fault

ONION_PORT = "80"
MOST_ADDRESSES = 8
"""Onion addresses of one study."""


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
    return next((fault for one in named if (fault := onion_address_fault(one))), "")


def listener(address: str) -> str:
    """The same for two addresses at which one service answers: an onion service whatever its port and spelling, else
    host and port."""
    host, _, port = address.strip().lower().rpartition(":") if ":" in address else (address.strip().lower(), "", "")
    host = host.rstrip(".")
    if is_onion(host):
        return ".".join(host.split(".")[-2:])
    return f"{host}:{int(port)}" if port.isascii() and port.isdecimal() else f"{host}:{port}"


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
