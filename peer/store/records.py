"""The store's rows, as values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from attrs import field

from anon.ldp import NanoEpsilon
from anon.study.manifest import Manifest
from anon.transparency.documents import SignedHead, encode_chain, parse_chain
from anon.values import frozen
from anon.wire.invite import Invite
from anon.wire.packets import SealedPacket
from peer.rules.ledger import Entry
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.store.manifests import ManifestRefused, Manifests

COVER_FROM = 256
"""Cover traffic and blanks stand in the outbox under numbers from here on: slots are at most 255."""


@frozen
class Evaluation:
    """The content of a window's packets is being made, or was when the process was killed: once begun, it is never
    begun again. `due`: when the result is taken up, in unix seconds. `send_times`: of every slot that is answered then;
    None where nothing is left of the window. `missing`: what the packets say if there is no result
    (`peer.data.making`). All was drawn and made before the data was opened."""

    due: float
    send_times: Mapping[int, float | None]
    missing: bytes = field(repr=False)

    def to_text(self) -> str:
        """For the store."""
        return json.dumps({"due": self.due, "send_times": self.send_times, "missing": self.missing.hex()})

    @classmethod
    def from_text(cls, text: str) -> Evaluation:
        """Read back what `to_text` wrote."""
        fields = json.loads(text)
        times = {int(slot): send_at for slot, send_at in fields["send_times"].items()}
        return cls(fields["due"], times, bytes.fromhex(fields["missing"]))


@frozen(kw_only=True)
class Study:
    """One study as stored, in whichever state. `draws`: the survey of every slot; empty before the checks passed.

    Each state has a class of its own below, with what is always there in it.
    """

    study: bytes
    address: str
    aggregator: bytes
    manifest_bytes: bytes = field(repr=False)
    state: State
    reason: str
    consented: NanoEpsilon
    minimum_cohort: int
    chain_bytes: bytes = field(repr=False)
    draws: tuple[int, ...]
    barred: bool
    manifests: Manifests = field(repr=False, eq=False)

    @property
    def manifest(self) -> Manifest:
        """The manifest, vetted once. Raises `ManifestRefused` for one that only an earlier program accepted."""
        parsed = self.manifests.of(self.study, self.manifest_bytes)
        if isinstance(parsed, ManifestRefused):
            raise parsed
        return parsed

    @property
    def refused(self) -> str:
        """Why this program refuses the manifest; empty when it does not. Lists of studies ask this first."""
        parsed = self.manifests.of(self.study, self.manifest_bytes)
        return str(parsed) if isinstance(parsed, ManifestRefused) else ""

    @property
    def unchecked(self) -> bool:
        """True if nothing can have been released yet, as far as is known here."""
        return self.state in (State.CONSENTED, State.ENROLLED)

    @property
    def has_answers(self) -> bool:
        """True if answers that were worked out are stored here."""
        return False

    @property
    def invite(self) -> Invite:
        """Where the aggregator is and what was pinned (without the code)."""
        return Invite(self.address, self.aggregator, self.study)

    @property
    def chain(self) -> tuple[SignedHead, ...]:
        """The signed heads seen so far."""
        return parse_chain(self.chain_bytes, self.aggregator, self.study) if self.chain_bytes else ()


@frozen(kw_only=True)
class OpenStudy(Study):
    """A study whose keys are still there. `secrets` are closed by the vault."""

    secrets: bytes = field(repr=False)


@frozen(kw_only=True)
class JoinedStudy(OpenStudy):
    """Nothing was released yet. `due`: when the enrolment leaves, or the closed roster is fetched. `snapshot`: the
    answers that a backup fixed, None without one."""

    due: float
    snapshot: bytes | None = field(repr=False)

    @property
    def has_answers(self) -> bool:
        """See `Study`."""
        return self.snapshot is not None


@frozen(kw_only=True)
class ConsentedStudy(JoinedStudy):
    """The enrolment is stored, and the aggregator has not acknowledged it."""

    enrolment: bytes = field(repr=False)


@frozen(kw_only=True)
class EnrolledStudy(JoinedStudy):
    """The aggregator has the enrolment; the roster is not checked yet."""


@frozen(kw_only=True)
class MemberStudy(OpenStudy):
    """The checks passed. `credential` is A || e."""

    roster_digest: bytes = field(repr=False)
    seed: bytes = field(repr=False)
    credential: bytes = field(repr=False)


@frozen(kw_only=True)
class EvaluatingStudy(MemberStudy):
    """The content of a window's packets is being made. `snapshot`: the answers that an earlier window or a backup
    fixed, None without one."""

    evaluation: Evaluation
    snapshot: bytes | None = field(repr=False)

    @property
    def has_answers(self) -> bool:
        """See `Study`."""
        return self.snapshot is not None


@frozen(kw_only=True)
class AnsweringStudy(MemberStudy):
    """Some slot is not decided, so what it is answered from is still there."""

    snapshot: bytes = field(repr=False)

    @property
    def has_answers(self) -> bool:
        """See `Study`."""
        return True


@frozen(kw_only=True)
class DecidedStudy(MemberStudy):
    """Every slot is decided, and the snapshot is erased; packets or cover may still wait for their times."""


@frozen(kw_only=True)
class SentStudy(MemberStudy):
    """Nothing more leaves; the transcripts are still to come."""


@frozen(kw_only=True)
class LeavingStudy(Study):
    """The owner left before closing; the withdrawal is owed to the aggregator."""

    withdrawal: bytes = field(repr=False)


@frozen(kw_only=True)
class EndedStudy(Study):
    """The study is over for this peer, and all but its receipt is erased."""


@frozen
class Joining:
    """The rows that consent stores in one transaction. They are the reservation, the secrets, the exact enrolment
    bytes, and the signed heads that the manifest came under. Every later chain must continue these heads."""

    entry: Entry
    invite: Invite
    manifest_bytes: bytes = field(repr=False)
    minimum_cohort: int
    secrets: bytes = field(repr=False)
    enrolment: bytes = field(repr=False)
    due: float
    chain: bytes = field(repr=False)
    tellers: tuple[tuple[str, bytes], ...] = ()
    """Name and key of each, to be remembered."""


@frozen
class VerifiedEnrolment:
    """The result of the checks, to be stored before the features are evaluated."""

    chain: tuple[SignedHead, ...] = field(repr=False)
    roster_digest: bytes
    seed: bytes
    credential: bytes = field(repr=False)
    draws: tuple[int, ...]

    @property
    def chain_bytes(self) -> bytes:
        """For the store."""
        return encode_chain(self.chain)


class PacketKey(NamedTuple):
    """The place of a packet within its study: each is decided once. Cover traffic has round 0."""

    round: int
    slot: int


@frozen
class OutboxEntry:
    """A slot in the outbox, its receipt once `sealed` is erased, a dummy, or a blank. A dummy costs nothing. It has a
    number from `COVER_FROM` on in place of a slot, and the first survey of its window. A blank is a dummy that is not
    sent (`sealed` is None)."""

    slot: int
    survey: int
    epsilon: NanoEpsilon
    sealed: SealedPacket | None = field(repr=False)
    digest: bytes | None = field(repr=False)
    send_at: float
    attempts: int
    status: Status
    word: str
    round: int = 0

    @property
    def key(self) -> PacketKey:
        """Its place within the study."""
        return PacketKey(self.round, self.slot)
