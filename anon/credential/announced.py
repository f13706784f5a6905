"""Proofs with their announcements, and all equations of many of them in one multi-exponentiation and pairing check.

A proof of the drafts carries the challenge, and its verifier computes the announcements T1, T2 and Ut to hash them. In
our tokens the announcements are there. The verifier hashes them, and is left with equations between points:

    E1 = T1 - (Bbar * c + Abar * e^ + D * r1^)                 E2 = T2 - (Bv * c + D * r3^ + sum of H_j * m^_j)
    E3 = Ut - (OP * poly(m^) - pseudonym * c)                  e(Abar, W) = e(Bbar, BP2)

where Bv = P1 + Q_1 * domain + sum of H_i * msg_i over revealed scalars, and E1, E2 and E3 have to be the identity. Both
forms hold the same: each is computed from the other.

The fold. For coefficients a, b, g, k of 128 bits for each proof, unknown when the points were fixed,

    e(sum of Abar * k, W) * e(sum of (Bbar * k + E1 * a + E2 * b + E3 * g), -BP2) = 1

says that a sum of 4n points of a group of prime order r, each times its coefficient, is the identity. With W = BP2 * sk
the fourth point of a proof is Abar * sk - Bbar. Let one of them not be the identity. For each choice of the other
coefficients one value of its own, at most, makes the sum vanish, because r is beyond 2^128. So a bad proof passes with
probability 2^-128.

The cofactor. Of a token's points the pseudonym alone is known to lie in that group. Let h be the effective cofactor:
h times a point of the curve lies in the group, and none of the group's points is lost, since r does not divide h. The
equations of a token are

    h * E1 = h * E2 = h * E3 = 0,    e(h * Abar, W) = e(h * Bbar, BP2),    h * Abar not 0.

A sum over points of the curve times integers, times h, is the sum of h times the points. So the fold above is one of
points of the group, h * Abar and so on, and nothing else of a token comes into it. A check alone computes the same
equations one by one. Each verdict is a function of the hashed bytes and of h times the points, the same in both ways;
they part with probability 2^-128, as before. Scalars modulo r and the endomorphism add multiples of small order
alone, which h takes away.

Nothing is lost against a forger. From what proves the equations a signature is extracted as in the drafts, out of h
times the points; that argument needs h * Abar not to be the identity, and a pseudonym of the group. The identity in
place of Abar and Bbar would satisfy all pairings, and so would points of small order: anybody could make such tokens.
So Abar is multiplied by h to see that something is left. A pseudonym with a part of small order would be a second tag
for one occasion. So its own subgroup is tested, and no equation stands for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import Factory

from anon.credential.batch import FoldedPairings
from anon.credential.proof import Announcement, Proof
from anon.credential.statement import Context, Statement
from anon.crypto.curve import G1, Scalar, clear_cofactor, multiexp
from anon.values import frozen

COEFFICIENTS = 4
"""Of each proof: for E1, E2, E3 and the pairing."""
_ZERO = Scalar(0)


@frozen
class AnnouncedProof:
    """A proof with what its prover announced, and the challenge that this hashes to.

    `revealed`: the signed scalars that are shown, by index. `nym`: the pseudonym's context and the number of nym
    secrets, None for a proof without pseudonym.
    """

    proof: Proof
    announcement: Announcement
    nym: tuple[Context, int] | None
    revealed: Mapping[int, Scalar] = Factory(dict)


def fold(statement: Statement, proofs: Sequence[AnnouncedProof], coefficients: Sequence[Scalar]) -> FoldedPairings:
    """The sums of all equations of these proofs, at least one, times the cofactor.

    `coefficients`: four for each proof.
    """
    lefts = [announced_proof.proof.a_bar for announced_proof in proofs]
    left = clear_cofactor(multiexp(lefts, coefficients[COEFFICIENTS - 1 :: COEFFICIENTS]))
    return FoldedPairings(left, right_sum(statement, proofs, coefficients))


def right_sum(statement: Statement, proofs: Sequence[AnnouncedProof], coefficients: Sequence[Scalar]) -> G1:
    """The right one alone. If each fourth coefficient is zero it is the sum of what is wrong with announcements."""
    points: list[G1] = []
    factors: list[Scalar] = []
    # Points with a factor of 128 bits are summed apart: among longer ones the library takes as long for them.
    announced_points: list[G1] = []
    shorter: list[Scalar] = []
    # Points that proofs have in common are multiplied once: the generators, and each context's.
    common = [_ZERO] * (1 + len(statement.generators))
    contexts: dict[bytes, tuple[Context, Scalar]] = {}
    for number, announced_proof in enumerate(proofs):
        a, b, g, k = coefficients[COEFFICIENTS * number : COEFFICIENTS * (number + 1)]
        proof, announced = announced_proof.proof, announced_proof.announcement
        challenge = proof.challenge
        points += (proof.a_bar, proof.b_bar, proof.d)
        factors += (-(a * proof.e_hat), k - a * challenge, -(a * proof.r1_hat + b * proof.r3_hat))
        announced_points += (announced.t1, announced.t2)
        shorter += (a, b)
        for index, factor in enumerate(_factors(announced_proof, len(statement.generators))):
            common[index] = common[index] - b * factor
        if announced_proof.nym is not None and announced.pseudonym is not None and announced.ut is not None:
            place, count = announced_proof.nym
            points.append(announced.pseudonym)
            factors.append(g * challenge)
            announced_points.append(announced.ut)
            shorter.append(g)
            _, total = contexts.get(place.octets, (place, _ZERO))
            contexts[place.octets] = place, total - g * place.evaluate(proof.message_hats[-count:])
    points += (statement.fixed, *statement.generators, *(place.point for place, _ in contexts.values()))
    factors += (*common, *(total for _, total in contexts.values()))
    return clear_cofactor(multiexp(points, factors) + multiexp(announced_points, shorter))


def _factors(announced_proof: AnnouncedProof, generators: int) -> list[Scalar]:
    """Of P1 + Q_1 * domain and of each generator in T2."""
    challenge, hats = announced_proof.proof.challenge, iter(announced_proof.proof.message_hats)
    shown = announced_proof.revealed
    return [challenge, *(shown[at] * challenge if at in shown else next(hats) for at in range(generators))]
