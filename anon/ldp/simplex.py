"""The projection of unbiased shares onto those that can be."""

from __future__ import annotations

from collections.abc import Sequence


def nearest_shares(shares: Sequence[float]) -> tuple[float, ...]:
    """The nearest shares that are >= 0 and sum to 1 (Euclidean projection onto the simplex, Duchi et al. 2008).

    Takes unbiased estimates over n as they are: their sum is random for unary encodings, and dividing by it would make
    another, biased estimate of them (erratum 9). Adding one number to all of them changes nothing.
    """
    running, shift = 0.0, 0.0
    for rank, share in enumerate(sorted(shares, reverse=True), start=1):
        running += share
        if share - (running - 1) / rank > 0:
            shift = (running - 1) / rank
    return tuple(max(share - shift, 0.0) for share in shares)
