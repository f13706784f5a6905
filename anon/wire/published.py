"""A packet as transcripts and stores have it, in either version. A study has packets of one version alone
(`anon.study.manifest.Manifest.packet_version`)."""

from __future__ import annotations

from anon.wire.messages import Packet, parse_packet
from anon.wire.packet_v2 import VERSION, PublishedPacket, parse_published

Published = Packet | PublishedPacket
_BEGINNING_OF_2 = bytes((0x88, VERSION))
"""A list of eight fields, of which the first is the version."""


def parse(data_untrusted: bytes) -> Published:
    """A published packet of either version, from its canonical bytes. Raises `Malformed`."""
    if data_untrusted.startswith(_BEGINNING_OF_2):
        return parse_published(data_untrusted)
    return parse_packet(data_untrusted)


def version_of(packet: Published) -> int:
    """1 or 2."""
    return VERSION if isinstance(packet, PublishedPacket) else 1
