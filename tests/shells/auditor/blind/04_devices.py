"""Number of devices in a household. A count is never negative."""
import random

EPSILON = 1.0
CLAIM = {"epsilon": 1.0, "domain": "0..5", "neighbours": "within:1"}
PLANTED = {"kind": "decision", "epsilon": 1.209}


def geometric(scale):
    return int(random.expovariate(1 / scale)) - int(random.expovariate(1 / scale))


def mechanism(count):
    """Downstream code cannot handle negative counts, so draw until there is a valid one."""
    while True:
        noisy = count + geometric(1 / EPSILON)
        if noisy >= 0:
            return noisy
