"""Energy of a household in kWh, where households up to 1 kWh apart are to look alike.

The meter counts pulses of three quarters of a kWh.
"""
import math

import numpy

EPSILON = 0.8
CLAIM = {"epsilon": 0.8, "domain": "0.0..9.0", "neighbours": "within:1"}
PLANTED = {"kind": "sensitivity", "epsilon": 1.2}
PULSE = 0.75


def mechanism(energy):
    metered = math.floor(energy / PULSE) * PULSE
    return round(float(metered + numpy.random.laplace(0, 1 / EPSILON)), 1)
