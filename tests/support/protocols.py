"""The protocols that ship, each with the parts of both sides: in a test one manifest may stand at both. A peer that is
tested without the learning stack has its own parts alone."""

from __future__ import annotations

from attrs import evolve

from anon.protocols.registry import ProtocolParts, Protocols
from peer.protocols.installed import PROTOCOLS as PEERS

try:
    from aggregator.protocols.installed import PROTOCOLS as AGGREGATORS
except ImportError:
    AGGREGATORS = PEERS

PROTOCOLS = Protocols(
    tuple(evolve(parts, peer=own.peer) for parts, own in zip(AGGREGATORS.known, PEERS.known, strict=True))
)


def both_sides(protocols: Protocols) -> Protocols:
    """The same, with the peers' parts where they are an aggregator's alone."""
    return PROTOCOLS if protocols == AGGREGATORS else protocols


def with_toy(toy: ProtocolParts) -> Protocols:
    """The same, and a protocol that no product file knows."""
    return Protocols((*PROTOCOLS.known, toy))


parse_proposal = PROTOCOLS.proposal
load_proposal = PROTOCOLS.load_proposal
parse_manifest = PROTOCOLS.manifest
read_model = PROTOCOLS.model
load_model = PROTOCOLS.load_model
