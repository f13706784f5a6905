"""Credentials of others, checked by anybody: each against its commitment, and all of them in one pairing check.

An issuer could give one member a good credential and everybody else garbage. All would stop but that one, and the only
token would name its sender. Nothing about a signature is secret but its holder's use of it, so everybody checks all.

The equation. A member's commitment is C = Q_2 * blind + sum of J_i * nym_i, and only C is known. The signature (A, e)
under W = BP2 * sk signs

    B = P1 + Q_1 * domain + C + J_N * entropy,

in which everything is public: the domain is a hash of key, generators and header, the entropy a hash of seed and
enrolment. It is valid when A * (sk + e) = B, which a pairing shows without sk: e(A, W) = e(B - A * e, BP2). It is the
equation that the holder checks (`credential.signature_holds`), because its B is this one.

The fold. For coefficients c_i of 128 bits, drawn after all points are fixed, the product

    e(sum of A_i * c_i, W) * e(sum of B_i * c_i - sum of A_i * (c_i * e_i), -BP2) = 1

says that the sum of c_i * X_i is the identity, where X_i = A_i * (sk + e_i) - B_i. Every A_i, C_i and W was decoded in
its subgroup of prime order r, so every X_i lies there. Suppose that some X_j is not the identity. Then for each choice
of the other coefficients at most one c_j in 0 .. 2^128 - 1 makes the sum the identity. The reason is that r is beyond
2^128. So a list with a bad credential passes with probability 2^-128 at most (the coefficients being a hash of fresh
randomness, as in `batch`). A point of small order cannot cancel against another one: subgroups are checked
before, in a long list by one test of all points that errs as seldom (`subset_sums`), else point by point. The part
that all B have in common is multiplied once, by the sums of coefficients and of entropies.

A B that is the identity would hold for e = -sk and any A. An entropy is a hash of seed and roster, and with them of C,
so that nobody brings it about. A holder refuses it for itself (`credential.finalize`); here no equation looks for it.

Not shown: that somebody knows what C commits to (the issuer checks that proof, and it is not published), and that the
members are different people.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anon.credential.batch import FoldedPairings, coefficients_for, search
from anon.credential.issuance import PublicKey
from anon.credential.statement import nym_statement
from anon.crypto.curve import (
    G1,
    G1_SIZE,
    Scalar,
    decode_g1_rows,
    decode_g2,
    decode_scalar,
    multiexp,
)
from anon.crypto.labels import CREDENTIAL_BATCH
from anon.errors import Malformed
from anon.values import frozen

_POINTS = ("signature A", "commitment")
AT_ONCE = 4096
"""Credentials in one fold: a bound on memory (about 4 MB), at the cost of one more pairing check for each so many."""


@frozen
class IssuedCredential:
    """A member's credential as everybody sees it: C (48 bytes), A || e (80 bytes) and the signer's entropy (32)."""

    commitment: bytes
    signature: bytes
    entropy: bytes


@frozen
class _Equation:
    """One decoded credential: A, e, C and the entropy."""

    signature: tuple[G1, Scalar]
    commitment: G1
    entropy: Scalar


class IssuedChecker:
    """Checks credentials under one issuer key, header (without the count) and number of nym secrets.

    Raises `Malformed` for a key that is not canonical, outside its subgroup or the identity.
    """

    def __init__(self, public_key: PublicKey, header: bytes, count: int) -> None:
        self._key = decode_g2(public_key, "issuer key")
        statement = nym_statement(public_key, header, count)
        self._common = (statement.fixed, statement.generators[-1])

    def bad(
        self, issued: Sequence[IssuedCredential], random_bytes: Callable[[int], bytes], most: int | None = None
    ) -> list[int]:
        """The places of those that their holder could not use, in order; the first `most` if given.

        Bad: a point or scalar that is not canonical, out of range, outside the subgroup or the identity, or a signature
        that is not the key's on this commitment. `random_bytes` must be the operating system's.
        """
        places: list[int] = []
        for start in range(0, len(issued), AT_ONCE):
            part = issued[start : start + AT_ONCE]
            places += [start + index for index in self._bad_of_part(part, random_bytes, most)]
            if most is not None and len(places) >= most:
                return places[:most]
        return places

    def _bad_of_part(
        self, issued: Sequence[IssuedCredential], random_bytes: Callable[[int], bytes], most: int | None
    ) -> list[int]:
        points = decode_g1_rows(
            [(credential.signature[:G1_SIZE], credential.commitment) for credential in issued], _POINTS, random_bytes
        )
        decoded = [_equation(*each) for each in zip(issued, points, strict=True)]
        broken = [index for index, equation in enumerate(decoded) if equation is None]
        sound = [(index, equation) for index, equation in enumerate(decoded) if equation is not None]
        if not sound:
            return broken
        equations = [equation for _place, equation in sound]
        shown = b"".join(credential.commitment + credential.signature for credential in issued)
        coefficients = coefficients_for(CREDENTIAL_BATCH, len(equations), shown, random_bytes)

        def summed(part: range) -> FoldedPairings:
            own = slice(part.start, part.stop)
            return _folded(equations[own], coefficients[own], self._common)

        whole = range(len(equations))
        found = search(whole, summed(whole), summed, lambda sums: sums.holds(self._key), most)
        return sorted([*broken, *(sound[index][0] for index in found)])


def _equation(issued: IssuedCredential, points: tuple[G1, ...] | Malformed) -> _Equation | None:
    """None for what no holder could use whatever the key is."""
    if isinstance(points, Malformed):
        return None
    point, commitment = points
    try:
        exponent = decode_scalar(issued.signature[G1_SIZE:], "signature e")
        return _Equation((point, exponent), commitment, decode_scalar(issued.entropy, "signer nym entropy"))
    except Malformed:
        return None


def _folded(
    equations: Sequence[_Equation], coefficients: Sequence[Scalar], common: tuple[G1, G1]
) -> FoldedPairings:
    """`common`: P1 + Q_1 * domain and J_N."""
    points = [equation.signature[0] for equation in equations]
    commitments = [equation.commitment for equation in equations]
    scaled: list[Scalar] = []
    total = entropies = Scalar(0)
    for equation, c in zip(equations, coefficients, strict=True):
        scaled.append(-(c * equation.signature[1]))
        total, entropies = total + c, entropies + c * equation.entropy
    # Factors of 128 bits apart: among longer ones the library takes as long for them.
    right = multiexp([*points, *common], [*scaled, total, entropies]) + multiexp(commitments, coefficients)
    return FoldedPairings(multiexp(points, coefficients), right)
