"""The public subject of a signature: key, header, generators and their domain.

Signed scalars are in the order of the generators: L messages of the signer, then (blind and pseudonym scheme) the
prover's blinding factor, the committed messages and the nym secrets. The protocol uses L = 0 and no committed message.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from anon.credential.ciphersuite import (
    API_PSEUDONYM,
    P1,
    calculate_domain,
    create_generators,
    hash_to_scalar,
    i2osp8,
)
from anon.crypto.curve import G1, Scalar, hash_to_g1, multiexp
from anon.errors import Refused
from anon.values import frozen

MOST_NYM_SECRETS = 256


@frozen
class Statement:
    """Generators (without Q_1) and domain; `fixed` is P1 + Q_1 * domain, the part of B that does not vary."""

    api_id: bytes
    generators: tuple[G1, ...]
    domain: Scalar
    fixed: G1

    def base(self, scalars: Sequence[Scalar]) -> G1:
        """B of the drafts: what the signature signs. Raises `ValueError` unless there is one scalar per generator."""
        return self.fixed + multiexp(self.generators, scalars) if self.generators or scalars else self.fixed


@lru_cache(maxsize=64)
def make_statement(api_id: bytes, public_key: bytes, header: bytes, signer_count: int, blind_count: int) -> Statement:
    """A statement over `signer_count` generators and `blind_count` blind ones (0 in the core scheme).

    In the others the first blind generator is Q_2, which carries the prover's blinding factor.
    """
    first, *signer = create_generators(signer_count + 1, api_id)
    blind = create_generators(blind_count, b"BLIND_" + api_id)
    everything = (first, *signer, *blind)
    domain = calculate_domain(public_key, everything, header, api_id)
    return Statement(api_id, everything[1:], domain, P1 + first * domain)


def nym_statement(public_key: bytes, header: bytes, count: int) -> Statement:
    """The protocol's statement: no message, Q_2 and `count` nym secrets.

    The header is followed by I8(count), as draft-irtf-cfrg-bbs-per-verifier-linkability-03 does, so that the number
    of nym secrets is signed. The caller gives the header without it.
    """
    demand_count(count)
    return make_statement(API_PSEUDONYM, public_key, header + i2osp8(count), 0, count + 1)


def demand_count(count: int) -> None:
    """Raises `Refused` unless there are from 1 to 256 nym secrets."""
    if not 1 <= count <= MOST_NYM_SECRETS:
        raise Refused(f"expected 1 to {MOST_NYM_SECRETS} nym secrets, got {count}; plan fewer packets per peer")


@frozen
class Context:
    """A pseudonym context: its point, and the scalar at which the polynomial of nym secrets is evaluated."""

    octets: bytes
    point: G1
    evaluation: Scalar

    def evaluate(self, coefficients: Sequence[Scalar]) -> Scalar:
        """coefficients[0] + coefficients[1] * z + ... (Horner)."""
        total = coefficients[-1]
        for coefficient in reversed(coefficients[:-1]):
            total = total * self.evaluation + coefficient
        return total


@lru_cache(maxsize=256)
def make_context(octets: bytes) -> Context:
    """draft-irtf-cfrg-bbs-per-verifier-linkability-03, NymProofInit: OP and z. Cached: slots repeat."""
    evaluation = hash_to_scalar(octets, API_PSEUDONYM + b"VECT_NYM_SECRETS")
    return Context(octets, hash_to_g1(octets, API_PSEUDONYM), evaluation)
