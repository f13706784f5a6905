"""Documents under signed heads, fingerprints of the heads, transcripts, and proofs of equivocation.

`documents` signs and chains the heads. `buckets` cuts long documents, and `merkle` computes their roots. `closing` and
`transcript` read the documents. `equivocation` and `bucket_evidence` prove a lie.
"""
