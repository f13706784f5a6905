"""Learning from published noisy sums: tables, moments and gradients. Deterministic, so that an audit repeats it."""
