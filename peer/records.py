"""What the store keeps, as values."""

from __future__ import annotations

from enum import StrEnum

from attrs import field, frozen

from anon.documents import SignedHead, encode_chain, parse_chain
from anon.invite import Invite
from anon.ldp import NanoEpsilon
from anon.messages import SealedPacket
from anon.study.manifest import Manifest
from peer.checks import vetted_manifest
from peer.ledger import Entry
from peer.session import State

COVER_FROM = 256
"""Cover traffic stands in the outbox under numbers from here on: slots are at most 255."""


class Status(StrEnum):
    """What became of a slot's packet."""

    QUEUED = "queued"
    DELIVERED = "delivered"
    INCLUDED = "included"  # found in the transcript
    NOT_INCLUDED = "not-included"  # acknowledged, but the signed transcript does not have it
    REFUSED = "refused"  # the aggregator's word says why
    GIVEN_UP = "given-up"  # never acknowledged, retries or window used up; the charge stays
    MISSED = "missed"  # never made: nothing was charged
    STOPPED = "stopped"  # in the outbox when the study was stopped; the charge stays


@frozen
class Study:
    """One study as stored. `credential` is A || e; `draws` the survey of every slot once checked."""

    study: bytes
    address: str
    aggregator: bytes
    manifest_bytes: bytes = field(repr=False)
    state: State
    reason: str
    consented: NanoEpsilon
    minimum_cohort: int
    secrets: bytes | None = field(repr=False)
    enrolment: bytes | None = field(repr=False)
    withdrawal: bytes | None = field(repr=False)
    due: float
    chain_bytes: bytes | None = field(repr=False)
    roster_digest: bytes | None = field(repr=False)
    seed: bytes | None = field(repr=False)
    credential: bytes | None = field(repr=False)
    draws: tuple[int, ...]
    snapshot: bytes | None = field(repr=False)
    barred: bool

    @property
    def manifest(self) -> Manifest:
        """The manifest, vetted when it was consented to."""
        return vetted_manifest(self.manifest_bytes)

    @property
    def unchecked(self) -> bool:
        """Whether nothing can have been released yet, as far as is known here."""
        return self.state in (State.CONSENTED, State.ENROLLED)

    @property
    def invite(self) -> Invite:
        """Where the aggregator is and what was pinned (without the code)."""
        return Invite(self.address, self.aggregator, self.study)

    @property
    def chain(self) -> tuple[SignedHead, ...]:
        """The signed heads seen so far."""
        return parse_chain(self.chain_bytes, self.aggregator, self.study) if self.chain_bytes else ()


@frozen
class Joining:
    """What consent stores in one transaction: the reservation, the secrets, the exact enrolment bytes, and the signed
    heads that the manifest came under, which every later chain must continue."""

    entry: Entry
    invite: Invite
    manifest_bytes: bytes = field(repr=False)
    minimum_cohort: int
    secrets: bytes = field(repr=False)
    enrolment: bytes = field(repr=False)
    due: float
    chain: bytes = field(repr=False)


@frozen
class Verified:
    """What the checks established, to be stored with the snapshot and the first packets."""

    chain: tuple[SignedHead, ...] = field(repr=False)
    roster_digest: bytes
    seed: bytes
    credential: bytes = field(repr=False)
    draws: tuple[int, ...]

    @property
    def chain_bytes(self) -> bytes:
        """For the store."""
        return encode_chain(self.chain)


@frozen
class Queued:
    """A slot in the outbox, or its receipt once `sealed` is erased; or a dummy, which has a number from `COVER_FROM` on
    in place of a slot, the first survey of its window, and costs nothing."""

    slot: int
    survey: int
    epsilon: NanoEpsilon
    sealed: SealedPacket | None = field(repr=False)
    digest: bytes | None = field(repr=False)
    send_at: float
    attempts: int
    status: Status
    word: str
