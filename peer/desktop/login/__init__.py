"""Start at login: the item, how each system spells it, and where each keeps it."""
