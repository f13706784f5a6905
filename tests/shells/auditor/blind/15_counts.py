"""Counts of three categories, as whole numbers."""
import numpy

EPSILON = 2.0
CLAIM = {"epsilon": 2.0, "domain": "12 * (a|b|c; 0..1)", "neighbours": "lacks"}
PLANTED = {"kind": "grid", "epsilon": 2.693}


def mechanism(rows):
    """A row is in one category: sensitivity 1."""
    counts = {"a": 0, "b": 0, "c": 0}
    for name, _ in rows:
        counts[name] += 1
    return {name: count + int(numpy.random.laplace(0, 1 / EPSILON)) for name, count in counts.items()}
