"""A study's tellers and sums, as its manifest names them: canonical bytes that every teller countersigns.

    [2, minimum, [[name, address, key, sealing key, commitment], ...],
        [[round, slot, kind, [parameter, ...], numerator, denominator], ...]]
    [3, minimum, [first entry, ...], [second entry, ...], [sum, ...]]

The second form has three tellers, the last of them a *spare*: any two make a sum. Each pair is an arrangement of its
own, under keys of its own, so every teller has an entry for each of its two pairs (`PAIRS`, `anon.sharing.quorum`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from attrs import field

from anon.credential import token_size
from anon.crypto import labels
from anon.crypto.sealing import PUBLIC_KEY_SIZE
from anon.errors import InvalidValue, Malformed
from anon.text.foreign import folded
from anon.values import frozen
from anon.vdaf.binding import sharing_context
from anon.vdaf.circuits import BALL, BLOCKS, Ball, Blocks
from anon.vdaf.flp import ProofSystem
from anon.vdaf.prio3 import Prio3
from anon.wire.addresses import teller_address_fault
from anon.wire.cbor import decode, encode, sha256
from anon.wire.packets import MOST_ROUNDS, MOST_SLOTS, MOST_TELLERS, VERSION, Layout, Occasion

KEY_SIZE, COMMITMENT_SIZE = 32, 32
LEAST_TELLERS, LEAST_MEMBERS = 2, 2
MOST_MEMBERS = 1_000_000
LONGEST_TEXT, LONGEST_VECTOR, LARGEST_NUMBER = 200, 2**16, 2**64
LONGEST_PROOF = 2**13
"""Elements. The shortest proof of the longest vector has fewer; another chunk would make a proof that fills the memory
or takes minutes, of a vector of a few entries too."""
ALGORITHMS = {"blocks": BLOCKS, "ball": BALL}
SPARE_VERSION, TELLERS_WITH_SPARE = 3, 3
PAIRS = ((0, 1), (0, 2), (1, 2))
"""The pairs of three tellers, in the order in which they are asked for a sum."""
MOST_SUMS_WITH_SPARE = 2
"""One teller that breaks its word can complete a sum in both of its pairs. Honest ones complete one."""


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
        if not 0 < len(self.name) <= LONGEST_TEXT or not self.name.isprintable():
            raise InvalidValue(f"teller's name: expected a line of at most {LONGEST_TEXT} characters")
        if fault := teller_address_fault(self.address):
            raise InvalidValue(f"teller's address: {fault}")
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
        if ProofSystem(self.circuit).length > LONGEST_PROOF:
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

    Every packet of a study has one size, so all its sums have shares of the same lengths. `second`: with a spare, each
    teller's entry for its second pair; `tellers` are those for the first. Without one it is empty.

    Two tellers, and one sum of vectors that have a single one among ten cells:

    >>> def teller(number):
    ...     place = f"127.0.0.1:{8000 + number}"
    ...     return TellerEntry(f"Teller {number}", place, *(bytes([number] * size) for size in (32, 1216, 32)))
    >>> sums = (Sum(0, 0, "blocks", (4, 10), sigma_squared=Fraction(100)),)
    >>> arrangement = Arrangement(20, (teller(1), teller(2)), sums)
    >>> parse_arrangement(arrangement.to_bytes()) == arrangement, arrangement.layout(packets=1).shares
    (True, (432, 64))
    """

    minimum: int
    tellers: tuple[TellerEntry, ...]
    sums: tuple[Sum, ...]
    second: tuple[TellerEntry, ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.second:
            self._demand_pairs()
        if not LEAST_TELLERS <= len(self.tellers) <= MOST_TELLERS:
            raise InvalidValue(f"tellers: expected {LEAST_TELLERS} to {MOST_TELLERS}, got {len(self.tellers)}")
        if len({folded(teller.name) for teller in self.tellers}) != len(self.tellers):
            raise InvalidValue("tellers: expected a different name for each, also to the eye")
        for what in ("key", "sealing_key", "commitment"):
            if len({getattr(teller, what) for teller in self.tellers}) != len(self.tellers):
                raise InvalidValue(f"tellers: expected a different {what} for each")
        if len({teller.address for teller in self.tellers}) != len(self.tellers):
            raise InvalidValue("tellers: expected a different address for each; two at one address are one teller")
        if not LEAST_MEMBERS <= self.minimum <= MOST_MEMBERS:
            raise InvalidValue(f"minimum: expected {LEAST_MEMBERS} to {MOST_MEMBERS}")
        places = [(planned.round, planned.slot) for planned in self.sums]
        if not places or places != sorted(set(places)):
            raise InvalidValue("sums: expected at least one, each round and slot once, in order")
        if len({self._share_sizes(planned) for planned in self.sums}) != 1:
            raise InvalidValue("sums: expected shares of the same lengths in all of them")

    @property
    def has_spare(self) -> bool:
        """True where any two of three tellers make a sum."""
        return bool(self.second)

    @cached_property
    def groups(self) -> tuple[Arrangement, ...]:
        """The tellers that make a sum together: all of them, or with a spare each pair, in the order of `PAIRS`."""
        if not self.has_spare:
            return (self,)
        entries = [[first, second] for first, second in zip(self.tellers, self.second, strict=True)]
        taken = [tuple(entries[teller].pop(0) for teller in pair) for pair in PAIRS]
        return tuple(Arrangement(self.minimum, pair, self.sums) for pair in taken)

    @property
    def summing(self) -> int:
        """How many tellers make a sum together. The noise of each of them is in it."""
        return len(PAIRS[0]) if self.has_spare else len(self.tellers)

    @property
    def most_sums(self) -> int:
        """How many sums of one round and slot can come out, whatever one teller does that breaks its word."""
        return MOST_SUMS_WITH_SPARE if self.has_spare else 1

    @property
    def public_size(self) -> int:
        """Bytes of the public part of a packet, all groups together."""
        return self._share_sizes(self.sums[0])[0]

    def sum_of(self, occasion: Occasion) -> Sum:
        """The sum of an occasion. Raises `Malformed` if there is none."""
        for planned in self.sums:
            if (planned.round, planned.slot) == (occasion.round, occasion.slot):
                return planned
        raise Malformed("no sum of this round and slot in the study")

    def prio3(self, asked: Sum) -> Prio3:
        """How the vectors of a sum are shared and verified."""
        return Prio3(asked.circuit, self.summing, ALGORITHMS[asked.kind])

    def context(self, occasion: Occasion) -> bytes:
        """The context that the shares of an occasion are bound to. Raises `ValueError` with a spare: a pair has one."""
        if self.has_spare:
            raise ValueError("shares belong to a pair of tellers; ask its quorum")
        instance = self.prio3(self.sum_of(occasion))
        return sharing_context(occasion.study, occasion.round, occasion.slot, instance)

    def layout(self, packets: int) -> Layout:
        """The lengths of the study's packets, where a member sends at most so many."""
        report, *shares = self._share_sizes(self.sums[0])
        return Layout(report, tuple(shares), token_size(packets))

    def to_bytes(self) -> bytes:
        """The canonical bytes."""
        parts = (self.tellers, self.second, self.sums)
        tellers, second, sums = ([entry.as_plain() for entry in part] for part in parts)
        if self.has_spare:
            return encode([SPARE_VERSION, self.minimum, tellers, second, sums])
        return encode([VERSION, self.minimum, tellers, sums])

    def _share_sizes(self, asked: Sum) -> tuple[int, ...]:
        """Of the public part and of each share, all groups one after the other."""
        prio3, groups = self.prio3(asked), len(PAIRS) if self.has_spare else 1
        shares = (prio3.leader_share_size, *(prio3.helper_share_size,) * (prio3.shares - 1))
        return (groups * prio3.public_share_size, *groups * shares)

    def _demand_pairs(self) -> None:
        if len(self.tellers) != TELLERS_WITH_SPARE or len(self.second) != TELLERS_WITH_SPARE:
            raise InvalidValue(f"tellers: with a spare expected {TELLERS_WITH_SPARE}, each with two entries")
        for first, second in zip(self.tellers, self.second, strict=True):
            if (first.name, first.address, first.key) != (second.name, second.address, second.key):
                raise InvalidValue("tellers: expected both entries of one teller to have its name, address and key")
        for what in ("sealing_key", "commitment"):
            if len({getattr(entry, what) for entry in (*self.tellers, *self.second)}) != 2 * TELLERS_WITH_SPARE:
                raise InvalidValue(f"tellers: expected another {what} for each pair")


def parse_entry(data_untrusted: bytes) -> TellerEntry:
    """A teller's entry from its canonical bytes. Raises `Malformed`."""
    return TellerEntry(*_fields(decode(data_untrusted, "teller's entry"), (str, str, bytes, bytes, bytes)))


def parse_arrangement(data_untrusted: bytes) -> Arrangement:
    """An arrangement from its canonical bytes. Raises `Malformed`."""
    plain, second = decode(data_untrusted, "arrangement"), []
    if isinstance(plain, list) and len(plain) == 5:
        version, minimum, tellers, second, sums = _fields(plain, (int, int, list, list, list))
    else:
        version, minimum, tellers, sums = _fields(plain, (int, int, list, list))
    if version != (SPARE_VERSION if second else VERSION):
        raise Malformed(f"arrangement: expected version {VERSION}, or {SPARE_VERSION} with a spare")
    return Arrangement(minimum, _entries(tellers), tuple(map(_sum, sums)), _entries(second))


def _entries(plain_untrusted: Sequence[object]) -> tuple[TellerEntry, ...]:
    return tuple(TellerEntry(*_fields(entry, (str, str, bytes, bytes, bytes))) for entry in plain_untrusted)


def _sum(plain_untrusted: object) -> Sum:
    fields = _fields(plain_untrusted, (int, int, str, list, int, int))
    round_number, slot, kind, parameters, numerator, denominator = fields
    if not all(type(number) is int for number in parameters) or denominator < 1:
        raise Malformed("arrangement: expected integers as parameters, and a denominator of 1 or more")
    noise = Fraction(numerator, denominator)
    # Two spellings of one variance would be two arrangements, and two digests to sign.
    if (noise.numerator, noise.denominator) != (numerator, denominator):
        raise Malformed("arrangement: expected a variance in lowest terms")
    return Sum(round_number, slot, kind, tuple(parameters), noise)


def _fields(plain_untrusted: object, kinds: Sequence[type]) -> list[Any]:
    if not isinstance(plain_untrusted, list) or [type(value) for value in plain_untrusted] != list(kinds):
        raise Malformed(f"arrangement: expected {len(kinds)} fields of the documented kinds")
    return plain_untrusted


def key_commitment(key: bytes, part: bytes) -> bytes:
    """A teller's commitment to its part of the verification key; its own lasting key is in it, so none is copied."""
    return sha256(labels.KEY_COMMITMENT, key, part)


def verification_key(study: bytes, parts: Sequence[bytes]) -> bytes:
    """The key that proofs are checked under: uniform if one part is, and fixed by the commitments in the manifest."""
    return sha256(labels.VERIFICATION_KEY, study, *parts)
