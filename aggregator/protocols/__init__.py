"""Aggregator parts of the protocols."""
