"""Text that somebody else wrote: the characters that it may hold."""
