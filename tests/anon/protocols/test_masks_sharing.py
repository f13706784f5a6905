"""Secrets in shares: told from the threshold on, and with as many lies among the shares as a code can take out."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from anon.protocols.sum.masks.sharing import PRIME, SHARE, recovered, shares

SECRET = bytes(range(31))
fits = SECRET.__eq__


def shown(needed: int, many: int, spring: Random) -> dict[int, bytes]:
    """All shares by place, of another polynomial each time."""
    return dict(enumerate(shares(SECRET, spring.randbytes(32), b"word", needed, many), 1))


def false(value: bytes, spring: Random) -> bytes:
    """Another share: uniform, or off by one, or none that is canonical."""
    near = (int.from_bytes(value, "big") + 1) % PRIME
    return spring.choice([spring.randbytes(SHARE), near.to_bytes(SHARE, "big"), b"\xff" * SHARE])


def lying(points: dict[int, bytes], liars: Sequence[int], spring: Random) -> dict[int, bytes]:
    return {place: false(value, spring) if place in liars else value for place, value in points.items()}


@pytest.mark.parametrize(("needed", "many"), [(1, 2), (3, 5), (41, 80)])
def test_shares_tell_a_secret_from_the_threshold_on(needed: int, many: int) -> None:
    cut = dict(enumerate(shares(SECRET, b"seed", b"word", needed, many), 1))
    some = {place: cut[place] for place in list(cut)[-needed:]}
    assert recovered(some, needed, fits) == SECRET
    assert recovered(dict(list(some.items())[1:]), needed, fits) is None
    assert recovered(some | {many: bytes(SHARE)}, needed, fits) is None
    assert all(0 <= int.from_bytes(part, "big") < PRIME for part in cut.values())
    other = dict(enumerate(shares(SECRET, b"other", b"word", needed, many), 1))
    assert needed == 1 or all(cut[place] != other[place] for place in cut)


@pytest.mark.parametrize(("needed", "many"), [(1, 4), (2, 3), (5, 7), (7, 10), (27, 40), (54, 68), (54, 80), (54, 79)])
def test_half_of_the_shares_beyond_the_threshold_may_be_lies(needed: int, many: int) -> None:
    """Wherever they stand: at the first places too, which are tried alone at first. Three draws each."""
    spring, most = Random(needed * many), (many - needed) // 2
    for liars in [range(1, most + 1), *(spring.sample(range(1, many + 1), most) for _ in range(3))]:
        points = lying(shown(needed, many, spring), liars, spring)
        assert recovered(points, needed, fits) == SECRET
        assert recovered(dict(reversed(points.items())), needed, fits) == SECRET


@pytest.mark.parametrize(("needed", "many", "liars"), [(7, 10, 3), (5, 7, 2), (9, 12, 3), (27, 40, 7)])
def test_in_a_small_group_more_may_be_lies(needed: int, many: int, liars: int) -> None:
    """Of 10 shares as many as there are beyond the threshold; of 40 one more than half."""
    spring = Random(liars)
    points = lying(shown(needed, many, spring), spring.sample(range(1, many + 1), liars), spring)
    assert recovered(points, needed, fits) == SECRET


@pytest.mark.slow
@pytest.mark.parametrize(("needed", "many"), [(54, 80), (54, 68), (7, 10)])
def test_more_lies_never_tell_a_wrong_secret(needed: int, many: int) -> None:
    """One more than can be taken out, and liars who agree on another secret: none comes, or the true one."""
    spring, beyond = Random(needed + many), many - needed
    other = dict(enumerate(shares(bytes(31), spring.randbytes(32), b"word", needed, many), 1))
    for liars in (beyond // 2 + 1, beyond, beyond + 1, many):
        points = shown(needed, many, spring)
        places = spring.sample(range(1, many + 1), liars)
        for told in (lying(points, places, spring), points | {place: other[place] for place in places}):
            assert recovered(told, needed, fits) in (None, SECRET)
            assert liars <= beyond or recovered(told, needed, fits) is None


def test_a_secret_that_fits_nothing_is_none() -> None:
    """True shares of another secret than the one that its owner named."""
    assert recovered(shown(54, 80, Random(1)), 54, bytes(31).__eq__) is None
