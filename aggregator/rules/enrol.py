"""Who is admitted: pure rules over what is stored about a key and an invite. Nothing here sees a packet.

An admission is idempotent: the same bytes from the same key are accepted however often they come, also after closing.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import field, frozen

from aggregator.rules.enrolled import Admission, Standing, StoredEnrolment
from aggregator.rules.refusal import PacketRefused
from aggregator.rules.unseal import StudyOpener
from anon.crypto import labels
from anon.crypto.sealing import OVERHEAD
from anon.errors import Malformed, RejectedProof
from anon.study.features import Cohort
from anon.wire.cbor import sha256
from anon.wire.invite import Invite, invite_hash
from anon.wire.messages import COMMITMENT_POINT_BYTES, Enrolment, RosterEntry, parse_enrolment
from anon.wire.messages import parse_withdrawal as read_withdrawal
from anon.wire.packets import enrolment_info, withdrawal_info
from anon.wire.replies import BUSY

LARGEST = 2048
"""Bytes of a sealed enrolment or withdrawal, beyond those of the commitment."""
PER_PACKET = 32
CODE_BYTES = 15
MOST_REMEMBERED = 10_000
"""Keys of a study that left, beyond which one that never came is not remembered: under 1 MB of rows."""


@frozen
class Applicant:
    """A well-formed enrolment, signed by its own key, with the digest that makes a repetition recognisable."""

    enrolment: Enrolment
    digest: bytes = field(repr=False)

    @property
    def stored(self) -> Admission:
        """The stored form of it."""
        enrolment = self.enrolment
        enrolled = StoredEnrolment(enrolment.key, enrolment.contribution, enrolment.commitment)
        return Admission(enrolled, enrolment.invite, self.digest)


def open_enrolment(sealed_untrusted: bytes, opener: StudyOpener, study: bytes, packets: int) -> Applicant:
    """The enrolment inside. Raises `PacketRefused`. The proof of its commitment is not checked here."""
    plaintext = _open(sealed_untrusted, opener, enrolment_info(study), packets)
    try:
        enrolment = parse_enrolment(plaintext, study, packets)
    except Malformed:
        raise PacketRefused("malformed") from None
    except RejectedProof:
        raise PacketRefused("rejected-proof") from None
    return Applicant(enrolment, sha256(labels.ENROLMENT, plaintext))


def demand_size(sealed_untrusted: bytes, packets: int) -> None:
    """Raises `PacketRefused` for a post that no enrolment and no withdrawal can be."""
    if not OVERHEAD < len(sealed_untrusted) <= largest_enrolment(packets):
        raise PacketRefused("wrong-size")


def open_withdrawal(sealed_untrusted: bytes, opener: StudyOpener, study: bytes, packets: int) -> bytes:
    """The key that leaves. Raises `PacketRefused`."""
    plaintext = _open(sealed_untrusted, opener, withdrawal_info(study), packets)
    try:
        return read_withdrawal(plaintext, study)
    except Malformed:
        raise PacketRefused("malformed") from None
    except RejectedProof:
        raise PacketRefused("rejected-proof") from None


def largest_enrolment(packets: int) -> int:
    """The most bytes that a post of this kind may have."""
    return LARGEST + PER_PACKET * packets


def decide_enrolment(applicant: Applicant, standing: Standing, cohort: Cohort, most: int, closed: bool) -> bool:
    """True to store it, False when exactly this was stored before. Raises `PacketRefused`.

    `most`: how many members the study's documents have room for (`aggregator.rules.lengths.largest_cohort`).

    Steps: 1. a repetition is acknowledged; 2. the roster is still open; 3. the key is new and has not left;
    4. admission by invite, list or open; 5. there is room.
    """
    if standing.digest == applicant.digest:  # 1.
        return False
    if closed:  # 2.
        raise PacketRefused("enrolment-closed")
    if standing.digest is not None:  # 3.
        raise PacketRefused("already-enrolled-differently")
    if standing.withdrawn:
        raise PacketRefused("not-enrolled")
    _decide_admission(standing, cohort.admission)  # 4.
    if standing.enrolled >= min(cohort.maximum, most):  # 5.
        raise PacketRefused("roster-full")
    return True


def decide_withdrawal(standing: Standing, closed: bool, remembered: int) -> bool:
    """True to strike the key off, False when it was withdrawn before. Raises `PacketRefused`.

    `remembered`: how many keys have left. A key that is not enrolled may still be on its way, on a slower circuit than
    its withdrawal: while enrolment is open it is struck off beforehand. Anybody can sign withdrawals of invented keys.
    Beyond `MOST_REMEMBERED` such a key is told to come again, which a peer does until enrolment closes. By then its
    enrolment has come, and an enrolled key is always struck off.
    """
    if standing.withdrawn:
        return False
    if closed:
        raise PacketRefused("not-enrolled" if standing.digest is None else "enrolment-closed")
    if standing.digest is None and remembered >= MOST_REMEMBERED:
        raise PacketRefused(BUSY)
    return True


def roster_entry(enrolled: StoredEnrolment) -> RosterEntry:
    """An enrolment as everyone sees it."""
    return RosterEntry(enrolled.key, enrolled.contribution, enrolled.commitment[:COMMITMENT_POINT_BYTES])


def draw_invites(
    address: str, key: bytes, study: bytes, count: int, random_bytes: Callable[[int], bytes]
) -> tuple[tuple[Invite, bytes], ...]:
    """`count` fresh invites, each with the hash to store. A code has 120 random bits and is never stored itself."""
    codes = [random_bytes(CODE_BYTES).hex() for _ in range(count)]
    return tuple((Invite(address, key, study, code), invite_hash(study, code)) for code in codes)


def _open(sealed_untrusted: bytes, opener: StudyOpener, info: bytes, packets: int) -> bytes:
    demand_size(sealed_untrusted, packets)
    try:
        return opener.open(sealed_untrusted, info)
    except Malformed:
        raise PacketRefused("sealed-to-another-key") from None


def _decide_admission(standing: Standing, admission: str) -> None:
    if admission == "invite":
        if not standing.invite_known:
            raise PacketRefused("unknown-invite")
        if standing.invite_spent_by is not None:
            raise PacketRefused("invite-spent")
    elif admission == "allow-list" and not standing.listed:
        raise PacketRefused("key-not-listed")
