"""The verification of tokens. The steps are numbered; pairings can be left to `batch`. Equations are cofactored alike
in a batch and alone (`announced`).

Not decided here: whether the tag was spent, whether the slot is open, what the packet says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from anon.credential.announced import COEFFICIENTS, AnnouncedProof, fold, right_sum
from anon.credential.batch import FoldedPairings, Sums, coefficients_for, search
from anon.credential.issuance import PublicKey, decode_scalars
from anon.credential.presentation import POINTS_SIZE, Tag, token_size
from anon.credential.proof import Announcement, Proof, calculate_challenge
from anon.credential.statement import Context, Statement, make_context, nym_statement
from anon.crypto.curve import (
    G1,
    G1_SIZE,
    G2,
    IDENTITY_G1,
    NEGATED_GENERATOR_G2,
    WIDE_SIZE,
    FixedBase,
    FixedBases,
    Scalar,
    clear_cofactor,
    decode_g1_wide,
    decode_g2,
    demand_large_order,
    demand_subgroup,
    encode_scalar,
    multiexp,
    pairing_product_is_one,
    subgroup_rows,
)
from anon.crypto.labels import TOKEN_BATCH
from anon.errors import AnonmlError, Malformed, RejectedProof

BLOCK = 16
"""Tokens whose announcements are folded together once a batch failed. If most blocks fail, each token is alone."""
_ZERO = Scalar(0)
ANNOUNCED_NAMES = ("pseudonym", "Abar", "Bbar", "D", "T1", "T2", "Ut")
"""The points of a token, in their order."""


class Verifier:
    """Checks tokens under one issuer key, header (without the count) and number of nym secrets.

    Building it verifies the key and takes about 10 ms for each of the first eight generators. It is safe across
    threads. Checking holds Python's lock but for the last quarter of a batch: threads keep an event loop alive, only
    processes use a second core.
    """

    def __init__(self, public_key: PublicKey, header: bytes, count: int) -> None:
        self._key = decode_g2(public_key, "issuer key")
        self._count = count
        self._statement = nym_statement(public_key, header, count)
        self._bases = statement_bases(self._statement)

    def check(self, token_untrusted: bytes, context: bytes, presentation_header: bytes) -> Tag:
        """The token's tag. Raises `Malformed` or `RejectedProof`."""
        shown = self.read(token_untrusted, context, presentation_header)
        # 5. The announcements are those of this challenge. 6. The pairing.
        if not self._announced_rightly(shown) or not proof_pairing_holds(self._key, shown.proof):
            raise RejectedProof("token rejected")
        return Tag(token_untrusted[:G1_SIZE])

    def read(self, token_untrusted: bytes, context: bytes, presentation_header: bytes) -> AnnouncedProof:
        """A token with the challenge that it hashes to. None of its equations is checked yet.

        Raises `Malformed` or, for a challenge of zero, `RejectedProof`.
        """
        points, scalars = self._parts(token_untrusted)
        demand_subgroup(points[0], "pseudonym")
        return self._announced(points, scalars, context, presentation_header)

    def check_batch(
        self, items: Sequence[tuple[bytes, bytes, bytes]], random_bytes: Callable[[int], bytes]
    ) -> list[Tag | AnonmlError]:
        """For each (token, context, presentation header) in order: its tag, or the error `check` would raise.

        Each token is judged on its own, also when two carry one tag. All equations of the whole batch are folded with
        fresh 128-bit coefficients. So a bad token passes with probability 2^-128. A fold that fails is halved, for the
        sums of one half. `random_bytes` must be the operating system's.

        >>> items = [(token, b"slot 0", b"digest of my packet"), (token, b"slot 0", b"digest of a changed packet")]
        >>> good, bad = Verifier(credential.public_key, b"study", 1).check_batch(items, urandom)
        >>> good == token[:48], bad
        (True, RejectedProof('token rejected'))
        """
        verdicts: list[Tag | AnonmlError] = [Tag(token_untrusted[:G1_SIZE]) for token_untrusted, _, _ in items]
        opened: list[tuple[int, tuple[G1, ...], list[Scalar]]] = []
        for index, (token_untrusted, _, _) in enumerate(items):
            try:
                opened.append((index, *self._parts(token_untrusted)))
            except AnonmlError as error:
                verdicts[index] = error
        pseudonyms = b"".join(items[index][0][:WIDE_SIZE] for index, _, _ in opened)
        rows = subgroup_rows([points[:1] for _, points, _ in opened], ("pseudonym",), pseudonyms, random_bytes)
        read: list[tuple[int, AnnouncedProof]] = []
        for (index, points, scalars), row in zip(opened, rows, strict=True):
            try:
                if isinstance(row, Malformed):
                    raise row
                read.append((index, self._announced(points, scalars, *items[index][1:])))
            except AnonmlError as error:
                verdicts[index] = error
        # The challenge stands for header and context, which a token does not hold.
        shown = b"".join(items[index][0] + encode_scalar(announced.proof.challenge) for index, announced in read)
        for place in self._failures([announced for _, announced in read], shown, random_bytes):
            verdicts[read[place][0]] = RejectedProof("token rejected")
        return verdicts

    def _failures(
        self, proofs: Sequence[AnnouncedProof], shown: bytes, random_bytes: Callable[[int], bytes]
    ) -> list[int]:
        """The places of those with an equation that does not hold."""
        if not proofs:
            return []
        drawn = coefficients_for(TOKEN_BATCH, COEFFICIENTS * len(proofs), shown, random_bytes)
        whole = fold(self._statement, proofs, drawn)
        if whole.holds(self._key):
            return []
        shares = drawn[COEFFICIENTS - 1 :: COEFFICIENTS]

        def errors(part: range) -> G1:
            own = list(drawn[COEFFICIENTS * part.start : COEFFICIENTS * part.stop])
            own[COEFFICIENTS - 1 :: COEFFICIENTS] = [_ZERO] * len(part)
            return right_sum(self._statement, proofs[part.start : part.stop], own)

        def paired(part: range) -> FoldedPairings:
            own, shown = shares[part.start : part.stop], [proofs[place].proof for place in part]
            left = clear_cofactor(multiexp([proof.a_bar for proof in shown], own))
            return FoldedPairings(left, clear_cofactor(multiexp([proof.b_bar for proof in shown], own)))

        # Announcements first: their errors are points, which no pairing has to find.
        every = range(len(proofs))
        right = clear_cofactor(multiexp([announced.proof.b_bar for announced in proofs], shares))
        bad: set[int] = set()
        if whole.right != right:
            bad.update(_blockwise(every, whole.right - right, errors, lambda error: error == IDENTITY_G1))
        pairings = whole_pairs = FoldedPairings(whole.left, right)
        for place in bad:
            pairings -= paired(range(place, place + 1))
        if not pairings.holds(self._key):
            bad.update(_blockwise(every, whole_pairs, paired, lambda sums: sums.holds(self._key)))
        return sorted(bad)

    def _parts(self, token_untrusted: bytes) -> tuple[tuple[G1, ...], list[Scalar]]:
        """The seven points, on the curve, and the scalars. Of the pseudonym the subgroup is still to be tested."""
        # 1. Exact length. 2. The scalars: from 1 to r-1.
        self._demand_length(token_untrusted)
        scalars = decode_scalars(token_untrusted[POINTS_SIZE:], "proof scalar")
        # 3. The points: canonical, on the curve, not the identity.
        starts = range(0, POINTS_SIZE, WIDE_SIZE)
        encoded = (token_untrusted[start : start + WIDE_SIZE] for start in starts)
        points = tuple(map(decode_g1_wide, encoded, ANNOUNCED_NAMES))
        # Nothing of a signature is in an Abar of small order: without this anybody makes tokens.
        demand_large_order(points[1], "Abar")
        return points, scalars

    def _announced(
        self, points: tuple[G1, ...], scalars: Sequence[Scalar], context: bytes, presentation_header: bytes
    ) -> AnnouncedProof:
        # 4. The pseudonym came from the subgroup, and all that is shown is hashed.
        pseudonym, a_bar, b_bar, d, t1, t2, ut = points
        place, announcement = make_context(context), Announcement(t1, t2, pseudonym, ut)
        challenge = calculate_challenge(
            self._statement, (a_bar, b_bar, d), announcement, {}, presentation_header, place
        )
        # The drafts' proofs spell a challenge from 1 to r-1. Here it is computed, so zero is refused by hand.
        if challenge.is_zero():
            raise RejectedProof("token rejected")
        e_hat, r1_hat, r3_hat, *message_hats = scalars
        proof = Proof(a_bar, b_bar, d, e_hat, r1_hat, r3_hat, tuple(message_hats), challenge)
        return AnnouncedProof(proof, announcement, (place, self._count))

    def _announced_rightly(self, shown: AnnouncedProof) -> bool:
        """True if the announcements are those of the challenge and the responses."""
        proof, announcement = shown.proof, shown.announcement
        nym = None
        if shown.nym is not None and announcement.pseudonym is not None:
            place, count = shown.nym
            own = announcement.pseudonym
            nym = own, announced_ut(proof, own, fixed_context(place.octets), count)
        computed = announce(proof, self._statement, self._bases, shown.revealed, nym)
        pairs = [(computed.t1, announcement.t1), (computed.t2, announcement.t2)]
        if computed.ut is not None and announcement.ut is not None:
            pairs.append((computed.ut, announcement.ut))
        return all(clear_cofactor(own - shown) == IDENTITY_G1 for own, shown in pairs)

    def _demand_length(self, token_untrusted: bytes) -> None:
        size = token_size(self._count)
        if len(token_untrusted) != size:
            raise Malformed(f"token: expected {size} bytes, got {len(token_untrusted)}; send it whole")


def _blockwise(
    every: range, total: Sums, summed: Callable[[range], Sums], holds: Callable[[Sums], bool]
) -> list[int]:
    """The places at which an equation fails, at least one: block for block, until those left hold. Where most blocks
    fail, one for one in those."""
    failing: list[tuple[range, Sums]] = []
    for at in every[::BLOCK]:
        block = every[at : at + BLOCK]
        own = summed(block)
        total = total - own
        if not holds(own):
            failing.append((block, own))
            if holds(total):
                break
    if 4 * BLOCK * len(failing) > 3 * len(every):
        singles = (range(place, place + 1) for block, _sums in failing for place in block)
        return [single.start for single in singles if not holds(summed(single))]
    return [at for block, own in failing for at in search(block, own, summed, holds, known_bad=True)]


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


def announced_ut(proof: Proof, pseudonym: G1, context: tuple[Context, FixedBase], nym_count: int) -> G1:
    """Ut = OP * poly(m^) - pseudonym * c."""
    place, base = context
    answer = base.multiply(place.evaluate(proof.message_hats[-nym_count:]))
    return answer - multiexp([pseudonym], [proof.challenge])


def announce(
    proof: Proof,
    statement: Statement,
    bases: FixedBases,
    revealed: Mapping[int, Scalar],
    nym: tuple[G1, G1] | None = None,
) -> Announcement:
    """ProofVerifyInit: the announcements that this proof's challenge and responses are about.

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
    return Announcement(t1, t2, *(nym or (None, None)))


def proof_pairing_holds(key: G2, proof: Proof) -> bool:
    """e(Abar, W) = e(Bbar, BP2), of both times the cofactor."""
    left, right = map(clear_cofactor, (proof.a_bar, proof.b_bar))
    return pairing_product_is_one([(left, key), (right, NEGATED_GENERATOR_G2)])
