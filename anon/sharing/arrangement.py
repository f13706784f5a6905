"""A study's tellers and sums, as its manifest names them: canonical bytes that every teller countersigns.

    [2, minimum, [[name, address, key, sealing key, commitment], ...],
        [[round, slot, kind, [parameter, ...], numerator, denominator], ...]]
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from attrs import field, frozen

from anon import labels
from anon.credential import TokenForm, token_size
from anon.errors import InvalidValue, Malformed
from anon.sealing import PUBLIC_KEY_SIZE
from anon.vdaf.binding import sharing_context
from anon.vdaf.circuits import BALL, BLOCKS, Ball, Blocks
from anon.vdaf.flp import Proof
from anon.vdaf.prio3 import Prio3
from anon.wire.cbor import decode, encode, sha256
from anon.wire.packet_v2 import MOST_ROUNDS, MOST_SLOTS, MOST_TELLERS, VERSION, Layout, Occasion

KEY_SIZE, COMMITMENT_SIZE = 32, 32
LEAST_TELLERS, LEAST_MEMBERS = 2, 2
LONGEST_TEXT, LONGEST_VECTOR, LARGEST_NUMBER = 200, 2**16, 2**64
LONGEST_PROOF = 2**13
"""Elements. The shortest proof of the longest vector has fewer; another chunk would make a proof that fills the memory
or takes minutes, of a vector of a few entries too."""
ALGORITHMS = {"blocks": BLOCKS, "ball": BALL}


@frozen
class TellerEntry:
    """One teller as a manifest names it.

    `key`: its lasting Ed25519 key, of which its words are made. `sealing_key` and `commitment` are of this study alone;
    the commitment is to its part of the verification key. Raises `InvalidValue`.
    """

    name: str
    address: str
    key: bytes
    sealing_key: bytes = field(repr=False)
    commitment: bytes = field(repr=False)

    def __attrs_post_init__(self) -> None:
        for what, text in (("name", self.name), ("address", self.address)):
            if not 0 < len(text) <= LONGEST_TEXT or not text.isprintable():
                raise InvalidValue(f"teller's {what}: expected a line of at most {LONGEST_TEXT} characters")
        sizes = {"key": KEY_SIZE, "sealing_key": PUBLIC_KEY_SIZE, "commitment": COMMITMENT_SIZE}
        for what, size in sizes.items():
            if len(getattr(self, what)) != size:
                raise InvalidValue(f"teller's {what}: expected {size} bytes")

    def to_bytes(self) -> bytes:
        """The canonical bytes."""
        return encode(self.as_plain())

    def as_plain(self) -> list[Any]:
        """The fields, for `encode`."""
        return [self.name, self.address, self.key, self.sealing_key, self.commitment]


@frozen
class Sum:
    """One sum: its round and slot, the proven form of each vector, and the variance of *each* teller's noise.

    `kind` is "blocks" or "ball", `parameters` are those of the circuit. Raises `InvalidValue`.
    """

    round: int
    slot: int
    kind: str
    parameters: tuple[int, ...]
    sigma_squared: Fraction

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.round < MOST_ROUNDS or not 0 <= self.slot < MOST_SLOTS:
            raise InvalidValue(f"sum: expected a round below {MOST_ROUNDS} and a slot below {MOST_SLOTS}")
        if not all(0 < number < LARGEST_NUMBER for number in self.parameters):
            raise InvalidValue("sum: expected parameters of 1 or more")
        noise = (self.sigma_squared.numerator, self.sigma_squared.denominator)
        if not all(0 < number < LARGEST_NUMBER for number in noise):
            raise InvalidValue("sum: expected a variance above 0; no sum is published without noise")
        if self.circuit.output_length > LONGEST_VECTOR or self.circuit.length > 2 * LONGEST_VECTOR:
            raise InvalidValue(f"sum: expected a vector of at most {LONGEST_VECTOR} entries")
        if Proof(self.circuit).length > LONGEST_PROOF:
            raise InvalidValue(f"sum: expected a proof of at most {LONGEST_PROOF} elements; take another chunk")

    @cached_property
    def circuit(self) -> Blocks | Ball:
        """The proven form."""
        try:
            if self.kind == "blocks":
                chunk, *lengths = self.parameters
                return Blocks(tuple(lengths), chunk)
            if self.kind == "ball":
                chunk, size, bits, radius = self.parameters
                return Ball(size, bits, radius, chunk)
        except ValueError:
            raise InvalidValue(f"sum: expected the parameters of a circuit of {self.kind}") from None
        raise InvalidValue(f"sum: expected one of {', '.join(ALGORITHMS)}")

    def as_plain(self) -> list[Any]:
        """The fields, for `encode`."""
        noise = [self.sigma_squared.numerator, self.sigma_squared.denominator]
        return [self.round, self.slot, self.kind, list(self.parameters), *noise]


@frozen
class Arrangement:
    """Two to four tellers, the fewest accepted peers of a sum, and all sums. Raises `InvalidValue`.

    Every packet of a study has one size, so all its sums have shares of the same lengths.
    """

    minimum: int
    tellers: tuple[TellerEntry, ...]
    sums: tuple[Sum, ...]

    def __attrs_post_init__(self) -> None:
        if not LEAST_TELLERS <= len(self.tellers) <= MOST_TELLERS:
            raise InvalidValue(f"tellers: expected {LEAST_TELLERS} to {MOST_TELLERS}, got {len(self.tellers)}")
        for what in ("name", "key", "sealing_key", "commitment"):
            if len({getattr(teller, what) for teller in self.tellers}) != len(self.tellers):
                raise InvalidValue(f"tellers: expected a different {what} for each")
        if self.minimum < LEAST_MEMBERS:
            raise InvalidValue(f"minimum: expected at least {LEAST_MEMBERS}")
        places = [(one.round, one.slot) for one in self.sums]
        if not places or places != sorted(set(places)):
            raise InvalidValue("sums: expected at least one, each round and slot once, in order")
        if len({self._share_sizes(one) for one in self.sums}) != 1:
            raise InvalidValue("sums: expected shares of the same lengths in all of them")

    def sum_of(self, occasion: Occasion) -> Sum:
        """The sum of an occasion. Raises `Malformed` if there is none."""
        for one in self.sums:
            if (one.round, one.slot) == (occasion.round, occasion.slot):
                return one
        raise Malformed("no sum of this round and slot in the study")

    def prio3(self, asked: Sum) -> Prio3:
        """How the vectors of a sum are shared and verified."""
        return Prio3(asked.circuit, len(self.tellers), ALGORITHMS[asked.kind])

    def context(self, occasion: Occasion) -> bytes:
        """The context that the shares of an occasion are bound to."""
        instance = self.prio3(self.sum_of(occasion))
        return sharing_context(occasion.study, occasion.round, occasion.slot, instance)

    def layout(self, packets: int) -> Layout:
        """The lengths of the study's packets, where a member sends at most so many."""
        report, *shares = self._share_sizes(self.sums[0])
        return Layout(report, tuple(shares), token_size(packets, TokenForm.ANNOUNCEMENTS))

    def to_bytes(self) -> bytes:
        """The canonical bytes."""
        tellers, sums = ([one.as_plain() for one in part] for part in (self.tellers, self.sums))
        return encode([VERSION, self.minimum, tellers, sums])

    def _share_sizes(self, asked: Sum) -> tuple[int, ...]:
        prio3 = self.prio3(asked)
        helpers = (prio3.helper_share_size,) * (prio3.shares - 1)
        return (prio3.public_share_size, prio3.leader_share_size, *helpers)


def parse_entry(data_untrusted: bytes) -> TellerEntry:
    """A teller's entry from its canonical bytes. Raises `Malformed`."""
    return TellerEntry(*_fields(decode(data_untrusted, "teller's entry"), (str, str, bytes, bytes, bytes)))


def parse_arrangement(data_untrusted: bytes) -> Arrangement:
    """An arrangement from its canonical bytes. Raises `Malformed`."""
    version, minimum, tellers, sums = _fields(decode(data_untrusted, "arrangement"), (int, int, list, list))
    if version != VERSION:
        raise Malformed(f"arrangement: expected version {VERSION}")
    entries = [TellerEntry(*_fields(one, (str, str, bytes, bytes, bytes))) for one in tellers]
    return Arrangement(minimum, tuple(entries), tuple(map(_sum, sums)))


def _sum(plain_untrusted: object) -> Sum:
    fields = _fields(plain_untrusted, (int, int, str, list, int, int))
    round_number, slot, kind, parameters, numerator, denominator = fields
    if not all(type(number) is int for number in parameters) or denominator < 1:
        raise Malformed("arrangement: expected integers as parameters, and a denominator of 1 or more")
    noise = Fraction(numerator, denominator)
    if (noise.numerator, noise.denominator) != (numerator, denominator):
        raise Malformed("arrangement: expected a variance in lowest terms")
    return Sum(round_number, slot, kind, tuple(parameters), noise)


def _fields(plain_untrusted: object, kinds: Sequence[type]) -> list[Any]:
    if not isinstance(plain_untrusted, list) or [type(one) for one in plain_untrusted] != list(kinds):
        raise Malformed(f"arrangement: expected {len(kinds)} fields of the documented kinds")
    return plain_untrusted


def key_commitment(key: bytes, part: bytes) -> bytes:
    """A teller's commitment to its part of the verification key; its own lasting key is in it, so none is copied."""
    return sha256(labels.KEY_COMMITMENT, key, part)


def verification_key(study: bytes, parts: Sequence[bytes]) -> bytes:
    """The key that proofs are checked under: uniform if one part is, and fixed by the commitments in the manifest."""
    return sha256(labels.VERIFICATION_KEY, study, *parts)
