"""Documents under signed heads, fingerprints of the heads, transcripts, and proofs of equivocation."""
