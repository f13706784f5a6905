"""The peer's halves of the protocols: pure, they never send, store or wait."""
