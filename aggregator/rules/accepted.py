"""An accepted packet, and a check that a stored one is still the packet that was accepted.

`aggregator.rules.verify` decides which packets are accepted. Nothing of an enrolment can be reached from here.
"""

from __future__ import annotations

from attrs import field, frozen

from anon import labels
from anon.errors import Malformed
from anon.wire.cbor import sha256
from anon.wire.messages import parse_packet

Place = tuple[int, bytes]
"""Slot and tag."""


@frozen
class Accepted:
    """One packet to keep: its place, survey, whole plaintext and that plaintext's digest."""

    slot: int
    tag: bytes
    survey: int
    plaintext: bytes = field(repr=False)
    digest: bytes

    @property
    def place(self) -> Place:
        """The unique part of a packet's row."""
        return self.slot, self.tag

    def sound(self, study: bytes) -> bool:
        """True if this is the packet that was accepted: its bytes have the digest, and say what its key says."""
        if sha256(labels.PACKET_DIGEST, self.plaintext) != self.digest:
            return False
        try:
            said = parse_packet(self.plaintext)
        except Malformed:
            return False
        tag = said.token[: len(self.tag)]
        return (said.study, said.slot, said.survey, tag) == (study, self.slot, self.survey, self.tag)
