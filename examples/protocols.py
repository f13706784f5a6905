"""The protocols that ship, each with the parts of both sides: one program makes packets and takes them."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from aggregator.protocols.installed import PROTOCOLS as AGGREGATORS
from anon.protocols.registry import ProtocolParts, Protocols
from peer.protocols.installed import PROTOCOLS as PEERS

PROTOCOLS: Final = Protocols(
    tuple(evolve(parts, peer=own.peer) for parts, own in zip(AGGREGATORS.known, PEERS.known, strict=True))
)


def with_protocol(parts: ProtocolParts) -> Protocols:
    """The protocols that ship, and one that no product file knows."""
    return Protocols((*PROTOCOLS.known, parts))
