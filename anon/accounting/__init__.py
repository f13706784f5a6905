"""The statement of a study's cost: shuffle amplification and privacy-loss distributions."""
