"""Text on every surface: the characters that a stranger's may hold, and instants in words."""
