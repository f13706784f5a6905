"""Feature queries: what one may do, its evaluation within bounds, and the child process that does it."""
