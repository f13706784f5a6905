"""An accepted packet, and a check that a stored one is still the packet that was accepted.

`aggregator.rules.acceptance` decides which packets are accepted. Nothing of an enrolment can be reached from here.
"""

from __future__ import annotations

from attrs import field, frozen

from anon.crypto import labels
from anon.errors import Malformed
from anon.wire.cbor import sha256
from anon.wire.packets import Relayed, is_of, parse_published

Place = tuple[int, bytes]
"""Slot and tag."""


@frozen
class AcceptedPacket:
    """One packet to keep: its place, survey, whole plaintext and that plaintext's digest.

    It is kept in its published form. Beside it there are its sealed shares, until they are relayed.
    """

    slot: int
    tag: bytes
    survey: int
    plaintext: bytes = field(repr=False)
    digest: bytes
    shares: tuple[bytes, ...] = field(default=(), repr=False)

    @property
    def place(self) -> Place:
        """The unique part of a packet's row."""
        return self.slot, self.tag

    def sound(self, study: bytes) -> bool:
        """True if this is the packet that was accepted: its bytes have the digest, and say what its key says."""
        if sha256(labels.PACKET_DIGEST, self.plaintext) != self.digest:
            return False
        try:
            said = parse_published(self.plaintext)
        except Malformed:
            return False
        tag = said.token[: len(self.tag)]
        return (said.study, said.slot, said.survey, tag) == (study, self.slot, self.survey, self.tag)


def relayed(plaintext: bytes, teller: int, share: bytes) -> Relayed | None:
    """A kept packet as this teller is shown it, with its share; None where the share is not the one of the packet."""
    try:
        packet = parse_published(plaintext)
    except Malformed:
        return None
    if not 0 <= teller < len(packet.digests):
        return None
    return packet.relayed(teller, share) if is_of(share, packet.digests[teller]) else None
