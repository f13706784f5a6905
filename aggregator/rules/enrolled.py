"""An enrolment as it is stored, and what is known of its key and invite before one is decided. Knows no packet."""

from __future__ import annotations

from attrs import define, field, frozen

from anon.crypto import labels
from anon.wire.cbor import sha256


@frozen
class StoredEnrolment:
    """One stored enrolment, as issuance needs it."""

    key: bytes
    contribution: bytes
    commitment: bytes = field(repr=False)

    def check(self) -> bytes:
        """Tells a damaged row."""
        return sha256(labels.STORED_ENROLMENT, self.key, self.contribution, self.commitment)


@frozen
class Standing:
    """The stored facts about an enrolment's key and invite before it is decided.

    `digest`: of the enrolment that holds the key, if any. `invite_known`, `invite_spent_by`: about its invite.
    `withdrawn`: the key left before. `enrolled`: how many there are.
    """

    digest: bytes | None
    withdrawn: bool
    listed: bool
    invite_known: bool
    invite_spent_by: bytes | None
    enrolled: int


@frozen
class Admission:
    """One enrolment to store: the invite that it spends, and its digest, by which a repetition is recognised."""

    enrolled: StoredEnrolment
    invite: bytes = field(repr=False)
    digest: bytes = field(repr=False)


@define
class KnownEnrolments:
    """The stored facts about the keys and invites of a batch. They are kept in step while it is decided one by one.

    `digests`: of the enrolments that hold a key. `left`, `listed`: keys. `spent_by`: the key behind each known invite,
    None for a free one. `enrolled`: how many there are. `fresh`: what the batch has admitted so far.
    """

    digests: dict[bytes, bytes]
    left: frozenset[bytes]
    listed: frozenset[bytes]
    spent_by: dict[bytes, bytes | None]
    enrolled: int
    fresh: list[Admission] = field(init=False, factory=list)

    def standing(self, key: bytes, invite: bytes) -> Standing:
        """The facts about one of them, as if all before it were stored."""
        return Standing(
            self.digests.get(key),
            key in self.left,
            key in self.listed,
            invite in self.spent_by,
            self.spent_by.get(invite),
            self.enrolled,
        )

    def admit(self, admitted: Admission) -> None:
        """Count one in, and its invite as spent."""
        key = admitted.enrolled.key
        self.fresh.append(admitted)
        self.digests[key] = admitted.digest
        if admitted.invite in self.spent_by:
            self.spent_by[admitted.invite] = key
        self.enrolled += 1
