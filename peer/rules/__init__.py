"""The peer's rules: no waiting, no input and no output."""
