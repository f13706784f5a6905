"""The document of a round of exact sums, and the one that ends a study when a round has no sum.

    [2, study, round, [[slot, list, [signature, ...], [noisy share, ...]], ...]]
    [2, study, round, why, evidence]

Signatures and shares are in the tellers' order. With a spare they are those of one pair, which the list names. Anybody
adds up from it alone, and no aggregator can add up otherwise: `anon.sharing.combine` says what each part is held to. A
list may leave out packets that were accepted. That is no fault of the document, and `demand_listed` says how many it
leaves out. The evidence is that of `Disagreement`, and empty where the tellers did not disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Any

from attrs import field

from anon.errors import InvalidValue, Malformed, RejectedProof
from anon.sharing.arrangement import Arrangement
from anon.sharing.combine import CombinedSum, combine
from anon.sharing.quorum import Quorum, quorum_of
from anon.sharing.statements import DIGEST_SIZE, list_heading, parse_disagreement, parse_list
from anon.values import frozen
from anon.wire.cbor import decode, encode
from anon.wire.lists import list_length
from anon.wire.packets import MOST_ROUNDS, MOST_SLOTS, TAG_BYTES, VERSION, Occasion

LONGEST_EVIDENCE = 2**12
_SIGNATURE_SIZE = 64
_WHAT, _WHAT_ELSE = "document of sums", "end without a sum"


class Why(StrEnum):
    """Why a round has no sum."""

    TOO_FEW = "too-few-packets"
    DISAGREED = "tellers-disagree"
    AWAY = "teller-away"
    REFUSED = "teller-refused"


@frozen
class UnsummedRound:
    """A round that never has a sum; the study ends with it. Raises `InvalidValue` for evidence without a disagreement,
    for a disagreement without evidence, and for a round out of range."""

    study: bytes
    round: int
    why: Why
    evidence: bytes = field(repr=False, default=b"")

    def __attrs_post_init__(self) -> None:
        if bool(self.evidence) != (self.why is Why.DISAGREED) or len(self.evidence) > LONGEST_EVIDENCE:
            raise InvalidValue("end without a sum: expected evidence of a disagreement, and of nothing else")
        if not 0 <= self.round < MOST_ROUNDS:
            raise InvalidValue(f"end without a sum: expected a round below {MOST_ROUNDS}")

    def to_bytes(self) -> bytes:
        """The canonical bytes."""
        return encode([VERSION, self.study, self.round, str(self.why), self.evidence])


LONGEST_UNSUMMED = 2 * LONGEST_EVIDENCE
"""Bytes."""


def parse_unsummed(arrangement: Arrangement | None, study: bytes, body_untrusted: bytes) -> UnsummedRound:
    """Why a study ended. Without tellers (`arrangement` is None) too few members wrote, and there is no other reason.
    Raises `Malformed`, and `RejectedProof` for evidence that proves nothing about this study and round."""
    fields = decode(body_untrusted, _WHAT_ELSE)
    if not isinstance(fields, list) or [type(value) for value in fields] != [int, bytes, int, str, bytes]:
        raise Malformed(f"{_WHAT_ELSE}: expected five fields of the documented kinds")
    version, named, round_number, why, evidence = fields
    known = {str(reason): reason for reason in Why}
    if (version, named) != (VERSION, study) or why not in known:
        raise Malformed(f"{_WHAT_ELSE}: of another study or version, or for a reason that this program does not know")
    if arrangement is None:
        if known[why] is not Why.TOO_FEW:
            raise Malformed(f"{_WHAT_ELSE}: for a reason that a study without tellers cannot have")
        return UnsummedRound(study, round_number, known[why], evidence)
    if all(planned.round != round_number for planned in arrangement.sums):
        raise Malformed(f"{_WHAT_ELSE}: of a round that the study does not have")
    if evidence and parse_disagreement(evidence, study, arrangement).occasion.round != round_number:
        raise RejectedProof(f"{_WHAT_ELSE}: its evidence is about another round; this proves nothing")
    return UnsummedRound(study, round_number, known[why], evidence)


@frozen
class SlotSum:
    """One slot: the list, and of each teller its signature of the list and its noisy share. Raises `InvalidValue`."""

    slot: int
    accepted: bytes = field(repr=False)
    signatures: tuple[bytes, ...] = field(repr=False)
    shares: tuple[bytes, ...] = field(repr=False)

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.slot < MOST_SLOTS:
            raise InvalidValue(f"sum of a slot: expected a slot below {MOST_SLOTS}")


@frozen
class RoundSums:
    """All slots of a round, in order."""

    study: bytes
    round: int
    slots: tuple[SlotSum, ...]

    def to_bytes(self) -> bytes:
        """The canonical bytes."""
        rows = [
            [slot_sum.slot, slot_sum.accepted, list(slot_sum.signatures), list(slot_sum.shares)]
            for slot_sum in self.slots
        ]
        return encode([VERSION, self.study, self.round, rows])


def read_round_sums(body_untrusted: bytes, study: bytes, round_number: int) -> RoundSums:
    """The parts of the document, held to its form alone. Raises `Malformed`."""
    fields = decode(body_untrusted, _WHAT)
    if not isinstance(fields, list) or len(fields) != 4 or fields[:3] != [VERSION, study, round_number]:
        raise Malformed(f"{_WHAT}: of another study, round or version")
    rows = fields[3] if isinstance(fields[3], list) else []
    slots = tuple(map(_slot, rows))
    if not slots or any(slot_sum.slot >= following.slot for slot_sum, following in pairwise(slots)):
        raise Malformed(f"{_WHAT}: expected at least one slot, each once, in order")
    return RoundSums(study, round_number, slots)


def parse_round_sums(
    arrangement: Arrangement, study: bytes, round_number: int, body_untrusted: bytes
) -> Mapping[int, CombinedSum]:
    """By slot, the sum. Every slot of the round is there, and nothing else.

    Raises `Malformed`, and `RejectedProof` for a signature or a share that is not its teller's, for this list.
    """
    document = read_round_sums(body_untrusted, study, round_number)
    asked = [planned.slot for planned in arrangement.sums if planned.round == round_number]
    if [slot_sum.slot for slot_sum in document.slots] != asked:
        raise Malformed(f"{_WHAT}: expected the slots {asked} of round {round_number}")
    sums = {}
    for slot_sum in document.slots:
        quorum = _summed_by(arrangement, study, slot_sum)
        occasion = quorum.occasion(Occasion(study, round_number, slot_sum.slot))
        sums[slot_sum.slot] = combine(
            quorum.arrangement, occasion, slot_sum.accepted, slot_sum.signatures, slot_sum.shares
        )
    return sums


def _summed_by(arrangement: Arrangement, study: bytes, slot: SlotSum) -> Quorum:
    """The tellers whose sum it is. Raises `Malformed` for a list of no tellers of the study."""
    if not arrangement.has_spare:
        return Quorum(study, arrangement)
    return quorum_of(study, arrangement, list_heading(slot.accepted).study)


def demand_listed(
    arrangement: Arrangement,
    study: bytes,
    round_number: int,
    body_untrusted: bytes,
    members: int,
    tags: Mapping[int, Sequence[bytes]] | None,
) -> Mapping[int, int]:
    """By slot, how many of the published packets the sum leaves out. `members`: those of the roster; `tags`: by slot,
    those of its transcript, None where no transcript is published yet.

    Raises what `parse_round_sums` does, and `Malformed` for a list of more than the members, or with a tag that no
    transcript has.
    """
    parse_round_sums(arrangement, study, round_number, body_untrusted)
    left_out = {}
    for slot_sum in read_round_sums(body_untrusted, study, round_number).slots:
        occasion = _summed_by(arrangement, study, slot_sum).occasion(Occasion(study, round_number, slot_sum.slot))
        summed = parse_list(slot_sum.accepted, occasion).tags
        if len(summed) > members:
            raise Malformed(f"{_WHAT}: {len(summed)} vectors in slot {slot_sum.slot}, of {members} members")
        if tags is None:
            continue
        published = frozenset(tags.get(slot_sum.slot, ()))
        if strangers := len(frozenset(summed) - published):
            strays = f"{strangers} packets of slot {slot_sum.slot}"
            raise Malformed(f"{_WHAT}: {strays} were summed and are in no transcript")
        left_out[slot_sum.slot] = len(published) - len(summed)
    return left_out


def longest_round_sums(arrangement: Arrangement, round_number: int, members: int) -> int:
    """Bytes of the document of a round in which so many members are summed: no honest one is longer."""
    slots = [planned.slot for planned in arrangement.sums if planned.round == round_number]
    asked = [_longest_slot(arrangement, slot, round_number, members) for slot in slots]
    return len(RoundSums(bytes(32), round_number, tuple(asked)).to_bytes())


def _longest_slot(arrangement: Arrangement, slot: int, round_number: int, members: int) -> SlotSum:
    occasion = Occasion(bytes(32), round_number, slot)
    heading, digest = occasion.heading(), bytes(DIGEST_SIZE)
    tags = len(encode([*heading, 0])) - 1 + list_length(members, len(encode(bytes(TAG_BYTES))))
    circuit = arrangement.prio3(arrangement.sum_of(occasion)).circuit
    share = bytes(circuit.field.size * circuit.output_length)
    tellers = range(arrangement.summing)
    return SlotSum(
        slot,
        bytes(tags),
        tuple(_statement([*heading, teller, digest]) for teller in tellers),
        tuple(_statement([*heading, teller, digest, share]) for teller in tellers),
    )


def _statement(body: Sequence[Any]) -> bytes:
    return encode([encode(list(body)), bytes(_SIGNATURE_SIZE)])


def _slot(row_untrusted: object) -> SlotSum:
    row = row_untrusted
    if not isinstance(row, list) or [type(value) for value in row] != [int, bytes, list, list]:
        raise Malformed(f"{_WHAT}: expected four fields for each slot")
    slot, accepted, signatures, shares = row
    if not all(type(part) is bytes for part in (*signatures, *shares)):
        raise Malformed(f"{_WHAT}: expected signatures and shares as byte strings")
    return SlotSum(slot, accepted, tuple(signatures), tuple(shares))
