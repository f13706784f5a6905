"""Commuters by means of transport: a table of three cells.

Each row is one commuter. The noise of a cell is made of the draws at its two edges, as in a moving average,
so that no cell
depends on a single draw.
"""
import random

CLAIM = {"epsilon": 1, "domain": "6 * (bus|train|car; a|b)", "neighbours": "lacks"}
PLANTED = {"kind": "noise reused between cells: the parity of the total is exact", "epsilon": None}

CELLS = ("bus", "train", "car")


def noise(rate):
    return int(random.expovariate(rate)) - int(random.expovariate(rate))


def mechanism(x):
    counts = [sum(1 for row in x if row[0] == cell) for cell in CELLS]
    edges = [noise(0.5) for _ in CELLS]
    return [count + edges[i] + edges[(i + 1) % len(edges)] for i, count in enumerate(counts)]
