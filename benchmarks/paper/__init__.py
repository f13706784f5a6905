"""The paper's measurements, repeated on real data: its figures 2 to 7, and the designs side by side.

`python -m benchmarks.paper --data DIR` runs everything that is not cached and writes docs/results.md.
"""
