"""All shares but one are uniform, and verifying shows nothing but that a measurement is valid. Over small fields.

Chi-squared at level 1e-3 for each view, with fixed randomness: 18 views, so the false alarm of a fresh draw is 2 in
100.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from functools import cache
from itertools import product

import pytest
from scipy.stats import chi2

from anon.errors import RejectedProof
from anon.vdaf.circuits import Blocks
from anon.vdaf.field import Field
from anon.vdaf.flp import ProofSystem
from anon.vdaf.prio3 import Prio3
from tests.anon.vdaf.official import Count
from tests.support.tries import every

FIVE, SEVENTEEN = Field(5, 1, 2, 2), Field(17, 1, 3, 4)
PRIO3 = Prio3(Blocks((2,), 2, FIVE), 3, 0xFFFFFFFF)
DRAWS, LEVEL = 800, 1e-3
Opened = tuple[tuple[int, ...], ...]


@cache
def openings(place: int) -> list[Opened]:
    """Vector and proof of all three parties, for many reports of one measurement."""
    found = []
    for draw in range(DRAWS):
        randomness = hashlib.shake_128(b"view %d %d" % (place, draw)).digest(PRIO3.randomness_size)
        report = PRIO3.shard(b"view", [place], draw.to_bytes(16, "big"), randomness)
        split = [PRIO3._split_input(b"view", party, share) for party, share in enumerate(report.input_shares)]
        found.append(tuple((*vector, *proof) for vector, proof, _ in split))
    return found


def statistic(cells: list[tuple[int, ...]]) -> float:
    """Chi-squared against the uniform distribution on all triples."""
    counts, expected = Counter(cells), len(cells) / FIVE.modulus**3
    return sum((counts[cell] - expected) ** 2 / expected for cell in product(range(FIVE.modulus), repeat=3))


LIMIT = float(chi2.isf(LEVEL, FIVE.modulus**3 - 1))


@pytest.mark.slow
@pytest.mark.parametrize("place", every(2, [0, 1]))
@pytest.mark.parametrize(("one", "other"), [(0, 1), (0, 2), (1, 2)])
@pytest.mark.parametrize("proof", [2, 5, 8], ids=["wire", "seed", "gadget"])
def test_all_shares_but_one_are_uniform(place: int, one: int, other: int, proof: int) -> None:
    """Two of three parties together: an element of each one's vector, and one of the first one's proof."""
    cells = [(shares[one][0], shares[other][0], shares[one][proof]) for shares in openings(place)]
    assert statistic(cells) < LIMIT


@pytest.mark.slow
def test_all_shares_together_are_not_uniform() -> None:
    """The statistic sees a dependence: the third party's element is the vector's, less the other two."""
    cells = [(shares[0][0], shares[1][0], shares[2][0]) for shares in openings(0)]
    assert statistic(cells) > 4 * LIMIT


@pytest.mark.slow
@pytest.mark.parametrize(("circuit", "measurements"), [
    (Count(SEVENTEEN), ([0], [1])),
    (Blocks((3,), 1, SEVENTEEN), ([0], [1], [2])),
    (Blocks((1, 2), 1, SEVENTEEN), ([0, 0], [0, 1])),
])
def test_what_the_verifier_shows_is_the_same_for_every_measurement(
    circuit: Count | Blocks, measurements: tuple[list[int], ...]
) -> None:
    """Exactly: over all seeds of the prover, at every point that is let through; roots of unity are not."""
    proof = ProofSystem(circuit)
    joint, factors = [3, 5, 7][: circuit.randomness], [1, 2, 3][: proof.query_randomness - 1]
    shown: list[Counter[tuple[int, ...]]] = []
    for measurement in measurements:
        encoded, seen = circuit.encode(measurement), Counter[tuple[int, ...]]()
        for seeds in product(range(17), repeat=2):
            made = proof.prove(encoded, list(seeds), joint)
            for point in range(17):
                try:
                    verifier = proof.query(encoded, made, [*factors, point], joint, 1)
                except RejectedProof:
                    seen["root", point] += 1
                else:
                    assert proof.decide(verifier)
                    seen[(point, *verifier)] += 1
        shown.append(seen)
    roots = {point for point in range(17) if pow(point, 2 * proof.points, 17) == 1}
    assert {cell[1] for cell in shown[0] if cell[0] == "root"} == roots
    assert all(seen == shown[0] for seen in shown)
