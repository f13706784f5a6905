"""An enrolment as it is stored, and what is known of its key and invite before one is decided. Knows no packet."""

from __future__ import annotations

from attrs import field, frozen

from anon import labels
from anon.wire.cbor import sha256


@frozen
class Enrolled:
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
