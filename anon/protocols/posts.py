"""A study's posts to its aggregator, in the form of its packets' version: each is sealed to the study's key.

Version 1 seals by NaCl's boxes, whatever the post is. Version 2 seals by HPKE with X-Wing, for one study and one kind
of post alone (`anon.wire.packet_v2`). All packets of a study, and its cover traffic, have one size.
"""

from __future__ import annotations

from functools import lru_cache

from anon.credential import TokenForm, token_size
from anon.errors import Malformed
from anon.protocols.registry import protocol_of
from anon.sealing import OVERHEAD
from anon.sealing import seal as hpke_seal
from anon.study.manifest import Manifest
from anon.wire import packet_v2
from anon.wire.messages import SEAL_OVERHEAD, Dummy, Packet, SealedPacket, pad, seal
from anon.wire.messages import packet_size as size_of_1
from anon.wire.packet_v2 import Layout, PacketV2, enrolment_info, withdrawal_info

_KEPT = 1024


@lru_cache(maxsize=_KEPT)
def layout_of_packets(manifest: Manifest) -> Layout:
    """The lengths of the study's packets of version 2. `report` is that of its longest report. Raises `Malformed` for
    shares that are too short to be sealed."""
    shares = tuple(size - OVERHEAD for size in protocol_of(manifest).share_sizes(manifest))
    if any(size < 0 for size in shares):
        raise Malformed("manifest: its shares are too short to be sealed; do not take part")
    return Layout(manifest.report_size, shares, token_size(manifest.packets, TokenForm(manifest.packet_version)))


def recipients(manifest: Manifest) -> int:
    """How many shares each packet of the study has."""
    return len(layout_of_packets(manifest).shares) if manifest.packet_version == packet_v2.VERSION else 0


def plain_size(manifest: Manifest) -> int:
    """Bytes of every packet of the study before it is sealed, its padding included."""
    if manifest.packet_version == packet_v2.VERSION:
        return layout_of_packets(manifest).plain_size
    return size_of_1(manifest.report_size, token_size(manifest.packets, TokenForm(manifest.packet_version)))


def sealed_size(manifest: Manifest) -> int:
    """Bytes of every packet of the study on the wire."""
    return plain_size(manifest) + (OVERHEAD if manifest.packet_version == packet_v2.VERSION else SEAL_OVERHEAD)


def sealed_packet(manifest: Manifest, packet: Packet | PacketV2) -> SealedPacket:
    """A finished packet for the wire. Raises `Malformed` for one of another version or of other lengths."""
    if isinstance(packet, PacketV2) is not (manifest.packet_version == packet_v2.VERSION):
        raise Malformed(f"packet: the study's packets are of version {manifest.packet_version}")
    manifest.survey(packet.survey).demand_report(packet.report)
    if isinstance(packet, PacketV2):
        layout = layout_of_packets(manifest)
        layout.demand_shares(packet.shares)
        return packet_v2.seal_packet(packet, layout, manifest.sealing_key)
    return _boxed(manifest, packet.to_bytes())


def sealed_dummy(manifest: Manifest, dummy: Dummy) -> SealedPacket:
    """Cover traffic for the wire."""
    if manifest.packet_version == packet_v2.VERSION:
        return packet_v2.seal_dummy(dummy, layout_of_packets(manifest), manifest.sealing_key)
    return _boxed(manifest, dummy.to_bytes())


def sealed_enrolment(manifest: Manifest, signed: bytes) -> bytes:
    """A signed enrolment for the wire."""
    if manifest.packet_version == packet_v2.VERSION:
        return hpke_seal(signed, manifest.sealing_key, enrolment_info(manifest.study_id))
    return seal(signed, manifest.sealing_key)


def sealed_withdrawal(manifest: Manifest, signed: bytes) -> bytes:
    """A signed withdrawal for the wire."""
    if manifest.packet_version == packet_v2.VERSION:
        return hpke_seal(signed, manifest.sealing_key, withdrawal_info(manifest.study_id))
    return seal(signed, manifest.sealing_key)


def _boxed(manifest: Manifest, plaintext: bytes) -> SealedPacket:
    return SealedPacket(seal(pad(plaintext, plain_size(manifest)), manifest.sealing_key))
