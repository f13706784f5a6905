"""Winner of an approval vote and its votes, by report noisy max."""
import numpy

EPSILON = 0.7
CLAIM = {"epsilon": 0.7, "domain": "6 * (0..1; 0..1; 0..1)", "neighbours": "lacks"}
PLANTED = {"kind": "selection", "epsilon": 2.1}
NAMES = ("ada", "bob", "cyd")


def mechanism(ballots):
    """A ballot more moves all scores up by at most 1, so noise of scale 1 / EPSILON is enough for the winner.

    Its noisy votes are there already: to release them costs nothing more.
    """
    votes = [sum(ballot[place] for ballot in ballots) for place in range(3)]
    noisy = [count + numpy.random.laplace(0, 1 / EPSILON) for count in votes]
    best = max(range(3), key=noisy.__getitem__)
    return {"winner": NAMES[best], "votes": round(noisy[best])}
