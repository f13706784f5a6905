"""The common part of the peer's page and the aggregator's desk: who may speak to a page on loopback, and how it is
drawn."""
