"""The aggregator and all tellers but one together learn the noisy sum and nothing else: a simulator makes their view of
it.

The simulator shares a vector that it invented, 0 for everybody, keeps the dishonest teller's part of that view, and
puts in place of the honest teller's noisy share the noisy sum less the dishonest teller's shares. Views are compared
over a field of 17 elements by two-sample chi-squared, each at level 1e-3. There are 12 views, so a fresh draw fails
falsely in 12 of 1000 runs; the randomness is fixed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

import pytest
from attrs import evolve, frozen
from scipy.stats import chi2

from anon.errors import RejectedProof
from anon.noise import DiscreteGaussian, RandomBytes
from anon.teller.rules import is_valid, noisy_share
from anon.vdaf.circuits import Blocks
from anon.vdaf.field import Field, Vector
from anon.vdaf.prio3 import Prio3
from tests.support.tellers import a_sum

pytestmark = pytest.mark.slow

SEVENTEEN = Field(17, 1, 3, 4)
PRIO3 = Prio3(Blocks((2,), 1, SEVENTEEN), 2, 0xFFFFFFFF)
ASKED = a_sum(sigma_squared=Fraction(3))
KEY, CONTEXT = b"k" * 32, b"view"
DRAWS, LEVEL = 600, 1e-3


@frozen
class View:
    """One round as the dishonest ones see it, with two peers."""

    opened: tuple[Vector, ...]
    """For each peer, the dishonest teller's share of the vector."""
    verifiers: tuple[Vector, ...]
    """For each peer, the honest teller's verifier share, as numbers."""
    noisy: Vector
    """The honest teller's noisy share."""


def stream(seed: str) -> RandomBytes:
    numbers = iter(range(10**6))
    return lambda size: hashlib.shake_128(f"{seed} {next(numbers)}".encode()).digest(size)


Verified = tuple[tuple[Vector, Vector], tuple[Vector, Vector]]
"""Of one peer: output share and verifier share of both tellers."""


def verified(place: Sequence[int], draw: RandomBytes) -> Verified:
    """Another nonce is drawn where a check meets a root of unity, which has nothing to do with the vector."""
    while True:
        nonce = draw(16)
        sharing = PRIO3.shard(CONTEXT, place, nonce, draw(PRIO3.randomness_size))
        try:
            begun = [
                PRIO3.verify_init(KEY, CONTEXT, party, nonce, sharing.public_share, sharing.input_shares[party])
                for party in (0, 1)
            ]
        except RejectedProof:
            continue
        assert is_valid(PRIO3, CONTEXT, begun[0][0].joint_seed, [share for _, share in begun])
        one, other = ((state.output_share, list(share[:-32])) for state, share in begun)
        return one, other


@cache
def rounds(seed: str, *places: int) -> tuple[tuple[Verified, ...], ...]:
    """Rounds of peers with these places, as all tellers together see them."""
    return tuple(
        tuple(verified([place], stream(f"{seed} {draw} {peer}")) for peer, place in enumerate(places))
        for draw in range(DRAWS)
    )


@cache
def lived(seed: str, honest: int, *places: int) -> tuple[View, ...]:
    """The same, as the aggregator and the other teller see them."""
    views = []
    for draw, peers in enumerate(rounds(seed, *places)):
        shares = [SEVENTEEN.encode(peer[honest][0]) for peer in peers]
        noisy = noisy_share(PRIO3, ASKED, shares, stream(f"{seed} noise {honest} {draw}"))
        opened, verifiers = tuple(peer[1 - honest][0] for peer in peers), tuple(peer[honest][1] for peer in peers)
        views.append(View(opened, verifiers, SEVENTEEN.decode(noisy, 2, "noisy share")))
    return tuple(views)


def with_sum(view: View, total: Vector) -> View:
    """A view whose honest noisy share is this sum less the dishonest teller's shares."""
    rest = total
    for opened in view.opened:
        rest = SEVENTEEN.subtract(rest, opened)
    return evolve(view, noisy=rest)


def total_of(view: View) -> Vector:
    """The noisy sum in a view."""
    total = view.noisy
    for opened in view.opened:
        total = SEVENTEEN.add(total, opened)
    return total


def real(honest: int) -> tuple[View, ...]:
    return lived("real", honest, 0, 1)


def invented(honest: int) -> tuple[View, ...]:
    return lived("invented", honest, 0, 0)


def simulated(honest: int) -> tuple[View, ...]:
    """From noisy sums of other rounds, and nothing else of them: two peers with 0 and 1, and the honest noise."""
    noise = DiscreteGaussian(ASKED.sigma_squared)
    sums = [
        SEVENTEEN.add([1, 1], [entry % 17 for entry in noise.vector(2, stream(f"sum {honest} {draw}"))])
        for draw in range(DRAWS)
    ]
    return tuple(with_sum(view, total) for view, total in zip(invented(honest), sums, strict=True))


def excess(one: Sequence[View], other: Sequence[View], cell: Callable[[View], tuple[int, ...]]) -> float:
    """The two-sample statistic over its limit: above 1 the views differ, at the level."""
    first, second = Counter(map(cell, one)), Counter(map(cell, other))
    share = len(one) / (len(one) + len(other))
    statistic, cells = 0.0, first.keys() | second.keys()
    for each in cells:
        both = first[each] + second[each]
        statistic += (first[each] - share * both) ** 2 / (share * (1 - share) * both)
    return float(statistic / chi2.isf(LEVEL, len(cells) - 1))


CELLS: list[Callable[[View], tuple[int, ...]]] = [
    lambda view: (view.noisy[0], view.opened[0][0] // 3),
    lambda view: (view.noisy[1], view.opened[1][1] // 3),
    lambda view: (view.noisy[0], view.noisy[1] // 3),
    lambda view: (view.noisy[0] // 3, view.verifiers[1][0]),
    lambda view: (view.opened[1][0], view.verifiers[1][1] // 3),
    lambda view: (total_of(view)[0], total_of(view)[1] // 3),
]


@pytest.mark.parametrize("honest", [0, 1], ids=["leader", "helper"])
@pytest.mark.parametrize("cell", CELLS, ids=range(len(CELLS)))
def test_the_view_is_simulated_from_the_noisy_sum(honest: int, cell: Callable[[View], tuple[int, ...]]) -> None:
    assert excess(real(honest), simulated(honest), cell) < 1


@pytest.mark.parametrize("honest", [0, 1])
def test_the_statistic_sees_a_view_of_another_sum(honest: int) -> None:
    """Without the sum the invented vectors show; and a sum without its noise is seen too."""
    assert excess(real(honest), invented(honest), CELLS[-1]) > 2
    exact = [with_sum(view, [1, 1]) for view in invented(honest)]
    assert excess(real(honest), exact, CELLS[-1]) > 2


@pytest.mark.parametrize("honest", [0, 1])
def test_the_statistic_sees_a_share_that_is_not_uniform(honest: int) -> None:
    """If the dishonest teller saw a vector's element in place of a share of it."""
    leaking = [evolve(view, opened=([1, 0], view.opened[1])) for view in real(honest)]
    assert excess(leaking, simulated(honest), CELLS[0]) > 2
