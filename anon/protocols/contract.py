"""The contract every protocol follows, so that consent, ledger, release and verify never need to know which one runs.

A protocol has a shared half (`StudyProtocol`), a peer's half and an aggregator's half. The halves are pure: they step
from a state and an event to `Continue(state, outgoing)` or `Finish(outgoing)`. They neither send, store nor wait.

The peer's half of the histogram protocol steps this way. The aggregator's does not yet: `aggregator.session` decides
its phases and `aggregator.conduct` performs them, so `Publishing` and `WindowClosed` are named here and used nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from attrs import frozen

from anon.ldp import RawCategory
from anon.study.manifest import Manifest

State = TypeVar("State")


@frozen
class Aggregator:
    """Addressed to the study's aggregator."""


@frozen
class Peer:
    """Addressed to whoever holds a slot."""

    slot: int


@frozen
class Group:
    """Addressed to a named group of peers."""

    group: str


Recipient = Aggregator | Peer | Group


@frozen
class Answering:
    """A peer's wish to answer a survey: only `peer.release` turns it into something that can leave."""

    to: Recipient
    slot: int
    survey: int
    category: RawCategory


@frozen
class Publishing:
    """An aggregator's wish to publish a document body under the next signed head."""

    to: Recipient
    kind: str
    part: int
    body: bytes


Outgoing = Answering | Publishing


@frozen
class Continue(Generic[State]):
    """The protocol goes on from `state` once `outgoing` is taken care of."""

    state: State
    outgoing: tuple[Outgoing, ...] = ()


@frozen
class Finish:
    """Nothing more will come from this half."""

    outgoing: tuple[Outgoing, ...] = ()


Step = Continue[State] | Finish


@frozen
class DocumentArrived:
    """A document whose head was verified. `body` still is untrusted content."""

    kind: str
    part: int
    body: bytes


@frozen
class WindowClosed:
    """The aggregator's clock passed the end of a set of surveys; counts per survey id, each of length m, with n."""

    counts: Mapping[int, tuple[tuple[int, ...], int]]


class StudyProtocol(Protocol):
    """What both sides know of a protocol."""

    name: str

    def check(self, study: Manifest) -> None:
        """Raises `Malformed` when the study cannot run or declares less than it costs."""

    def exposure(self, study: Manifest) -> tuple[int, float]:
        """(epsilon in 1e-9, delta): the most that one record can lose by the whole study."""
