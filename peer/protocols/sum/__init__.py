"""The protocol `sum` on the owner's machine."""
