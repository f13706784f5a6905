"""Test vectors for anybody who implements the protocol: written into docs/vectors, the same bytes every time.

    python -m benchmarks.vectors [FOLDER]

`made` has the form of a file; `study` makes small finished studies from a seed. `manifests`, `documents`, `proofs`,
`sums` and `results` hold the cases. `verdicts` asks this program about a case. docs/vectors/README.md is for readers.
"""
