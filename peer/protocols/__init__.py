"""The peer's parts of the protocols: pure, they never send, store or wait."""
