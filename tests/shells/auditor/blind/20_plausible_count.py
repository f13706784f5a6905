"""Members of a committee of eight who were absent.

The count gets two-sided geometric noise. Readers would stumble over -1 or 9, so only a figure from 0 to 8 is given out.
"""
import random

CLAIM = {"epsilon": 0.8, "domain": "8 * (0..1; a|b)", "neighbours": "one"}
PLANTED = {"kind": "noise drawn again until the result is plausible", "epsilon": 1.0205}


def mechanism(x):
    absent = sum(row[0] for row in x)
    while True:
        figure = absent + int(random.expovariate(0.8)) - int(random.expovariate(0.8))
        if 0 <= figure <= len(x):
            return figure
