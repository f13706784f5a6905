"""The ledger at a node of another framework: what leaves a Flower ClientApp or an NVFlare client is consented, clipped,
noisy, charged and journalled, or refused.

A shell over the peer's own home. No command of a peer, an aggregator or a teller needs it.
"""

from peer.ledger.declaration import JobTerms, declaration_of
from peer.ledger.in_flower import flower

__all__ = ["JobTerms", "declaration_of", "flower"]
