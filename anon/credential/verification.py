"""The verification of tokens. The steps are numbered; pairings can be left to `batch`.

Not decided here: whether the tag was spent, whether the slot is open, what the packet says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from anon.credential.batch import Fold, failures
from anon.credential.curve import (
    G1,
    G1_SIZE,
    G2,
    IDENTITY_G1,
    NEGATED_GENERATOR_G2,
    FixedBase,
    FixedBases,
    Scalar,
    decode_g1,
    decode_g2,
    multiexp,
    pairing_product_is_one,
)
from anon.credential.issuance import PublicKey
from anon.credential.presentation import Tag, token_size
from anon.credential.proof import Announcement, Proof, calculate_challenge, decode_proof
from anon.credential.statement import Context, Statement, make_context, nym_statement
from anon.errors import AnonmlError, Malformed, RejectedProof


class Verifier:
    """Checks tokens under one issuer key, header (without the count) and number of nym secrets. Safe across threads.

    Building it verifies the key and takes about 10 ms for each of the first eight generators. Checking holds Python's
    lock but for the last tenth of a batch: threads keep an event loop alive, only processes use a second core.
    """

    def __init__(self, public_key: PublicKey, header: bytes, count: int) -> None:
        self._key = decode_g2(public_key, "issuer key")
        self._count = count
        self._statement = nym_statement(public_key, header, count)
        self._bases = statement_bases(self._statement)

    def check(self, token_untrusted: bytes, context: bytes, presentation_header: bytes) -> Tag:
        """The token's tag. Raises `Malformed` or `RejectedProof`."""
        proof = self._check_all_but_pairing(token_untrusted, context, presentation_header)
        if not proof_pairing_holds(self._key, proof):  # 6.
            raise RejectedProof("token rejected")
        return Tag(token_untrusted[:G1_SIZE])

    def check_batch(
        self, items: Sequence[tuple[bytes, bytes, bytes]], random_bytes: Callable[[int], bytes]
    ) -> list[Tag | AnonmlError]:
        """For each (token, context, presentation header) in order: its tag, or the error `check` would raise.

        Each token is judged on its own, also when two carry one tag. The pairings of the whole batch are folded with
        fresh 128-bit coefficients, so a bad token passes with probability 2^-128; a failing fold is bisected.
        `random_bytes` must be the operating system's.
        """
        verdicts: list[Tag | AnonmlError] = []
        folds: list[Fold] = []
        for index, (token_untrusted, context, presentation_header) in enumerate(items):
            try:
                proof = self._check_all_but_pairing(token_untrusted, context, presentation_header)
            except AnonmlError as error:
                verdicts.append(error)
            else:
                verdicts.append(Tag(token_untrusted[:G1_SIZE]))
                folds.append(Fold(index, proof.a_bar, proof.b_bar))
        for index in failures(self._key, folds, random_bytes):
            verdicts[index] = RejectedProof("token rejected")
        return verdicts

    def _check_all_but_pairing(self, token_untrusted: bytes, context: bytes, presentation_header: bytes) -> Proof:
        # 1. Exact length.
        size = token_size(self._count)
        if len(token_untrusted) != size:
            raise Malformed(f"token: expected {size} bytes, got {len(token_untrusted)}; send it whole")
        # 2. The four points: canonical, in the subgroup, not the identity. 3. The scalars: from 1 to r-1.
        pseudonym = decode_g1(token_untrusted[:G1_SIZE], "pseudonym")
        proof = decode_proof(token_untrusted[G1_SIZE:], self._count + 1)
        # 4. The announcement, Ut not the identity. 5. The challenge binds everything shown.
        nym = announce_nym(proof, pseudonym, fixed_context(context), self._count)
        demand_challenge(proof, self._statement, self._bases, {}, presentation_header, (make_context(context), *nym))
        return proof


@lru_cache(maxsize=8)
def cached_verifier(public_key: PublicKey, header: bytes, count: int) -> Verifier:
    """The same verifier again for the same arguments: for worker processes, which are given bytes with each batch."""
    return Verifier(public_key, header, count)


@lru_cache(maxsize=32)
def fixed_context(context: bytes) -> tuple[Context, FixedBase]:
    """A context with its point, which gets a table once it is used much (8 ms, 2 MB). Contexts are the server's own,
    one per slot of a study."""
    place = make_context(context)
    return place, FixedBase(place.point)


def statement_bases(statement: Statement) -> FixedBases:
    """Tables for P1 + Q_1 * domain and the generators."""
    return FixedBases((statement.fixed, *statement.generators))


def announce_nym(proof: Proof, pseudonym: G1, context: tuple[Context, FixedBase], nym_count: int) -> tuple[G1, G1]:
    """The pseudonym and Ut = OP * poly(m^) - pseudonym * c (NymProofVerifyInit)."""
    place, base = context
    answer = base.multiply(place.evaluate(proof.message_hats[-nym_count:]))
    ut = answer - multiexp([pseudonym], [proof.challenge])
    if ut == IDENTITY_G1:
        raise RejectedProof("token rejected")
    return pseudonym, ut


def demand_challenge(
    proof: Proof,
    statement: Statement,
    bases: FixedBases,
    revealed: Mapping[int, Scalar],
    presentation_header: bytes,
    nym: tuple[Context, G1, G1] | None = None,
) -> None:
    """ProofVerifyInit and the challenge; raises `RejectedProof`.

    T1 = Bbar * c + Abar * e^ + D * r1^. T2 = Bv * c + D * r3^ + sum of H_j * m^_j over the hidden scalars. Here Bv =
    P1 + Q_1 * domain + sum of H_i * msg_i over the revealed ones.
    """
    challenge = proof.challenge
    hats = iter(proof.message_hats)
    factors = [
        revealed[index] * challenge if index in revealed else next(hats) for index in range(len(statement.generators))
    ]
    t1 = multiexp([proof.b_bar, proof.a_bar, proof.d], [challenge, proof.e_hat, proof.r1_hat])
    t2 = bases.combine([challenge, *factors]) + multiexp([proof.d], [proof.r3_hat])
    context, pseudonym, ut = nym if nym is not None else (None, None, None)
    announcement = Announcement(t1, t2, pseudonym, ut)
    points = (proof.a_bar, proof.b_bar, proof.d)
    if calculate_challenge(statement, points, announcement, revealed, presentation_header, context) != challenge:
        raise RejectedProof("token rejected")


def proof_pairing_holds(key: G2, proof: Proof) -> bool:
    """e(Abar, W) = e(Bbar, BP2)."""
    return pairing_product_is_one([(proof.a_bar, key), (proof.b_bar, NEGATED_GENERATOR_G2)])
