"""What the paper measured, measured again on real data: its figures 2 to 7, and the designs side by side.

`python -m benchmarks.paper --data DIR` runs everything that is not cached and writes docs/results.md.
"""
