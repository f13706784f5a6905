"""Prio3: a measurement in shares, a proof that it is valid, and sums of shares. draft-irtf-cfrg-vdaf-20, section 7.2.

Bytes in, bytes out. Guarantees, for two to four parties of which number 0, the leader, holds the long share:

* **Privacy.** All shares but one, and all that is said while verifying, show nothing but that the measurement is valid;
  computationally, under the assumptions on XofTurboShake128. It holds if one party keeps its share to itself, the
  verification key was fixed before any share was opened, and the nonce was unpredictable before.
* **Robustness.** An invalid measurement is refused but with negligible probability, and a sum is right, only if every
  party is honest and no sender knows the verification key. Nothing shows that a party altered its share of a sum.

The numbers, lengths and randomness are arguments; no error quotes a value. Not constant-time: Python is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from anon.errors import Malformed, RejectedProof
from anon.vdaf.field import Field, Vector
from anon.vdaf.flp import Circuit, ProofSystem
from anon.vdaf.xof import SEED_SIZE, derive_seed, expand

VERSION = 18
"""The draft's own number of its wire format, in every separation tag."""
NONCE_SIZE = 16
KEY_SIZE = SEED_SIZE
MOST_SHARES = 4
# XofTurboShake128 writes the tag's length in two bytes, and `_separation` puts eight before the context.
MOST_CONTEXT = 65535 - 8
MEASUREMENT_SHARE, PROOF_SHARE, JOINT_RANDOMNESS = 1, 2, 3
PROVE_RANDOMNESS, QUERY_RANDOMNESS, JOINT_SEED, JOINT_PART = 4, 5, 6, 7


@dataclass(frozen=True)
class Sharing:
    """A measurement as its sender lets it go: the public share for all parties, and one input share for each of them.

    The draft calls it a report, with its nonce.
    """

    public_share: bytes
    input_shares: tuple[bytes, ...] = field(repr=False)


@dataclass(frozen=True)
class VerifyState:
    """Between the two steps of a party: its share of the output, secret, and the joint randomness it computed."""

    output_share: Vector = field(repr=False)
    joint_seed: bytes


@dataclass(frozen=True)
class Prio3:
    """One instance: a circuit, how many shares, the algorithm's number, and how many proofs for each measurement.

    Joint randomness needs one proof over a field of 128 bits, or three over one of 64 (section 9.7).

    Two parties check a vector within a ball of radius 100, and see only random numbers of it:

    >>> from os import urandom
    >>> from anon.vdaf.circuits import BALL, ball
    >>> prio3, key, nonce = Prio3(ball(2, 8, 100), 2, BALL), urandom(32), urandom(16)
    >>> sharing = prio3.shard(b"study", [60, -80], nonce, urandom(prio3.randomness_size))
    >>> shares = enumerate(sharing.input_shares)
    >>> begun = [prio3.verify_init(key, b"study", party, nonce, sharing.public_share, share) for party, share in shares]
    >>> message = prio3.verifier_shares_to_message(b"study", [verifier for _, verifier in begun])
    >>> prio3.unshard([prio3.aggregate([prio3.verify_next(state, message)]) for state, _ in begun])
    [60, -80]
    """

    circuit: Circuit
    shares: int
    algorithm: int
    proofs: int = 1

    def __post_init__(self) -> None:
        """Raises `ValueError` for numbers out of range."""
        if not 2 <= self.shares <= MOST_SHARES or not 1 <= self.proofs < 256:
            raise ValueError(f"expected 2 to {MOST_SHARES} shares, 1 to 255 proofs, got {self.shares}, {self.proofs}")

    @property
    def randomness_size(self) -> int:
        """The random bytes that `shard` takes: 32 a share, and 32 more where the circuit takes joint randomness."""
        return self.shares * SEED_SIZE * (2 if self._joint else 1)

    @property
    def leader_share_size(self) -> int:
        """Bytes of the leader's input share."""
        elements = self.circuit.length + self._proof.length * self.proofs
        return elements * self._field.size + self._blind_size

    @property
    def helper_share_size(self) -> int:
        """Bytes of any other input share."""
        return SEED_SIZE + self._blind_size

    @property
    def public_share_size(self) -> int:
        """Bytes of the public share."""
        return self.shares * self._blind_size

    @property
    def verifier_share_size(self) -> int:
        """Bytes of a verifier share."""
        return self._proof.verifier_length * self.proofs * self._field.size + self._blind_size

    def shard(self, context: bytes, measurement: Sequence[int], nonce: bytes, randomness: bytes) -> Sharing:
        """A measurement in proven shares. `randomness`: `randomness_size` fresh bytes, used once.

        Raises `InvalidValue` for a measurement that the circuit does not accept, `ValueError` for wrong sizes.
        """
        _demand("nonce", nonce, NONCE_SIZE)
        helpers, blinds, prove_seed = self._deal(randomness)
        encoded = self.circuit.encode(measurement)
        vectors = [self._measurement(context, party, seed) for party, seed in enumerate(helpers, 1)]
        vectors.insert(0, self._rest(encoded, vectors))
        parts = [
            # Without joint randomness there are no blinds: then zip ends at once, and there are no parts.
            self._part(context, party, blind, self._field.encode(vector), nonce)
            for party, (blind, vector) in enumerate(zip(blinds, vectors, strict=False))
        ]
        wires = self._expand(PROVE_RANDOMNESS, context, prove_seed, b"", self.circuit.gadget.arity)
        proofs = self._prove(encoded, wires, self._common(context, self._seed(context, parts)))
        proofs = self._rest(proofs, [self._proofs(context, party, seed) for party, seed in enumerate(helpers, 1)])
        leader = self._field.encode(vectors[0] + proofs)
        shares = zip([leader, *helpers], blinds or [b""] * self.shares, strict=True)
        return Sharing(b"".join(parts), tuple(share + blind for share, blind in shares))

    def verify_init(
        self,
        key: bytes,
        context: bytes,
        party: int,
        nonce: bytes,
        public_share_untrusted: bytes,
        input_share_untrusted: bytes,
    ) -> tuple[VerifyState, bytes]:
        """A party's first step: its state, kept to itself, and its verifier share for the others.

        Raises `Malformed` for bytes of another form, `RejectedProof` with negligible probability.
        """
        _demand("verification key", key, KEY_SIZE)
        _demand("nonce", nonce, NONCE_SIZE)
        parts = self._split_public(public_share_untrusted)
        encoded, proofs, blind = self._split_input(context, party, input_share_untrusted)
        part = b""
        if self._joint:
            # The own part follows from the share that came, not from what the sender published of it.
            part = parts[party] = self._part(context, party, blind, self._field.encode(encoded), nonce)
        seed = self._seed(context, parts)
        queries = self._expand(QUERY_RANDOMNESS, context, key, nonce, self._proof.query_randomness)
        shares = self._query(encoded, proofs, queries, self._common(context, seed))
        return VerifyState(self.circuit.truncate(encoded), seed), self._field.encode(shares) + part

    def verifier_shares_to_message(self, context: bytes, shares_untrusted: Sequence[bytes]) -> bytes:
        """The verifier message, from every party's verifier share in the parties' order.

        Raises `Malformed` for another number or form of shares, `RejectedProof` for an invalid measurement.
        """
        if len(shares_untrusted) != self.shares:
            raise Malformed(f"expected {self.shares} verifier shares, got {len(shares_untrusted)}; collect all of them")
        each = self._proof.verifier_length
        total, parts = [0] * (each * self.proofs), []
        for share in shares_untrusted:
            end = len(share) - self._blind_size
            total = self._field.add(total, self._field.decode(share[:end], len(total), "verifier share"))
            parts.append(share[end:])
        if not all(self._proof.decide(total[at : at + each]) for at in range(0, len(total), each)):
            raise RejectedProof("the proof was not accepted")
        return self._seed(context, parts)

    def verify_next(self, state: VerifyState, message_untrusted: bytes) -> Vector:
        """A party's second step: its share of the output, to be summed.

        Raises `Malformed` for a message of another length, `RejectedProof` if the joint randomness is not the shares'.
        """
        _expect("verifier message", message_untrusted, self._blind_size)
        # A plain comparison: all parts of the seed travelled in verifier shares, so it is no secret.
        if message_untrusted != state.joint_seed:
            raise RejectedProof("the proof was not accepted")
        return state.output_share

    def aggregate(self, output_shares: Sequence[Vector]) -> bytes:
        """A party's share of the sum: the sum of its output shares, of no sharing twice."""
        total = [0] * self.circuit.output_length
        for share in output_shares:
            total = self._field.add(total, share)
        return self._field.encode(total)

    def unshard(self, aggregate_shares_untrusted: Sequence[bytes]) -> list[int]:
        """The sum, from every party's share of it: integers from minus to plus half the modulus.

        Raises `Malformed` for another number or form of shares.
        """
        if len(aggregate_shares_untrusted) != self.shares:
            raise Malformed(f"expected {self.shares} shares of a sum, got {len(aggregate_shares_untrusted)}")
        length, modulus = self.circuit.output_length, self._field.modulus
        total = [0] * length
        for share in aggregate_shares_untrusted:
            total = self._field.add(total, self._field.decode(share, length, "share of the sum"))
        return [element - modulus if element > modulus // 2 else element for element in total]

    # Parts

    @property
    def _field(self) -> Field:
        return self.circuit.field

    @property
    def _proof(self) -> ProofSystem:
        return ProofSystem(self.circuit)

    @property
    def _joint(self) -> bool:
        return self.circuit.randomness > 0

    @property
    def _blind_size(self) -> int:
        return SEED_SIZE if self._joint else 0

    def _deal(self, randomness: bytes) -> tuple[list[bytes], list[bytes], bytes]:
        """The helpers' seeds, everybody's blinds (none without joint randomness), and the prover's seed."""
        _demand("random bytes", randomness, self.randomness_size)
        *dealt, prove_seed = (randomness[at : at + SEED_SIZE] for at in range(0, len(randomness), SEED_SIZE))
        if not self._joint:
            return dealt, [], prove_seed
        # The draft's order: seed and blind of each helper, the leader's blind, and the prover's seed last.
        *pairs, leader_blind = dealt
        return pairs[::2], [leader_blind, *pairs[1::2]], prove_seed

    def _rest(self, whole: Vector, shares: Sequence[Vector]) -> Vector:
        for share in shares:
            whole = self._field.subtract(whole, share)
        return whole

    def _prove(self, encoded: Vector, seeds: Vector, common: Vector) -> Vector:
        arity, joint = self.circuit.gadget.arity, self.circuit.randomness
        return [
            element
            for number in range(self.proofs)
            for element in self._proof.prove(encoded, _part_of(seeds, number, arity), _part_of(common, number, joint))
        ]

    def _query(self, encoded: Vector, proofs: Vector, queries: Vector, common: Vector) -> Vector:
        # The party's share of the number one: constants of the circuit count once in all, not once a party.
        proof, one = self._proof, self._field.inverse(self.shares)
        return [
            element
            for number in range(self.proofs)
            for element in proof.query(
                encoded,
                _part_of(proofs, number, proof.length),
                _part_of(queries, number, proof.query_randomness),
                _part_of(common, number, self.circuit.randomness),
                one,
            )
        ]

    def _common(self, context: bytes, joint_seed: bytes) -> Vector:
        """The joint randomness of all proofs."""
        joint = self.circuit.randomness
        return self._expand(JOINT_RANDOMNESS, context, joint_seed, b"", joint) if joint else []

    def _split_public(self, share: bytes) -> list[bytes]:
        _expect("public share", share, self.public_share_size)
        return [share[at : at + SEED_SIZE] for at in range(0, len(share), SEED_SIZE)]

    def _split_input(self, context: bytes, party: int, share: bytes) -> tuple[Vector, Vector, bytes]:
        """Vector, proofs and blind of a party's input share."""
        if not 0 <= party < self.shares:
            raise ValueError(f"expected a party from 0 to {self.shares - 1}, got {party}")
        _expect("input share", share, self.helper_share_size if party else self.leader_share_size)
        end = len(share) - self._blind_size
        seed, blind, length = share[:end], share[end:], self.circuit.length
        if party:
            return self._measurement(context, party, seed), self._proofs(context, party, seed), blind
        both = self._field.decode(share[:end], length + self._proof.length * self.proofs, "input share")
        return both[:length], both[length:], blind

    def _measurement(self, context: bytes, party: int, seed: bytes) -> Vector:
        separation = self._separation(MEASUREMENT_SHARE, context)
        return expand(self._field, seed, separation, bytes([party]), self.circuit.length)

    def _proofs(self, context: bytes, party: int, seed: bytes) -> Vector:
        return self._expand(PROOF_SHARE, context, seed, bytes([party]), self._proof.length)

    def _expand(self, usage: int, context: bytes, seed: bytes, binder: bytes, each: int) -> Vector:
        """`each` elements for every proof."""
        separation = self._separation(usage, context)
        return expand(self._field, seed, separation, bytes([self.proofs]) + binder, each * self.proofs)

    def _part(self, context: bytes, party: int, blind: bytes, vector: bytes, nonce: bytes) -> bytes:
        """A party's part of the joint randomness, bound to its share."""
        return derive_seed(blind, self._separation(JOINT_PART, context), bytes([party]) + nonce + vector)

    def _seed(self, context: bytes, parts: Sequence[bytes]) -> bytes:
        """The seed of the joint randomness, from all parts; empty where the circuit takes none."""
        if not self._joint:
            return b""
        # The draft's seed of zeros: all that must not be foreseen is in the parts.
        return derive_seed(bytes(SEED_SIZE), self._separation(JOINT_SEED, context), b"".join(parts))

    def _separation(self, usage: int, context: bytes) -> bytes:
        if len(context) > MOST_CONTEXT:
            raise ValueError(f"expected a context of at most {MOST_CONTEXT} bytes, got {len(context)}")
        return bytes([VERSION, 0]) + self.algorithm.to_bytes(4, "big") + usage.to_bytes(2, "big") + context


def _part_of(vector: Vector, number: int, length: int) -> Vector:
    return vector[number * length : (number + 1) * length]


def _demand(name: str, given: bytes, size: int) -> None:
    """Our own caller's fault."""
    if len(given) != size:
        raise ValueError(f"{name}: expected {size} bytes, got {len(given)}")


def _expect(name: str, given: bytes, size: int) -> None:
    """The sender's fault."""
    if len(given) != size:
        raise Malformed(f"{name}: expected {size} bytes, got {len(given)}; send it whole")
