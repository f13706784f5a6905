"""Simulated studies: people from a file or made up, exact draws of what they would send, scores, and ceilings."""
