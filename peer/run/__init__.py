"""The peer's run: the jobs that are due, and their performance."""
