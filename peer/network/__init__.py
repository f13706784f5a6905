"""The peer's client and its routes."""
