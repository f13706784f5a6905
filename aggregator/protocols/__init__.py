"""Aggregator halves of the protocols."""
