"""The integer vector that a peer contributes to an exact sum, its sensitivity, and the next document from a sum."""
