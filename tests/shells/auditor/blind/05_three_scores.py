"""Three answers of a survey, each 0 to 4, sent by a respondent with Gaussian noise.

The deviation is that of the analytic Gaussian mechanism for (1, 0.05) and a distance of 1, times the longest distance
between two respondents. Values are sent with one digit.
"""
import math
import random

CLAIM = {"epsilon": 1, "delta": 0.05, "domain": "0..4; 0..4; 0..4", "neighbours": "any"}
PLANTED = {"kind": "L2 sensitivity of two answers, while three are sent", "epsilon": 1.3756}

UNIT_DEVIATION = 1.33278
DISTANCE = math.sqrt(4**2 + 4**2)


def mechanism(x):
    return [round(value + random.gauss(0.0, UNIT_DEVIATION * DISTANCE), 1) for value in x]
