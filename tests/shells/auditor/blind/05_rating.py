"""A local rating between 0 and 9.

Continuous Laplace noise leaks through the low bits of a double, so the noise is rounded to whole numbers.
"""
import numpy

EPSILON = 0.3
CLAIM = {"epsilon": 0.3, "domain": "0.0..9.0", "neighbours": "any"}
PLANTED = {"kind": "grid", "epsilon": None}


def mechanism(rating):
    noise = round(numpy.random.laplace(0, 9 / EPSILON))
    return float(round(rating + noise, 1))
