"""The life of one packet on a peer, as a table: status x event -> status, effects. An unlisted event raises.

The store moves a packet along this table alone. A slot without a status is undecided. A queued packet stays queued
through attempts: no answer has settled it. The look at the heads before an attempt is kept in memory
(`peer.run.plan`): a program that starts again looks again. Dummies and blanks live as packets do, without a charge.
"""

from __future__ import annotations

from enum import StrEnum

from anon.values import frozen
from peer.rules.lifecycle import Unlisted


class Status(StrEnum):
    """Where a packet stands."""

    QUEUED = "queued"
    DELIVERED = "delivered"
    INCLUDED = "included"  # found in the transcript
    NOT_INCLUDED = "not-included"  # acknowledged, but the signed transcript does not have it
    REFUSED = "refused"  # the aggregator's word says why
    GIVEN_UP = "given-up"  # never acknowledged, retries or window used up; the charge stays
    MISSED = "missed"  # never made: nothing was charged
    STOPPED = "stopped"  # in the outbox when the study was stopped; the charge stays


class PacketEvent(StrEnum):
    """Events of a packet's life."""

    JOURNALLED = "journalled"
    COVER_JOURNALLED = "cover-journalled"
    WINDOW_MISSED = "window-missed"
    REDRAWN = "redrawn"
    ATTEMPTED = "attempted"
    NOT_CONNECTED = "not-connected"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    GIVEN_UP = "given-up"
    STUDY_ENDED = "study-ended"
    FOUND = "found"
    NOT_FOUND = "not-found"


class PacketEffect(StrEnum):
    """Work that is done with the change of status, in the same transaction."""

    CHARGE = "charge"  # epsilon moves from the reservation to what is spent
    COUNT = "count"  # one attempt more
    UNCOUNT = "uncount"  # one attempt less: no byte of it can have left


@frozen
class PacketMove:
    """The next status and its effects."""

    status: Status
    effects: tuple[PacketEffect, ...] = ()


PACKET_TABLE: dict[tuple[Status | None, PacketEvent], PacketMove] = {
    (None, PacketEvent.JOURNALLED): PacketMove(Status.QUEUED, (PacketEffect.CHARGE,)),  # before the first byte leaves
    (None, PacketEvent.COVER_JOURNALLED): PacketMove(Status.QUEUED),
    (None, PacketEvent.WINDOW_MISSED): PacketMove(Status.MISSED),
    (Status.QUEUED, PacketEvent.REDRAWN): PacketMove(Status.QUEUED),
    (Status.QUEUED, PacketEvent.ATTEMPTED): PacketMove(Status.QUEUED, (PacketEffect.COUNT,)),
    (Status.QUEUED, PacketEvent.NOT_CONNECTED): PacketMove(Status.QUEUED, (PacketEffect.UNCOUNT,)),
    (Status.QUEUED, PacketEvent.ACCEPTED): PacketMove(Status.DELIVERED),
    (Status.QUEUED, PacketEvent.REFUSED): PacketMove(Status.REFUSED),
    (Status.QUEUED, PacketEvent.GIVEN_UP): PacketMove(Status.GIVEN_UP),
    (Status.QUEUED, PacketEvent.STUDY_ENDED): PacketMove(Status.STOPPED),
    (Status.DELIVERED, PacketEvent.FOUND): PacketMove(Status.INCLUDED),
    (Status.DELIVERED, PacketEvent.NOT_FOUND): PacketMove(Status.NOT_INCLUDED),
}


def move_packet(status: Status | None, event: PacketEvent) -> PacketMove:
    """The table's entry. Raises `Unlisted` for an event that cannot happen in this status."""
    try:
        return PACKET_TABLE[status, event]
    except KeyError:
        raise Unlisted(f"{event} cannot happen to a packet that is {status or 'undecided'}") from None
