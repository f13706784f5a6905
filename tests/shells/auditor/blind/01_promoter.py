"""Net promoter total of a team, with two-sided geometric noise."""
import random

EPSILON = 0.8
CLAIM = {"epsilon": 0.8, "domain": "10 * (0..3; web|shop)", "neighbours": "one"}
PLANTED = {"kind": "sensitivity", "epsilon": 1.2}
POINTS = {0: -1, 1: 0, 2: 1, 3: 2}
SENSITIVITY = max(abs(points) for points in POINTS.values())


def geometric(scale):
    """Difference of two geometric draws: chance proportional to exp(-|k| / scale)."""
    return int(random.expovariate(1 / scale)) - int(random.expovariate(1 / scale))


def mechanism(rows):
    """A row moves the total by at most the largest number of points it can carry."""
    total = sum(POINTS[score] for score, _ in rows)
    return total + geometric(SENSITIVITY / EPSILON)
