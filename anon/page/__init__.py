"""What the peer's page and the aggregator's desk share: who may speak to a page on loopback, and how it is drawn."""
