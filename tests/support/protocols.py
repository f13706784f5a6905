"""The protocols that ship, each with the parts of both sides: in a test one manifest may stand at both. A peer that is
tested without the learning stack has its own parts alone."""

from __future__ import annotations

from peer.protocols.installed import PROTOCOLS as PEERS

try:
    from examples.protocols import PROTOCOLS
    from examples.protocols import with_protocol as with_toy
except ImportError:
    PROTOCOLS = PEERS

__all__ = ["PROTOCOLS", "with_toy"]

parse_proposal = PROTOCOLS.proposal
load_proposal = PROTOCOLS.load_proposal
parse_manifest = PROTOCOLS.manifest
read_model = PROTOCOLS.model
load_model = PROTOCOLS.load_model
